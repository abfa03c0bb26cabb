// Quality against cost: all models, the fronts, and where the slider stands.

function frontierPicture(figure_, data, state, pick) {
  const { unit, metric, methods } = data;
  const legend = methods.map((method, i) => [lineKey(i), method.name]);
  const markKey = (kind) => draw("svg", { width: 18, height: 14, "aria-hidden": "true" },
    draw("circle", { cx: 9, cy: 7, r: 5, class: kind }));
  legend.push([markKey("ring now-key"), "under the slider"]);
  if (data.chosen !== null) legend.push([markKey("ring chosen"), "chosen"]);
  legend.push([markKey("ring blind"), data.blindName]);
  if (state.detail.prefixes.length) {
    const line = draw("path", { d: "M1,7H27", class: "prefix" });
    legend.push([draw("svg", { width: 28, height: 14, "aria-hidden": "true" }, line), "this model stopped early"]);
  }
  const here = data.stops[state.stop];
  figure_.show({
    title: `${metric.name} against cost`,
    note: `Mean cost of a validation row in ${unit}, logarithmic` + (metric.greater ? "" : `; lower ${metric.name} is better`) +
      (data.constant === null ? "" : `. A constant prediction has ${metric.name} ${figure(data.constant)}`),
    legend,
    label: `${metric.name} against mean cost for ${methods.map((m) => m.name).join(", ")}. Under the slider: ` +
      `${figure(here.quality)} for ${figure(here.cost.mean)} ${unit}. All figures are in the table of all models.`,
    paint: (width) => frontierChart(width, data, state, pick),
  });
}

/** The chart without the slider's mark, drawn once for each width: `live` is the place of what moves. */
let ground = null;

function frontierChart(width, data, state, pick) {
  if (!ground || ground.width !== width) ground = frontierGround(width, data, pick);
  const { x, y, low, high, left, bottom, live } = ground;
  const line = state.detail.prefixes.filter(([, q]) => q >= low && q <= high).map(([c, q]) => `${x.at(c)},${y(q)}`);
  live.replaceChildren(
    draw("polyline", { points: line.join(" "), class: "prefix" }),
    ...[[data.blind, "ring blind", 10], [data.chosen, "ring chosen", 12]]
      .filter(([stop]) => stop !== null)
      .map(([stop, kind, r]) => ring(data.stops[stop], kind, r, x, y)),
    ...nowMark(data.stops[state.stop], x, y, bottom, left),
  );
  return ground.svg;
}

function frontierGround(width, data, pick) {
  const height = width < 480 ? 300 : width < 640 ? 400 : 500;
  const [left, right, top, bottom] = [58, width - 16, 14, height - 44];
  const points = data.methods.flatMap((method) => method.points);
  const values = points.flatMap((p) => (p.front ? ends(data.stops[p.stop]) : [p.quality]));
  const [bottomMost, topMost] = [Math.min(...values), Math.max(...values)];
  const near = data.constant !== null && Math.max(bottomMost - data.constant, data.constant - topMost) <= 1.5 * (topMost - bottomMost);
  const [low, high] = spread(near ? [...values, data.constant] : values);
  const x = costScale(points.map((p) => p.cost), left + 12, right - 12);
  const y = linear(low, high, bottom, top);
  const svg = canvas(width, height, ...valueAxis(ticks(low, high, 6), y, left, right));
  if (data.constant >= low && data.constant <= high)
    svg.append(draw("line", { x1: left, x2: right, y1: y(data.constant), y2: y(data.constant), class: "ideal" }),
      words(right, y(data.constant) - 5, "constant prediction", "tick halo", "end"));
  for (const c of logTicks(x.low, x.high, width / 70))
    svg.append(draw("line", { x1: x.at(c), x2: x.at(c), y1: top, y2: bottom, class: "grid" }),
      words(x.at(c), bottom + 18, compact(c), "tick", "middle"));
  if (x.free) svg.append(words(x.at(0), bottom + 18, "free", "tick", "middle"));
  svg.append(words((left + right) / 2, height - 6, `mean cost per row (${data.unit})`, "axis", "middle"));
  data.methods.forEach((method, m) => svg.append(...frontOf(method, m, data, x, y)));
  const live = draw("g");
  svg.append(live, ...targets(points, x, y, pick));
  return { width, svg, live, x, y, low, high, left, bottom };
}

function ends(stop) {
  const half = stop.half || 0;
  return [stop.quality - half, stop.quality + half];
}

/** A little more than all values need, without being pressed flat by the worst of them. */
function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[0], sorted.at(-1)];
  const margin = 0.06 * (high - low) || Math.abs(high) * 0.05 || 1;
  return [low - margin, high + margin];
}

function frontOf(method, m, data, x, y) {
  const parts = method.points.filter((p) => !p.front).map((p) =>
    draw("path", { d: SHAPES[m % 6](3.2), transform: `translate(${x.at(p.cost)},${y(p.quality)})`, class: "faint", style: `fill:${tone(m)};stroke:${tone(m)}` }));
  const front = method.points.filter((p) => p.front).sort((a, b) => a.cost - b.cost);
  const steps = front.map((p, i) => (i ? `H${x.at(p.cost)}V${y(p.quality)}` : `M${x.at(p.cost)},${y(p.quality)}`));
  parts.push(draw("path", { d: steps.join(""), class: "line", style: `stroke:${tone(m)}`, "stroke-dasharray": DASHES[m % 6] }));
  for (const p of front) {
    const [a, b] = ends(data.stops[p.stop]);
    parts.push(draw("line", { x1: x.at(p.cost), x2: x.at(p.cost), y1: y(a), y2: y(b), class: "whisker", style: `stroke:${tone(m)}` }));
    parts.push(draw("path", { d: SHAPES[m % 6](4), transform: `translate(${x.at(p.cost)},${y(p.quality)})`, style: `fill:${tone(m)};stroke:${tone(m)}` }));
  }
  return parts;
}

function ring(stop, kind, r, x, y) {
  return draw("circle", { cx: x.at(stop.cost.mean), cy: y(stop.quality), r, class: kind });
}

function nowMark(stop, x, y, bottom, left) {
  const [cx, cy] = [x.at(stop.cost.mean), y(stop.quality)];
  return [
    draw("path", { d: `M${cx},${bottom}V${cy}H${left}`, class: "cross" }),
    draw("circle", { cx, cy, r: 7.5, class: "now" }),
  ];
}

/** What a pointer can hit: the slider does the same for keyboards. */
function targets(points, x, y, pick) {
  return points.filter((p) => p.front).map((p) =>
    draw("circle", { cx: x.at(p.cost), cy: y(p.quality), r: 13, class: "target", onclick: () => pick(p.stop) },
      draw("title", {}, `${p.params}: ${figure(p.quality)} for ${figure(p.cost)}`)));
}
