// Can I trust it? How often each class is found, what is taken for what, calibration, and what mistakes cost.

const MOST_CLASSES = 12; // in a matrix of counts
const MOST_PRICED = 4; // classes whose mistakes are priced one by one

function buildTrust(data) {
  const rates = [["sensitivity", "Sensitivity, %"], ["specificity", "Specificity, %"], ["positive", "Positive predictive value, %"], ["negative", "Negative predictive value, %"]];
  tables.rates = new Table(byId("rates"), {
    caption: "How well each class is found", open: 12,
    columns: [
      { key: "label", label: "Class", wide: true },
      { key: "rows", label: "Rows", number: true, show: (v) => v.toLocaleString("en-US") },
      ...rates.map(([key, label]) => ({ key, label, number: true, show: ofShare })),
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
  buildMistakes(data);
}

function showTrust(data, detail, blind, state) {
  byId("trust-lead").textContent = trustLead(data, detail);
  byId("rates").hidden = byId("confusion").hidden = !data.classes;
  if (data.classes) {
    tables.rates.set(detail.rates);
    tables.rates.say("Ends of 95 % intervals stand in brackets.");
    showConfusion(data, data.stops[state.stop]);
  }
  showErrors(data, detail);
  showCalibration(data, detail, blind);
  showMistakes(data, state);
}

function trustLead(data, detail) {
  const parts = [];
  if (detail.right) parts.push(`${share1(detail.right[0])} % of ${many(data.rows, "validation row")} are predicted rightly (95 % interval: ${share1(detail.right[1])} to ${share1(detail.right[2])}).`);
  else if (!data.byQuery) parts.push(`Predictions are off by ${figure(detail.errors.mean)} on average over ${many(data.rows, "validation row")}.`);
  if (detail.calibration.gap !== null)
    parts.push(data.classes ? `Probabilities differ from what is observed by ${share1(detail.calibration.gap)} percentage points on average.` : `Predictions differ from the mean label of their tenth of the rows by ${figure(detail.calibration.gap)} on average.`);
  if (data.byQuery) parts.push(`${data.metric.name} is ${figure(data.stops[state.stop].quality)} over all queries; single queries differ.`);
  return parts.join(" ");
}

/** Counts of true classes and predictions; of many classes, the most frequent mistakes. */
function showConfusion(data, stop) {
  const counts = stop.confusion;
  const names = data.classes;
  if (names.length > MOST_CLASSES) {
    const mistakes = counts.flatMap((line, i) => line.map((n, j) => [n, i, j])).filter(([n, i, j]) => n && i !== j).sort((a, b) => b[0] - a[0]).slice(0, 12);
    byId("confusion").replaceChildren(make("h3", {}, "The most frequent mistakes"),
      plainTable(["True", "Predicted", "Rows"], mistakes.map(([n, i, j]) => [names[i], names[j], n.toLocaleString("en-US")])));
    return;
  }
  const head = make("tr", {}, make("td", { class: "corner" }, "true ↓ predicted →"), ...names.map((name) => make("th", { scope: "col", class: "number" }, name)));
  const rows = counts.map((line, i) => {
    const sum = line.reduce((a, b) => a + b, 0);
    return make("tr", {}, make("th", { scope: "row" }, names[i]), ...line.map((n, j) => {
      const cell = make("td", { class: i === j ? "number right" : n ? "number wrong" : "number none" }, n.toLocaleString("en-US"));
      if (sum) cell.style.setProperty("--part", `${Math.round((60 * n) / sum)}%`);
      return cell;
    }));
  });
  const table = make("table", { class: "confusion" }, make("thead", {}, head), make("tbody", {}, ...rows));
  byId("confusion").replaceChildren(make("h3", {}, "What is taken for what"), make("p", { class: "note" }, "Numbers of validation rows; on the diagonal they are predicted rightly."),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What is taken for what" }, table));
}

function plainTable(names, lines) {
  return make("table", { class: "plain-table" }, make("thead", {}, make("tr", {}, ...names.map((n, i) => make("th", { scope: "col", class: i === names.length - 1 ? "number" : null }, n)))),
    make("tbody", {}, ...lines.map((line) => make("tr", {}, ...line.map((v, i) => make("td", { class: i === line.length - 1 ? "number" : null }, v))))));
}

function showErrors(data, detail) {
  byId("errors").hidden = !detail.errors;
  if (!detail.errors) return;
  const { what, mean, shares } = detail.errors;
  const isQuery = what === "queries";
  byId("errors").replaceChildren(make("h3", {}, isQuery ? `${capital(data.metric.name)} of single queries` : "How far predictions are off"),
    make("dl", { class: "facts" }, ...[["Mean", mean], ...shares.map(([s, v]) => [`${isQuery ? "Not exceeded by" : "At most, for"} ${s} % of ${what}`, v])].map(([name, v]) => make("div", {}, make("dt", {}, name), make("dd", {}, figure(v))))));
}

function showCalibration(data, detail, blind) {
  const { axes, bins } = detail.calibration;
  byId("bins").hidden = !bins.length;
  figures.calibration.show({
    title: "Predicted and observed",
    note: (data.classes ? "On the diagonal, a probability of 80 % is right four times out of five" : "On the diagonal, rows with this prediction have this label on average") + "; larger marks stand for more rows",
    legend: [[lineKey(0), "this model"], [lineKey(1), data.blindName]],
    label: `${axes[0]} and ${axes[1]}: ${bins.map((b) => `${figure(b.predicted)}: ${figure(b.seen)}`).join(", ")}.`,
    paint: bins.length ? (width) => calibrationChart(width, [bins, blind.calibration.bins], axes, data.rows) : null,
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

// ---- what mistakes cost: filled in by the reader ----

function buildMistakes(data) {
  const host = byId("mistakes");
  host.hidden = !data.classes;
  if (host.hidden) return;
  const names = data.classes;
  const pairs = names.length > MOST_PRICED ? [[null, null]] : names.flatMap((_, i) => names.map((_, j) => [i, j])).filter(([i, j]) => i !== j);
  const fields = pairs.map(([i, j]) => make("label", {}, i === null ? "Any wrong prediction" : `${names[i]}, predicted ${names[j]}`,
    make("input", { type: "number", min: "0", step: "any", inputmode: "decimal", placeholder: "your cost", "data-true": i, "data-said": j })));
  host.append(make("h3", {}, "What do mistakes cost?"),
    make("p", { class: "note" }, `Fill in what a mistake costs in ${data.unit}; what stays empty costs nothing.`),
    make("div", { class: "fields" }, ...fields), make("div", { id: "mistakes-sum" }));
  host.addEventListener("input", () => showMistakes(data, state));
}

/** Tests and mistakes for the models of the path: mean cost of a row, and counts of mistakes times their costs, with
 * the 95 % interval of the sum by the normal approximation. */
function showMistakes(data, state) {
  if (!data.classes) return;
  const inputs = [...byId("mistakes").querySelectorAll("input")].filter((input) => Number(input.value) > 0);
  const sum = byId("mistakes-sum");
  if (!inputs.length) return sum.replaceChildren();
  const total = (s) => {
    const { confusion, cost, spent } = data.stops[s];
    const overCells = (f) => confusion.flatMap((line, i) => line.map((n, j) => (i === j ? 0 : f(n, priceOf(inputs, i, j), spent.cells[i][j])))).reduce((a, b) => a + b, 0) / data.rows;
    const mistakes = overCells((n, price) => n * price), total = cost.mean + mistakes;
    const squares = spent.squares / data.rows + overCells((n, price, paid) => price * (2 * paid + n * price));
    const half = 1.96 * Math.sqrt(Math.max(0, squares - total * total) / data.rows);
    return { stop: s, tests: cost.mean, mistakes, total, interval: `${figure(total - half)} to ${figure(total + half)}` };
  };
  const all = data.paths[state.path].stops.map(total);
  const best = all.reduce((a, b) => (b.total < a.total ? b : a));
  const here = total(state.stop);
  const line = (name, t) => make("tr", { class: t.stop === state.stop ? "here" : null }, make("th", { scope: "row" }, name), ...[...[t.tests, t.mistakes, t.total].map(figure), t.interval].map((v) => make("td", { class: "number" }, v)));
  const head = make("tr", {}, make("td"), ...["Tests", "Mistakes", "Together", "95 % interval"].map((n) => make("th", { scope: "col", class: "number" }, n)));
  sum.replaceChildren(
    make("table", { class: "compare" }, make("thead", {}, head), make("tbody", {}, line("This model", here), ...(best.stop === state.stop ? [] : [line(`Least: mean cost ${figure(best.tests)}`, best)]), line(capital(data.blindName), total(data.blind)))),
    make("p", { class: "note" }, `Mean of a row in ${data.unit}, with predictions as they are. A model that is chosen with front.choose(error_costs=…) also turns its predictions to the cheaper mistake. `,
      best.stop === state.stop ? "This model is the least." : inline("Go to the least", `Move the budget to ${figure(best.tests)}, where tests and mistakes together cost least`, () => state.pick(best.stop))),
  );
}

function priceOf(inputs, i, j) {
  const found = inputs.find((input) => input.dataset.true === undefined || (Number(input.dataset.true) === i && Number(input.dataset.said) === j));
  return found ? Number(found.value) : 0;
}
