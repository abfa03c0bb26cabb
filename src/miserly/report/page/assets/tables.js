// Tables that sort by a click on a column's name, and narrow down to what is typed above them.

class Table {
  /** `columns`: {key, label, number, show(value, row), wide}. `open` rows are shown before "Show all". */
  constructor(host, { caption, columns, open = 10, filter = null, empty = "Nothing." }) {
    Object.assign(this, { columns, open, empty, rows: [], order: null, down: false, typed: "", all: false });
    this.body = make("tbody");
    this.more = make("button", { type: "button", class: "quiet more", onclick: () => this.toggle() });
    this.heads = columns.map((column) => this.head(column));
    const heading = make("h3", {}, caption);
    const tools = make("div", { class: "table-head" }, heading);
    if (filter) {
      this.search = make("input", { type: "search", placeholder: filter, "aria-label": `${filter}: ${caption}` });
      this.search.addEventListener("input", () => {
        this.typed = this.search.value.trim().toLowerCase();
        this.render();
      });
      tools.append(this.search);
    }
    this.count = make("p", { class: "note", "aria-live": "polite" });
    const table = make(
      "table",
      {},
      make("caption", { class: "hidden" }, caption),
      make("thead", {}, make("tr", {}, ...this.heads)),
      this.body,
    );
    const scroll = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
    host.append(tools, scroll, make("div", { class: "table-foot" }, this.count, this.more));
  }

  head(column) {
    const arrow = make("span", { class: "arrow", "aria-hidden": "true" });
    const content = column.number ? [arrow, column.label] : [column.label, arrow];
    const button = make("button", { type: "button", onclick: () => this.sort(column) }, ...content);
    return make("th", { scope: "col", class: column.number ? "number" : null }, button);
  }

  sort(column) {
    this.down = this.order === column ? !this.down : Boolean(column.number);
    this.order = column;
    this.columns.forEach((other, i) => {
      if (other === column) this.heads[i].setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else this.heads[i].removeAttribute("aria-sort");
    });
    this.render();
  }

  /** Columns in which no row has a value are left out. */
  hideEmpty() {
    this.columns.forEach((column, i) => {
      const empty = this.rows.length > 0 && !this.rows.some((row) => hasValue(row[column.key]));
      this.heads[i].hidden = empty;
      for (const line of this.body.rows) if (line.cells.length === this.columns.length) line.cells[i].hidden = empty;
    });
  }

  toggle() {
    this.all = !this.all;
    this.render();
  }

  /** A sentence below the table. */
  say(text) {
    this.said = text;
    this.count.textContent = text;
  }

  set(rows) {
    this.rows = rows;
    this.render();
  }

  get shown() {
    let rows = this.rows;
    if (this.typed) rows = rows.filter((row) => this.text(row).includes(this.typed));
    if (this.order) {
      const { key } = this.order;
      const sign = this.down ? -1 : 1;
      rows = [...rows].sort((a, b) => compared(a[key], b[key], sign));
    }
    return rows;
  }

  text(row) {
    return this.columns.map((column) => [row[column.key]].flat().join(" ")).join(" ").toLowerCase();
  }

  render() {
    const rows = this.shown;
    const visible = this.all ? rows : rows.slice(0, this.open);
    const lines = visible.map((row) => {
      const cells = this.columns.map((column) => {
        const value = row[column.key];
        const content = column.show ? column.show(value, row) : column.number ? figure(value) : value;
        const kind = column.number ? "number" : column.wide ? "wide" : null;
        return make("td", { class: kind }, content === null || content === undefined ? "" : content);
      });
      return make("tr", { class: row.here ? "here" : null, "aria-current": row.here ? "true" : null }, ...cells);
    });
    if (!lines.length) lines.push(make("tr", {}, make("td", { colspan: this.columns.length }, this.empty)));
    this.body.replaceChildren(...lines);
    this.hideEmpty();
    this.more.hidden = rows.length <= this.open;
    this.more.textContent = this.all ? "Show fewer" : `Show all ${rows.length.toLocaleString("en-US")}`;
    this.count.textContent = this.typed ? `${rows.length} of ${this.rows.length} match` : this.said || "";
  }
}

/** Whether a cell of this column has something to show. */
const hasValue = (value) => value !== null && value !== undefined && value !== "";

/** Missing values stand last, whichever way a column is sorted. */
function compared(a, b, sign) {
  const missing = (a === null || a === undefined) - (b === null || b === undefined);
  if (missing) return missing;
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), "en", { numeric: true });
}
