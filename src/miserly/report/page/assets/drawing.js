// The plan as a drawing: a staircase of purchases, a funnel of rows, or a tree.

function planPicture(figure_, data, detail) {
  const boxes = detail.boxes;
  const everyone = detail.purchases.every((line) => line.share === 1);
  if (detail.byPath || (boxes.length < 2 && !everyone)) return purchasesPicture(figure_, data, detail);
  const alike = detail.funnel && everyone && boxes.every((box) => box.share === boxes[0].share);
  const [title, note, paint] = alike
    ? ["How the budget is spent", `Every row buys all of it; bars show what is paid by then, in ${data.unit}`, staircase]
    : detail.funnel
      ? ["Rows at each stage", "Bars: the share of rows that reach each stage, in the colour of their label", funnel]
      : ["Rows at each node", "Size: rows that reach it; colour: their label; solid lines pass the gate, dashed ones do not", tree];
  const legend = alike ? [] : labelLegend(data);
  const label = boxes.map((box) => `${boxName(box)}: ${bought(box)}, ${percent(box.share)} of rows`).join("; ");
  figure_.show({ title, note, legend, label: `${title}. ${label}.`, paint: boxes.length ? (w) => paint(w, data, boxes) : null });
}

/** Where each row pays for its own path: which share of rows buys what. */
function purchasesPicture(figure_, data, detail) {
  const lines = detail.purchases.slice(0, 16);
  const names = (line) => line.name;
  figure_.show({
    title: "Which rows buy what",
    note: "Share of rows that buy it, in the order of purchase; rows differ",
    label: `Share of rows that buy: ${lines.map((line) => `${names(line)} ${percent(line.share)}`).join(", ")}.`,
    paint: lines.length ? (width) => purchaseBars(width, lines.map((line) => [`${names(line)} · ${figure(line.price)}`, line.share])) : null,
  });
}

function purchaseBars(width, lines) {
  const step = 36;
  const svg = canvas(width, lines.length * step + 4);
  lines.forEach(([text, share], i) => {
    const top = i * step;
    svg.append(words(0, top + 13, clipped(text, Math.floor((width - 60) / 6.4)), "small"));
    svg.append(words(width, top + 13, percent(share), "tick", "end"));
    svg.append(draw("rect", { x: 0, y: top + 18, width, height: 9, rx: 4, class: "track" }));
    svg.append(draw("rect", { x: 0, y: top + 18, width: Math.max(3, share * width), height: 9, rx: 4, class: "bar" }));
  });
  return svg;
}

const boxName = (box) => (box.nodes > 1 ? `Nodes from box ${box.box + 1}` : `Node ${box.box + 1}`);
const bought = (box) => (box.buys.length ? `buys ${some(box.buys, 3)} for ${figure(box.price)}` : "buys nothing");

/** Classes have a colour each; numbers run from pale to full. */
function labelStyle(data, box) {
  if (box.label === null) return "fill:var(--line)";
  if (data.classes) return `fill:${tone(data.classes.indexOf(box.label))}`;
  const [low, high] = data.labels;
  const share = high > low ? Math.min(1, Math.max(0, (box.label - low) / (high - low))) : 0.5;
  return `fill:color-mix(in oklab, var(--deep) ${Math.round(100 * share)}%, var(--pale))`;
}

function labelLegend(data) {
  if (data.classes)
    return data.classes.slice(0, 6).map((name, i) => [patch(`fill:${tone(i)}`), `mostly ${name}`]);
  const [low, high] = data.labels;
  return [low, high].map((v, i) => [patch(labelStyle(data, { label: v })), `mean label ${figure(v)}${i ? " or more" : " or less"}`]);
}

function patch(style) {
  return draw("svg", { width: 14, height: 14, "aria-hidden": "true" }, draw("rect", { x: 1, y: 1, width: 12, height: 12, style }));
}

/** What is paid after each purchase: each bar begins where the one before ended. */
function staircase(width, data, boxes) {
  const step = 30;
  const height = boxes.length * step + 26;
  const all = boxes.at(-1).total;
  const x = linear(0, all || 1, 0, width);
  const svg = canvas(width, height);
  boxes.forEach((box, i) => {
    const [from, to] = [i ? boxes[i - 1].total : 0, box.total];
    const top = i * step;
    const text = `${some(box.buys, 3) || "nothing more"} · ${figure(box.price)}`;
    const fits = clipped(text, Math.floor(width / 6.4));
    svg.append(draw("rect", { x: 0, y: top + 17, width, height: 8, rx: 4, class: "track" }));
    svg.append(draw("rect", { x: x(from), y: top + 17, width: Math.max(3, x(to) - x(from)), height: 8, rx: 4, class: "bar" },
      draw("title", {}, box.buys.join(", "))));
    svg.append(words(0, top + 12, fits, "small"));
  });
  svg.append(words(width, height - 6, `${figure(all)} in all, computing apart`, "tick", "end"));
  return svg;
}

/** The share of rows at each stage. */
function funnel(width, data, boxes) {
  const step = 44;
  const svg = canvas(width, boxes.length * step + 4);
  boxes.forEach((box, i) => {
    const top = i * step;
    const text = `${i + 1}. ${bought(box)}${box.gate ? ` · goes on if ${box.gate}` : ""}`;
    svg.append(words(0, top + 13, clipped(text, Math.floor(width / 6.3)), "small"));
    svg.append(draw("rect", { x: 0, y: top + 19, width, height: 17, rx: 3, class: "track" }));
    svg.append(draw("rect", { x: 0, y: top + 19, width: Math.max(2, box.share * width), height: 17, rx: 3, class: "box", style: labelStyle(data, box) },
      draw("title", {}, box.buys.join(", "))));
    const label = box.label === null ? "" : typeof box.label === "number" ? `, mean ${figure(box.label)}` : `, ${percent(box.purity)} ${box.label}`;
    const inside = box.share > 0.6;
    const at = inside ? 8 : box.share * width + 8;
    const letters = Math.floor(((inside ? box.share * width : width - box.share * width) - 12) / 6.5);
    svg.append(words(at, top + 32, clipped(`${percent(box.share)} of rows${label}`, letters), inside ? "small over" : "small"));
  });
  return svg;
}

/** Where boxes stand from left to right: at their places, but on one level never so near that words meet. */
function apart(boxes, wide) {
  const x = boxes.map((box) => box.place * wide);
  for (const level of new Set(boxes.map((box) => box.level))) {
    const here = boxes.filter((box) => box.level === level).sort((a, b) => a.place - b.place).map((box) => box.box);
    const overlap = here.slice(1).reduce((sum, b, i) => sum + Math.max(0, 130 - (x[b] - x[here[i]])), 0);
    x[here[0]] = Math.max(62, x[here[0]] - overlap / 2);
    for (let i = 1; i < here.length; i++) x[here[i]] = Math.max(x[here[i]], x[here[i - 1]] + 130);
  }
  return x;
}

/** Nodes and ways; wider than its frame if there are many leaves. */
function tree(width, data, boxes) {
  const depth = 1 + Math.max(...boxes.map((box) => box.level));
  const ends = boxes.filter((box) => box.passed === null && box.failed === null).length;
  const wide = Math.max(width, ends * 118);
  const step = 118;
  const across = apart(boxes, wide);
  const svg = canvas(Math.max(wide, ...across.map((x) => x + 62)), depth * step + 8);
  const at = (box) => [across[box.box], box.level * step + 36];
  for (const box of boxes)
    for (const [way, kind] of [["passed", "way"], ["failed", "way dashed"]]) {
      if (box[way] === null) continue;
      const [[x1, y1], [x2, y2]] = [at(box), at(boxes[box[way]])];
      const half = (y1 + y2) / 2;
      const weight = 1.2 + 5 * boxes[box[way]].share;
      svg.append(draw("path", { d: `M${x1},${y1}C${x1},${half} ${x2},${half} ${x2},${y2}`, class: kind, "stroke-width": weight }));
    }
  for (const box of boxes) {
    const [x, y] = at(box);
    const r = 9 + 20 * Math.sqrt(box.share);
    const letters = Math.max(12, Math.floor(wide / Math.max(2, 2 ** box.level) / 6.2));
    const label = box.label === null ? "no rows" : typeof box.label === "number" ? `mean ${figure(box.label)}` : box.label;
    const lines = [
      [`${percent(box.share)} · ${label}`, "small strong"],
      [some(box.buys, 2) || "nothing new", "small"],
      [box.gate ? `${box.gate}?` : "predicts", "tick"],
    ];
    svg.append(draw("circle", { cx: x, cy: y, r, class: "box", style: labelStyle(data, box) },
      draw("title", {}, `${percent(box.share)} of rows; ${bought(box)}: ${box.buys.join(", ")}`)));
    lines.forEach(([text, kind], i) => svg.append(words(x, y + r + 14 + 13 * i, clipped(text, Math.min(26, letters)), `${kind} halo`, "middle")));
  }
  return svg;
}
