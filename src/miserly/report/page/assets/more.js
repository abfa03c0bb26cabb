// What would one more unit buy? The models that cost more, by how much each is better than this one.

function buildMore(data, pick) {
  tables.steps = new Table(byId("steps"), {
    caption: "From this model upwards", open: 10, empty: "No model of this path costs more.",
    columns: [
      { key: "cost", label: "Mean cost", number: true, show: (v, row) => inline(figure(v), `Move the budget to ${figure(v)}`, () => pick(row.stop)) },
      { key: "more", label: "Costs more", number: true },
      { key: "gain", label: "Better by", number: true, show: (v, row) => `${plus(v, twoDigits)}${row.half === null ? "" : ` ± ${twoDigits(row.half)}`}` },
      { key: "each", label: "Per unit", number: true, show: (v) => plus(v, twoDigits) },
      { key: "sure", label: "Beyond the noise" },
    ],
  });
}

function gainsOf(data, detail, state) {
  const here = data.stops[state.stop].cost.mean;
  const path = new Set(data.paths[state.path].stops);
  return detail.gains.filter(([stop]) => path.has(stop)).map(([stop, gain, half]) => {
    const cost = data.stops[stop].cost.mean;
    return { stop, cost, more: cost - here, gain, half, each: gain / (cost - here), isSure: half !== null && gain > half };
  });
}

function showMore(data, detail, state) {
  const gains = gainsOf(data, detail, state);
  byId("more-part").hidden = !gains.length;
  byId("more-lead").textContent = moreLead(data, gains);
  tables.steps.set(gains.map((g) => ({ ...g, sure: g.half === null ? null : g.isSure ? "yes" : "no" })));
  const metric = data.metric.name;
  figures.gains.show({
    title: `What more money adds to ${metric}`,
    note: `Improvement over this model, with 95 % intervals of the difference on the same rows; full marks lie beyond the noise`,
    label: `Improvement over this model: ${gains.map((g) => `${figure(g.cost)}: ${plus(g.gain, twoDigits)}`).join(", ")}.`,
    paint: gains.length ? (width) => gainsChart(width, data, gains, state) : null,
  });
}

function moreLead(data, gains) {
  if (!gains.length) return "This is the most expensive model: more money buys nothing more.";
  const [metric, unit] = [data.metric.name, data.unit];
  const better = (g) => `${plus(g.gain, twoDigits)}${g.half === null ? "" : ` ± ${twoDigits(g.half)}`}`;
  const next = gains[0];
  const sure = gains.find((g) => g.isSure);
  const first = `The next model costs ${figure(next.more)} ${unit} more a row and ${next.isSure ? "improves" : "changes"} ${metric} by ${better(next)}${next.half === null || next.isSure ? "" : ", within the noise of these rows"}.`;
  if (sure === next) return `${first} That is ${twoDigits(sure.each)} for each ${unit}.`;
  return `${first} ` + (sure
    ? `The first improvement beyond the noise costs ${figure(sure.more)} ${unit} more: ${metric} is better by ${better(sure)}, which is ${twoDigits(sure.each)} for each ${unit}.`
    : next.half === null ? "" : `No more expensive model is better beyond the noise of these ${data.rows.toLocaleString("en-US")} rows.`);
}

function gainsChart(width, data, gains, state) {
  const height = width < 480 ? 260 : 340;
  const [left, right, top, bottom] = [62, width - 16, 14, height - 44];
  const here = data.stops[state.stop].cost.mean;
  const [low, high] = spread([0, ...gains.flatMap((g) => [g.gain - (g.half ?? 0), g.gain + (g.half ?? 0)])]);
  const x = linear(here, gains.at(-1).cost, left + 10, right - 8);
  const y = linear(low, high, bottom, top);
  const svg = canvas(width, height, ...valueAxis(ticks(low, high, 5), y, left, right));
  for (const c of ticks(here, gains.at(-1).cost, width / 90)) svg.append(words(x(c), bottom + 18, compact(c), "tick", "middle"));
  svg.append(draw("line", { x1: left, x2: right, y1: y(0), y2: y(0), class: "base" }), words(right, y(0) - 5, "this model", "tick halo", "end"));
  for (const g of gains) {
    const tone_ = `stroke:${tone(0)};fill:${g.isSure ? tone(0) : "var(--card)"}`;
    if (g.half !== null) svg.append(draw("line", { x1: x(g.cost), x2: x(g.cost), y1: y(g.gain - g.half), y2: y(g.gain + g.half), class: "whisker", style: tone_ }));
    svg.append(draw("circle", { cx: x(g.cost), cy: y(g.gain), r: 4.5, style: tone_, "stroke-width": 1.8 }, draw("title", {}, `${figure(g.cost)}: ${plus(g.gain, twoDigits)}`)));
  }
  svg.append(draw("circle", { cx: x(here), cy: y(0), r: 7, class: "now" }), words((left + right) / 2, height - 6, `mean cost per row (${data.unit})`, "axis", "middle"));
  return svg;
}
