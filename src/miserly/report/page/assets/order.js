// What do I order? What rows buy, what they do not, and the plan itself.

function buildOrder(data, pick) {
  const names = (value) => (value.length ? some(value, 4) : "nothing");
  tables.bought = new Table(byId("bought"), {
    caption: "What rows buy, in the mean order of purchase", filter: "Filter", open: 12, empty: "It buys nothing.",
    columns: [
      { key: "place", label: "#", number: true },
      { key: "name", label: "Buys", wide: true },
      { key: "price", label: "Price", number: true },
      { key: "share", label: "Rows", number: true, show: percent },
      { key: "spent", label: "Mean per row", number: true },
    ],
  });
  const stepButton = (row) => inline(figure(row.from), `Move the budget to ${figure(row.from)}, where ${some(row.names, 4)} ${row.names.length > 1 ? "are" : "is"} bought`, () => pick(row.stop));
  tables.unbought = new Table(byId("unbought"), {
    caption: "Not bought here", filter: "Filter", open: 8, empty: "It buys all there is.",
    columns: [
      { key: "names", label: "Acquisitions", show: names, wide: true },
      { key: "price", label: "Price", number: true },
      { key: "from", label: "First bought at mean cost", number: true, show: (v, row) => (v === null ? "never" : stepButton(row)) },
    ],
  });
  byId("plan").addEventListener("toggle", () => showPlan(data, state.detail, data.stops[state.stop]));
}

/** The protocol first; then what each row pays for, over all rows. */
function showOrder(data, detail, state) {
  const stop = data.stops[state.stop];
  showProtocol(data, detail);
  showPurchases(data, detail, state);
  showTiers(data, stop);
  showPlan(data, detail, stop);
}

/** What is bought and what is not; the latter by the first more expensive stop that buys it: on the slider's path, or
    the reference model. */
function showPurchases(data, detail, state) {
  const stop = data.stops[state.stop];
  const owned = new Set(detail.purchases.map((line) => line.name));
  tables.bought.set(detail.purchases.map((line, i) => ({ place: i + 1, ...line })));
  const rest = detail.purchases.some((line) => line.spent === null) ? null
    : stop.cost.mean - detail.purchases.reduce((sum, line) => sum + line.spent, 0);
  const rows = "Rows: the share of all rows that buy it. ";
  tables.bought.say(detail.purchases.length ? rows + (rest === null ? "" : `The means add up to ${figure(stop.cost.mean)} ${data.unit}${rest > 1e-9 * stop.cost.mean ? `, with ${figure(rest)} for computing` : ""}.`) : "");
  const path = data.paths[state.path].stops;
  const first = new Map();
  for (const s of [...path, data.blind].filter((s) => data.stops[s].cost.mean > stop.cost.mean))
    for (const a of data.stops[s].bought) if (!first.has(a)) first.set(a, s);
  const groups = new Map();
  data.acquisitions.forEach((item, a) => {
    if (owned.has(item.name)) return;
    const at = first.get(a) ?? null;
    if (!groups.has(at)) groups.set(at, { names: [], price: 0, stop: at, from: at === null ? null : data.stops[at].cost.mean });
    groups.get(at).names.push(item.name);
    groups.get(at).price += item.price;
  });
  tables.unbought.set([...groups.values()].sort((a, b) => compared(a.from, b.from, 1)));
}

/** The plan's drawing and words, when they are looked at. */
function showPlan(data, detail, stop) {
  if (!byId("plan").open) return;
  planPicture(figures.drawing, data, detail);
  showWords(data, detail, stop);
  showStages(data, detail);
}

function showWords(data, detail, stop) {
  const title = data.methods[stop.method].name + (stop.params ? ` with ${stop.params}` : "");
  const more = detail.more ? [`… and ${detail.more} lines more`] : [];
  byId("words").replaceChildren(
    make("h3", {}, title),
    ...detail.summary.map((line) => make("p", {}, line)),
    make("details", {}, make("summary", {}, "Node by node"),
      make("pre", { tabindex: "0", role: "region", "aria-label": "The plan node by node" }, [...detail.words, ...more].join("\n"))),
  );
}

function showStages(data, detail) {
  const stages = detail.stages;
  const gated = detail.funnel && stages.length > 1 && stages.some((s) => s.share < 1);
  figures.stages.show({
    title: "Rows left at each stage",
    note: "Share of all rows that come there",
    label: `Rows left: ${stages.map((s) => `stage ${s.stage}: ${percent(s.share)}`).join(", ")}.`,
    paint: gated ? (width) => columns(width, stages.map((s) => [String(s.stage), s.share, percent(s.share)]), "stage") : null,
  });
  const matrix = detail.leaves;
  figures.leaves.show({
    title: "Do the leaves buy the same?",
    note: "Shared purchases over all purchases of two leaves (Jaccard): 1 is the same, 0 nothing in common",
    label: `Jaccard similarity of ${matrix.length} leaves.`,
    paint: matrix.length ? (width) => matrixPicture(width, matrix) : null,
  });
}

function columns(width, bars, axis) {
  const [height, bottom] = [170, 134];
  const step = width / bars.length;
  const svg = canvas(width, height);
  bars.forEach(([name, share, text], i) => {
    const h = share * (bottom - 22);
    svg.append(draw("rect", { x: i * step + step * 0.12, y: bottom - h, width: step * 0.76, height: h, class: "bar" }));
    if (step > 30) svg.append(words((i + 0.5) * step, bottom - h - 6, text, "tick", "middle"));
    if (step > 18) svg.append(words((i + 0.5) * step, bottom + 16, name, "tick", "middle"));
  });
  svg.append(draw("line", { x1: 0, x2: width, y1: bottom, y2: bottom, class: "base" }), words(width / 2, height - 4, axis, "axis", "middle"));
  return svg;
}

function matrixPicture(width, matrix) {
  const [n, margin] = [matrix.length, 22];
  const side = Math.min(width, 380);
  const cell = (side - margin) / n;
  const svg = canvas(side, side);
  matrix.forEach((line, i) => {
    if (cell > 14) {
      const middle = margin + (i + 0.5) * cell;
      svg.append(words(middle, 12, String(i + 1), "tick", "middle"), words(margin - 6, middle + 4, String(i + 1), "tick", "end"));
    }
    line.forEach((value, j) => {
      const box = { x: margin + j * cell, y: margin + i * cell, width: cell - 1, height: cell - 1 };
      const style = `fill:color-mix(in oklab, var(--deep) ${Math.round(100 * value)}%, var(--pale))`;
      svg.append(draw("rect", { ...box, style }, draw("title", {}, `leaves ${i + 1} and ${j + 1}: ${figure(value)}`)));
      const kind = value > 0.5 ? "tick on-deep" : "tick on-pale";
      if (cell > 30) svg.append(words(box.x + cell / 2, box.y + cell / 2 + 4, value.toFixed(2), kind, "middle"));
    });
  });
  return svg;
}

function showTiers(data, stop) {
  const tiers = data.tiers.map(([label, n], i) => ({ label, n, bought: stop.tiers[i] }));
  figures.tiers.show({
    title: "Which prices are paid",
    note: `Share of the acquisitions of each price (${data.unit}) that the model may buy`,
    label: `Bought by price: ${tiers.map((t) => `${t.label}: ${t.bought} of ${t.n}`).join("; ")}.`,
    paint: (width) => {
      const [step, name] = [34, Math.min(130, width * 0.32)];
      const track = width - name - 70;
      const svg = canvas(width, tiers.length * step + 4);
      tiers.forEach((t, i) => {
        const y = i * step + 6;
        svg.append(words(0, y + 15, clipped(t.label, Math.floor(name / 6.5)), "small"));
        svg.append(draw("rect", { x: name, y, width: track, height: 20, rx: 3, class: "track" }));
        if (t.bought) svg.append(draw("rect", { x: name, y, width: Math.max(3, (track * t.bought) / t.n), height: 20, rx: 3, class: "bar" }));
        svg.append(words(width, y + 15, `${t.bought} of ${t.n}`, "tick", "end"));
      });
      return svg;
    },
  });
}
