// One row on its way through the plan under the slider.

function walkOf(data, stop, index) {
  const { ways, costs, rows } = stop.walks;
  const [way, numbers, labels] = rows[index];
  const { moved } = stop.walks;
  return ways[way].map((buys, i) => ({
    buys,
    cost: costs[way][i],
    answer: data.classes ? data.classes[labels[i]] : numbers[i],
    probability: data.classes ? numbers[i] : null,
    of: moved && moved.outputs[moved.rows[index][0]],
    moved: moved && moved.rows[index][1][i],
  }));
}

function buildWalk(data, walkRow) {
  const rowButton = (row) => inline(String(row.row), `Walk row ${row.row}`, () => walkRow(row.index), row.here ? "true" : "false");
  tables.rows = new Table(byId("rows"), {
    caption: "Validation rows", filter: "Filter", open: 8,
    columns: [
      { key: "row", label: "Row", number: true, show: (v, row) => rowButton(row) },
      ...(data.queries === null ? [] : [{ key: "query", label: "Query" }]),
      { key: "label", label: "Label", number: data.classes === null, show: String },
      { key: "answer", label: "Prediction", number: data.classes === null },
      ...(data.classes === null ? [] : [{ key: "probability", label: "Probability", number: true }]),
      { key: "cost", label: "Paid", number: true },
    ],
  });
}

function showRows(data, detail, state) {
  const queries = data.queries === null ? "" : ` of ${many(data.queries, "query", "queries")}`;
  byId("walk-lead").textContent =
    `${data.walked.length} of ${many(data.rows, "validation row")}${queries}, from the cheapest to the most expensive. Pick one to see what is bought for it, and the prediction after each purchase.`;
  tables.rows.set(data.walked.map((row, index) => {
    const last = walkOf(data, detail, index).at(-1);
    return { ...row, label: data.classes ? row.label : Number(row.label.replaceAll(",", "")), index, answer: last.answer, probability: last.probability, cost: last.cost, here: index === state.row };
  }));
}

function showWalk(data, detail, blind, state) {
  const row = data.walked[state.row];
  const steps = walkOf(data, detail, state.row);
  const there = walkOf(data, blind, state.row).at(-1);
  const last = steps.at(-1);
  const shown = (step) => (step.probability === null ? figure(step.answer) : `${step.answer} (${figure(step.probability)})`);
  const owned = new Set();
  const items = steps.map((step, i) => {
    step.buys.forEach((a) => owned.add(a));
    const names = step.buys.map((a) => data.acquisitions[a].name);
    const seen = valuesOf(data, row, step.buys, owned, i === 0);
    return make("li", {},
      make("div", { class: "step-what" },
        make("strong", {}, i === 0 ? "Before any purchase" : `Buys ${some(names, 4)}`),
        seen.length ? make("span", { class: "soft" }, some(seen, 4)) : null,
        step.moved === null ? null : make("span", { class: "soft" }, movedText(data, step, i))),
      make("div", { class: "step-figures" },
        make("span", {}, make("small", {}, "predicts "), shown(step)),
        make("span", {}, make("small", {}, "paid "), figure(step.cost))));
  });
  figures.walk ??= new Figure(make("figure", { class: "plain" }), "row");
  const facts = [["Label", row.label], ["Prediction", shown(last)], ["Paid", figure(last.cost)], [capital(data.blindName), `${shown(there)} for ${figure(there.cost)}`]];
  if (row.query !== null) facts.unshift(["Query", row.query]);
  byId("way").replaceChildren(
    make("div", { class: "table-head" }, make("h3", {}, `Row ${row.row}`),
      make("span", {}, nextButton("Previous row", "‹", -1, data, state), nextButton("Next row", "›", 1, data, state))),
    make("dl", { class: "facts" }, ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    figures.walk.host,
    make("ol", { class: "steps", start: "0", tabindex: "0", "aria-label": `Purchases of row ${row.row}` }, ...items),
  );
  figures.walk.show({
    title: steps[0].probability === null ? "Prediction by what is paid" : "Probability of the prediction by what is paid",
    label: `After each purchase of row ${row.row}: ${steps.map((s) => `${figure(s.cost)}: ${shown(s)}`).join(", ")}.`,
    paint: steps.length > 1 ? (width) => walkChart(width, data, row, steps) : null,
  });
}

/** What a purchase did to the score; these parts add up to it. */
function movedText(data, step, i) {
  const of = data.classes && (step.of === "score" ? data.classes.at(-1) : step.of);
  const what = of ? `score of ${of}` : "score";
  return i === 0 ? `${what} ${signed(step.moved)}` : `${what} moved by ${signed(step.moved)}`;
}

function nextButton(name, sign, by, data, state) {
  const go = () => {
    state.walkRow((state.row + by + data.walked.length) % data.walked.length);
    document.querySelector(`#way button[aria-label="${name}"]`).focus();
  };
  return make("button", { type: "button", class: "quiet square", "aria-label": name, onclick: go }, sign);
}

/** The values that a purchase brought: features all of whose acquisitions are owned by now. */
function valuesOf(data, row, buys, owned, free) {
  const found = [];
  data.features.forEach(([name, needs], f) => {
    const brought = free ? !needs.length : needs.some((a) => buys.includes(a));
    if (brought && needs.every((a) => owned.has(a))) found.push(`${name} = ${row.values[f] === null ? "missing" : figure(row.values[f])}`);
  });
  return found;
}

function walkChart(width, data, row, steps) {
  const [height, left, right, top, bottom] = [190, 52, width - 10, 12, 148];
  const values = steps.map((s) => (s.probability === null ? s.answer : s.probability));
  const target = data.classes ? null : Number(row.label.replaceAll(",", ""));
  const [low, high] = spread([...values, ...(target === null ? [] : [target])]);
  const x = linear(0, steps.at(-1).cost || 1, left, right);
  const y = linear(low, high, bottom, top);
  const svg = canvas(width, height, ...valueAxis(ticks(low, high, 4), y, left, right));
  for (const c of ticks(0, steps.at(-1).cost || 1, width / 90)) svg.append(words(x(c), bottom + 16, compact(c), "tick", "middle"));
  if (target !== null) svg.append(draw("line", { x1: left, x2: right, y1: y(target), y2: y(target), class: "ideal" }), words(right, y(target) - 5, "label", "tick halo", "end"));
  const line = steps.map((s, i) => (i ? `H${x(s.cost)}V${y(values[i])}` : `M${x(s.cost)},${y(values[i])}`));
  svg.append(draw("path", { d: `${line.join("")}H${right}`, class: "line", style: `stroke:${tone(0)}` }));
  steps.forEach((s, i) => svg.append(draw("circle", { cx: x(s.cost), cy: y(values[i]), r: steps.length > 40 ? 2 : 3.5, style: `fill:${tone(0)}` })));
  svg.append(words((left + right) / 2, height - 6, `paid (${data.unit})`, "axis", "middle"));
  return svg;
}
