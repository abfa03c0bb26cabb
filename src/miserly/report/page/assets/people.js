// For whom? What groups of rows pay, and how often predictions about them are wrong.

const withEnds = (ends, show) => (ends === null || ends === undefined ? "" : `${show(ends[0])} (${show(ends[1])} to ${show(ends[2])})`);
const share1 = (p) => (100 * p).toFixed(1);
const ofShare = (ends) => withEnds(ends, share1);
const plus = (v, show) => `${v > 0 ? "+" : v < 0 ? "−" : ""}${show(Math.abs(v))}`;
const ofGap = (show) => (ends) => (ends ? `${plus(ends[0], show)} (${plus(ends[1], show)} to ${plus(ends[2], show)})` : "");
const differs = (ends) => Boolean(ends) && (ends[1] > 0 || ends[2] < 0);
const threeDigits = (x) => figure(Number(x.toPrecision(3)));

function buildPeople(data) {
  const classes = data.classes !== null;
  const two = classes && data.classes.length === 2;
  tables.groups = new Table(byId("groups"), {
    caption: "Groups that you named", open: 24,
    columns: [
      { key: "by", label: "By" },
      { key: "group", label: "Group", wide: true },
      { key: "rows", label: "Rows", number: true, show: (v) => v.toLocaleString("en-US") },
      { key: "cost", label: "Mean cost", number: true, show: (v) => withEnds(v, threeDigits) },
      { key: "costGap", label: "against the others", number: true, show: ofGap(threeDigits) },
      { key: "wrong", label: "Wrong, %", number: true, show: ofShare },
      { key: "wrongGap", label: "against the others", number: true, show: ofGap(share1) },
      { key: "off", label: "Mean error", number: true, show: (v) => withEnds(v, threeDigits) },
      { key: "offGap", label: "against the others", number: true, show: ofGap(threeDigits) },
      ...(two ? [{ key: "sensitivity", label: `${data.classes[1]} found, %`, number: true, show: ofShare }, { key: "specificity", label: `${data.classes[0]} found, %`, number: true, show: ofShare }] : []),
    ],
  });
  tables.payers = new Table(byId("payers"), {
    caption: "Rows by what they pay", open: 12,
    columns: [
      { key: "group", label: "Rows", wide: true },
      { key: "rows", label: "How many", number: true, show: (v) => v.toLocaleString("en-US") },
      { key: "mean", label: "Mean", number: true },
      { key: "p95", label: "95 %", number: true },
      { key: "max", label: "Most", number: true },
      { key: "share", label: "Of all", number: true, show: percent },
    ],
  });
}

function showPeople(data, detail, state) {
  showGroups(data, detail);
  showSpending(data, detail, state);
}

/** Groups that differ beyond chance are said in a sentence; many groups are many chances, which is said too. */
function showGroups(data, detail) {
  byId("groups").hidden = !detail.groups.length;
  if (!detail.groups.length) return;
  tables.groups.set(detail.groups.map((g) => ({ ...g, here: differs(g.costGap) || differs(g.wrongGap) || differs(g.offGap) })));
  const pays = detail.groups.filter((g) => differs(g.costGap)).map((g) => `${g.by} ${g.group} pays ${g.costGap[0] > 0 ? "more" : "less"}`);
  const errs = detail.groups.filter((g) => differs(g.wrongGap ?? g.offGap)).map((g) => `${g.by} ${g.group} is predicted ${(g.wrongGap ?? g.offGap)[0] > 0 ? "worse" : "better"}`);
  const found = [...pays, ...errs];
  tables.groups.say((found.length ? `Beyond chance: ${found.join("; ")}. ` : "No group differs from the others beyond chance. ") +
    `Ends of 95 % intervals stand in brackets; one comparison in twenty differs like this by chance alone.`);
}

function showSpending(data, detail, state) {
  const { groups, bars } = detail.spending.find((part) => part.by === state.by);
  const same = bars.length === 1;
  byId("paying").hidden = same;
  const totals = detail.spending.flatMap((part) => part.totals.map((t) => ({ ...t, group: part.by === "label" ? `label ${t.group}` : t.group })));
  const most = totals.reduce((a, b) => (b.mean > a.mean ? b : a));
  const hint = detail.groups.length ? "" : " Name a column when the page is made (miserly report --group-by) to see what its groups pay and how often they are predicted wrongly.";
  byId("whom-lead").textContent = (same
    ? `Every row pays the same: ${figure(bars[0].low)} ${data.unit}.`
    : `Costs differ from row to row. Of the groups below, ${most.group} pay${/s$/.test(most.group) ? "" : "s"} most: ${figure(most.mean)} ${data.unit} on average.`) + hint;
  figures.spending.show({
    title: "What rows spend",
    note: `Number of rows by their cost in ${data.unit}`,
    legend: groups.map((name, i) => [patchKey(i), name]),
    label: `Rows by cost: ${bars.filter((b) => b.rows).map((b) => `${figure(b.low)}: ${b.rows}`).join(", ")}.`,
    paint: (width) => histogram(width, groups, bars),
  });
  if (!figures.spending.choice) {
    const choice = make("select", { "aria-label": "Group rows by" }, ...["label", "outcome"].map((by) => make("option", { value: by }, `by ${by}`)));
    choice.addEventListener("change", () => {
      state.by = choice.value;
      showSpending(data, state.detail, state);
    });
    figures.spending.tools.prepend(choice);
    figures.spending.choice = choice;
  }
  tables.payers.set(totals);
}

function histogram(width, groups, bars) {
  const [height, left, top, bottom] = [280, 52, 10, 236];
  const most = Math.max(...bars.map((b) => b.rows));
  const y = linear(0, most, bottom, top);
  const step = Math.min(90, (width - left) / bars.length);
  const svg = canvas(width, height, hatches(groups.map((_, i) => i)), ...valueAxis(ticks(0, most, 4), y, left, width));
  bars.forEach((bar, i) => {
    let base = 0;
    groups.forEach((name, g) => {
      const n = bar[name];
      if (!n) return;
      const box = { x: left + i * step + step * 0.06, y: y(base + n), width: step * 0.88, height: y(base) - y(base + n) };
      svg.append(...hatched(box, g));
      base += n;
    });
    const every = Math.ceil(52 / step);
    if (i % every === 0) svg.append(words(left + (i + 0.5) * step, bottom + 18, compact(bar.low), "tick", "middle"));
  });
  svg.append(draw("line", { x1: left, x2: width, y1: bottom, y2: bottom, class: "base" }), words((left + width) / 2, height - 6, "cost of a row", "axis", "middle"));
  return svg;
}

