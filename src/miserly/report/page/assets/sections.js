// What stands in each section for the model under the slider.

const tables = {};
const figures = {};

function buildSections(data, pick, walkRow) {
  for (const name of ["frontier", "drawing", "stages", "leaves", "tiers", "spending", "calibration"])
    figures[name] = new Figure(byId(name), name);
  const names = (value) => (value.length ? some(value, 4) : "nothing");
  tables.bought = new Table(byId("bought"), {
    caption: "Bought, in this order", filter: "Filter", open: 8, empty: "It buys nothing.",
    columns: [
      { key: "place", label: "#", number: true },
      { key: "buys", label: "Buys", show: names, wide: true },
      { key: "price", label: "Price", number: true },
      { key: "total", label: "Paid by then", number: true },
      { key: "share", label: "Rows", number: true, show: percent },
      { key: "gain", label: "Gain", number: true },
    ],
  });
  tables.unbought = new Table(byId("unbought"), {
    caption: "Not bought here", filter: "Filter", open: 8, empty: "It buys all there is.",
    columns: [
      { key: "names", label: "Acquisitions", show: names, wide: true },
      { key: "price", label: "Price", number: true },
      { key: "from", label: "First bought at", number: true, show: (v, row) => (v === null ? "no budget" : stepButton(row, pick)) },
      { key: "quality", label: `${data.metric.name} of that model`, number: true },
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
      { key: "share", label: "Share of all", number: true, show: percent },
    ],
  });
  tables.bins = new Table(byId("bins"), {
    caption: "The marks, one by one", open: 10,
    columns: [
      { key: "predicted", label: "Predicted", number: true },
      { key: "seen", label: "Observed", number: true },
      { key: "gap", label: "Gap", number: true, show: (v) => signed(Number(v.toPrecision(2))) },
      { key: "rows", label: "Rows", number: true, show: (v) => v.toLocaleString("en-US") },
    ],
  });
  tables.rows = new Table(byId("rows"), {
    caption: "Validation rows", filter: "Filter", open: 14,
    columns: [
      { key: "row", label: "Row", number: true, show: (v, row) => rowButton(row, walkRow) },
      ...(data.queries === null ? [] : [{ key: "query", label: "Query" }]),
      { key: "label", label: "Label", number: data.classes === null, show: String },
      { key: "answer", label: "Prediction", number: data.classes === null },
      ...(data.classes === null ? [] : [{ key: "probability", label: "Probability", number: true }]),
      { key: "cost", label: "Paid", number: true },
    ],
  });
  const hasTest = data.methods.some((method) => method.points.some((point) => point.test));
  tables.all = new Table(byId("all"), {
    caption: "Every model of the sweep", filter: "Filter", open: 15,
    columns: [
      { key: "method", label: "Method", wide: true },
      { key: "params", label: "Setting", show: (v, row) => (row.stop === null ? v : modelButton(row, pick)) },
      { key: "quality", label: data.metric.name, number: true },
      { key: "cost", label: "Mean cost", number: true },
      { key: "p95", label: "95 % cost", number: true },
      ...(hasTest ? [{ key: "testQuality", label: `${data.metric.name}, test`, number: true }, { key: "testCost", label: "Cost, test", number: true }] : []),
      { key: "front", label: "On the front", show: (v) => (v ? "yes" : "no") },
      { key: "seconds", label: "Seconds to fit", number: true },
    ],
  });
}

const signed = (v) => (v > 0 ? `+${figure(v)}` : figure(v).replace("-", "−"));
const inline = (text, name, onclick, pressed = null) =>
  make("button", { type: "button", class: "inline", onclick, "aria-label": name, "aria-pressed": pressed }, text);
const stepButton = (row, pick) => inline(figure(row.from), `Move the budget to ${figure(row.from)}, where ${some(row.names, 4)} ${row.names.length > 1 ? "are" : "is"} bought`, () => pick(row.stop));
const rowButton = (row, walkRow) => inline(String(row.row), `Walk row ${row.row}`, () => walkRow(row.index), row.here ? "true" : "false");
const modelButton = (row, pick) => inline(row.params || "this one", `Show ${row.method}, ${row.params}`, () => pick(row.stop), row.here ? "true" : "false");

function showCompare(data, stop) {
  const blind = data.stops[data.blind];
  const columns = [["This model", stop], [capital(data.blindName), blind]];
  const test = columns.every(([, s]) => s.test);
  const lines = [
    [`${data.metric.name}, validation`, (s) => figure(s.quality)],
    ...(columns.some(([, s]) => s.half !== null) ? [["± (95 %)", (s) => twoDigits(s.half)]] : []),
    ...(test ? [[`${data.metric.name}, test`, (s) => figure(s.test.quality)]] : []),
    ["Mean cost", (s) => figure(s.cost.mean)],
    ...(test ? [["Mean cost, test", (s) => figure(s.test.cost)]] : []),
    ["Cost of 95 % of rows", (s) => `≤ ${figure(s.cost.p95)}`],
    ["Most expensive row", (s) => figure(s.cost.max)],
    ["May buy", (s) => `${s.bought.length} of ${data.acquisitions.length}`],
  ];
  const head = make("tr", {}, make("td"), ...columns.map(([name]) => make("th", { scope: "col", class: "number" }, name)));
  const rows = lines.map(([name, show]) =>
    make("tr", {}, make("th", { scope: "row" }, name), ...columns.map(([, s]) => make("td", { class: "number" }, show(s)))));
  const lost = stop === blind ? null : make("p", { class: "note" }, lostText(data, stop));
  byId("compare").replaceChildren(
    make("h3", {}, `Beside the ${data.blindName}`),
    make("table", { class: "compare" }, make("thead", {}, head), make("tbody", {}, ...rows)),
    ...(lost ? [lost] : []),
  );
}

function lostText(data, stop) {
  const half = stop.lostHalf === null ? "" : ` ± ${twoDigits(stop.lostHalf)}`;
  const [word, size] = stop.lost >= 0 ? ["Worse", stop.lost] : ["Better", -stop.lost];
  const doubt = stop.lostHalf !== null && size < stop.lostHalf ? ": within the noise of these rows" : "";
  return `${word} by ${figure(size)}${half} ${data.metric.name} on the same rows${doubt}.`;
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

function showBill(data, stop) {
  const value = (id) => Math.max(0, Number(byId(id).value) || 0);
  const factor = value("requests") * 30 * value("unit-price");
  byId("bills").hidden = !factor;
  const [here, blind] = [stop, data.stops[data.blind]].map((s) => factor * s.cost.mean);
  byId("bill-here").textContent = money(here);
  byId("bill-blind").textContent = money(blind);
  byId("bill-blind-name").textContent = capital(data.blindName);
  byId("bill-saved-name").textContent = blind >= here ? "Saved" : "Paid on top";
  byId("bill-saved").textContent = money(Math.abs(blind - here));
}

function showWords(data, detail, stop) {
  const method = data.methods[stop.method].name;
  byId("plan-lead").textContent = `${method}${stop.params ? ` with ${stop.params}` : ""}, in words and as a drawing.`;
  const more = detail.more ? [`… and ${detail.more} lines more`] : [];
  byId("words").replaceChildren(
    make("h3", {}, "In words"),
    ...detail.summary.map((line) => make("p", {}, line)),
    make("details", {}, make("summary", {}, "Node by node"),
      make("pre", { tabindex: "0", role: "region", "aria-label": "The plan node by node" }, [...detail.words, ...more].join("\n"))),
  );
}

function showStages(data, detail) {
  const stages = detail.stages;
  const gated = stages.length > 1 && stages.some((s) => s.share < 1);
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

/** What is not bought here, by the first more expensive stop that buys it: on the slider's path, or the reference model.
    The quality is that of the whole model there: it says nothing about a single acquisition. */
function showPurchases(data, detail, state) {
  const stop = data.stops[state.stop];
  const path = data.paths[state.path].stops;
  const owned = new Set(stop.bought);
  byId("buys-lead").textContent = `${many(stop.bought.length, "acquisition")} of ${data.acquisitions.length}. ` +
    (detail.byPath ? "Each row pays for the splits on its own path; order and shares are those of the rows below, under One row." : "Each is paid once per row that comes there.") +
    (detail.purchases.some((line) => line.gain !== null) ? " Gain: what the mean training loss fell by." : "");
  tables.bought.set(detail.purchases.map((line, i) => ({ place: i + 1, ...line })));
  const first = new Map();
  for (const s of [...path, data.blind].filter((s) => data.stops[s].cost.mean > stop.cost.mean))
    for (const a of data.stops[s].bought) if (!first.has(a)) first.set(a, s);
  const groups = new Map();
  data.acquisitions.forEach((item, a) => {
    if (owned.has(a)) return;
    const at = first.get(a) ?? null;
    const there = at === null ? null : data.stops[at];
    if (!groups.has(at)) groups.set(at, { names: [], price: 0, stop: at, from: there && there.cost.mean, quality: there && there.quality });
    groups.get(at).names.push(item.name);
    groups.get(at).price += item.price;
  });
  tables.unbought.set([...groups.values()].sort((a, b) => compared(a.from, b.from, 1)));
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

function showSpending(data, detail, state) {
  const { groups, bars } = detail.spending.find((part) => part.by === state.by);
  const same = bars.length === 1;
  byId("paying").hidden = same;
  const most = detail.spending.flatMap((part) => part.totals).reduce((a, b) => (b.mean > a.mean ? b : a));
  byId("pays-lead").textContent = same
    ? `Nobody: this model buys the same for every row, ${figure(bars[0].low)} ${data.unit}. Trees, cascades and models charged by path differ from row to row.`
    : `Costs differ from row to row: ${most.by === "label" ? "label " : ""}${most.group} pay most, ${figure(most.mean)} ${data.unit} on average.`;
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
  const totals = detail.spending.flatMap((part) => part.totals.map((t) => ({ ...t, group: part.by === "label" ? `label ${t.group}` : t.group })));
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

function showCalibration(data, detail, blind) {
  const { axes, bins } = detail.calibration;
  byId("trust-lead").textContent = data.classes
    ? "On the diagonal, a probability of 80 % is right four times out of five. Larger marks stand for more rows."
    : "On the diagonal, rows with this prediction have this label on average. Each mark is a tenth of the rows.";
  figures.calibration.show({
    title: "Predicted and observed",
    note: `${axes[0]} → ${axes[1]}`,
    legend: [[lineKey(0), "this model"], [lineKey(1), data.blindName]],
    label: `${axes[0]} and ${axes[1]}: ${bins.map((b) => `${figure(b.predicted)}: ${figure(b.seen)}`).join(", ")}.`,
    paint: (width) => calibrationChart(width, [bins, blind.calibration.bins], axes, data.rows),
  });
  tables.bins.set(bins.map((bin) => ({ ...bin, gap: bin.seen - bin.predicted })));
}

function calibrationChart(width, lines, [what, seen], n) {
  const height = Math.min(420, Math.max(280, width * 0.75));
  const [left, right, top, bottom] = [58, width - 12, 12, height - 44];
  const values = lines.flat().flatMap((b) => [b.predicted, b.seen]);
  const [low, high] = spread(values);
  const x = linear(low, high, left, right);
  const y = linear(low, high, bottom, top);
  const svg = canvas(width, height, ...valueAxis(ticks(low, high, 5), y, left, right));
  for (const v of ticks(low, high, 5)) svg.append(words(x(v), bottom + 18, figure(v), "tick", "middle"));
  svg.append(draw("line", { x1: x(low), y1: y(low), x2: x(high), y2: y(high), class: "ideal" }));
  [...lines.entries()].reverse().forEach(([i, bins]) => {
    svg.append(draw("polyline", { points: bins.map((b) => `${x(b.predicted)},${y(b.seen)}`).join(" "), class: i ? "line thin" : "line", style: `stroke:${tone(i)}`, "stroke-dasharray": DASHES[i] }));
    for (const b of bins) {
      const r = i ? 3 : 3.5 + 7 * Math.sqrt(b.rows / n);
      svg.append(draw("path", { d: SHAPES[i](r), transform: `translate(${x(b.predicted)},${y(b.seen)})`, style: `fill:${tone(i)};stroke:${tone(i)}` },
        draw("title", {}, `${figure(b.predicted)} → ${figure(b.seen)}, ${b.rows} rows`)));
    }
  });
  svg.append(words((left + right) / 2, height - 6, clipped(what, Math.floor(width / 7)), "axis", "middle"));
  return svg;
}

function showModels(data, state) {
  tables.all.set(data.methods.flatMap((method) => method.points.map((p) => ({
    ...p, method: method.name, testQuality: p.test && p.test[0], testCost: p.test && p.test[1], here: p.stop !== null && p.stop === state.stop,
  }))));
}
