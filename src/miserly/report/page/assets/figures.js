// Pictures as SVG, drawn again when their frame changes; each can be saved as a file.

const SHAPES = [
  (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`,
  (r) => `M${-r * 0.9},${-r * 0.9}h${1.8 * r}v${1.8 * r}h${-1.8 * r}z`,
  (r) => `M0,${-1.3 * r}L${1.3 * r},0L0,${1.3 * r}L${-1.3 * r},0z`,
  (r) => `M0,${-1.2 * r}L${1.15 * r},${0.85 * r}L${-1.15 * r},${0.85 * r}z`,
  (r) => `M0,${1.2 * r}L${1.15 * r},${-0.85 * r}L${-1.15 * r},${-0.85 * r}z`,
  (r) => `M${-r},${-r}L${r},${r}M${r},${-r}L${-r},${r}M0,${-1.2 * r}V${1.2 * r}`,
];
const DASHES = [null, "7 4", "2 3", "9 3 2 3", "1 4", "12 4"];
const HATCHES = [
  null,
  "M-1,1l2,-2M0,6l6,-6M5,7l2,-2",
  "M0,3h6",
  "M3,0v6",
  "M0,0l6,6M-1,5l2,2M5,-1l2,2",
  "M0,3h6M3,0v6",
];
const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity",
  "font-family", "font-size", "font-weight", "font-style", "text-anchor", "dominant-baseline"];

const tone = (i) => `var(--series-${i % 6})`;

/** A figure's frame: heading, the picture, a legend, and a button that saves it. `paint(width)` gives the SVG. */
class Figure {
  constructor(host, name) {
    this.host = host;
    this.name = name;
    this.width = 0; // of the frame, measured only when it changes: asking for it makes the browser lay out the page
    this.heading = make("h3");
    this.note = make("p", { class: "note" });
    this.legend = make("ul", { class: "legend" });
    this.tools = make("div", { class: "figure-tools" });
    this.frame = make("div", { class: "frame" });
    this.button = make("button", { type: "button", class: "quiet", onclick: () => this.save() }, "Save SVG");
    this.tools.append(this.button);
    const caption = make("figcaption", {}, make("div", {}, this.heading, this.note), this.tools);
    host.replaceChildren(caption, this.legend, this.frame);
    new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width === this.width) return;
      this.width = width;
      this.paintNow();
    }).observe(this.frame);
  }

  /** Paint at once in the width that there is now: what is printed does not wait to be measured. */
  fit() {
    this.width = Math.floor(this.frame.clientWidth) || this.width;
    this.paintNow();
  }

  /** Show a picture: {title, note, legend, label, paint}. Without `paint` the figure is put away. */
  show({ title = "", note = "", legend = [], label = "", paint = null }) {
    this.host.hidden = !paint;
    if (!paint) return;
    this.heading.textContent = title;
    this.button.setAttribute("aria-label", `Save SVG: ${title}`);
    this.note.textContent = note;
    this.legend.replaceChildren(...legend.map(([key, text]) => make("li", {}, key, text)));
    this.legend.hidden = !legend.length;
    this.label = label;
    this.paint = paint;
    this.paintNow();
  }

  paintNow() {
    if (!this.paint || !this.width) return;
    this.svg = this.paint(this.width);
    this.svg.setAttribute("role", "img");
    this.svg.setAttribute("aria-label", this.label);
    if (this.frame.firstChild !== this.svg) this.frame.replaceChildren(this.svg);
    const overflows = this.svg.viewBox.baseVal.width > this.width + 1;
    for (const [key, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", this.heading.textContent]]) {
      if (overflows) this.frame.setAttribute(key, value);
      else this.frame.removeAttribute(key);
    }
  }

  save() {
    const blob = new Blob([standalone(this.svg)], { type: "image/svg+xml" });
    const link = make("a", { href: URL.createObjectURL(blob), download: `${this.name}.svg` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}

/** An SVG with its styles inside, for other programs. */
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const theirs = copy.querySelectorAll("*");
  svg.querySelectorAll("*").forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const key of KEPT) theirs[i].setAttribute(key, style.getPropertyValue(key));
    theirs[i].removeAttribute("class");
  });
  const { width, height } = svg.viewBox.baseVal;
  const paper = getComputedStyle(document.body).getPropertyValue("background-color");
  copy.prepend(draw("rect", { width, height, fill: paper }));
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return `<?xml version="1.0" encoding="UTF-8"?>\n${copy.outerHTML}`;
}

function canvas(width, height, ...children) {
  const size = { width, height, viewBox: `0 0 ${width} ${height}`, class: "picture" };
  return draw("svg", size, ...children);
}

function words(x, y, text, kind = "", anchor = "start") {
  return draw("text", { x, y, class: kind, "text-anchor": anchor }, text);
}

/** Key of a series in a legend: its line and its mark, or a patch of its hatching. */
function lineKey(i) {
  const line = draw("path", { d: "M1,7H27", class: "line", style: `stroke:${tone(i)}`, "stroke-dasharray": DASHES[i % 6] });
  const mark = draw("path", { d: SHAPES[i % 6](4), transform: "translate(14,7)", style: `fill:${tone(i)};stroke:${tone(i)}` });
  return draw("svg", { width: 28, height: 14, "aria-hidden": "true" }, line, mark);
}

function patchKey(i) {
  const box = { x: 1, y: 1, width: 12, height: 12 };
  return draw("svg", { width: 14, height: 14, "aria-hidden": "true" }, hatches([i]), ...hatched(box, i));
}

function hatches(numbers) {
  const patterns = [...new Set(numbers.map((i) => i % 6))].filter((i) => HATCHES[i]).map((i) =>
    draw("pattern", { id: `hatch-${i}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
      draw("path", { d: HATCHES[i], class: "hatch" })));
  return draw("defs", {}, ...patterns);
}

function hatched(box, i) {
  const parts = [draw("rect", { ...box, style: `fill:${tone(i)}` })];
  if (HATCHES[i % 6]) parts.push(draw("rect", { ...box, fill: `url(#hatch-${i % 6})` }));
  return parts;
}

/** Round numbers from low to high, about n of them. */
function ticks(low, high, n) {
  const raw = (high - low) / Math.max(1, n);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= 0.8 * raw);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

function logTicks(low, high, most) {
  for (const steps of [[1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9], [1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    const found = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++)
      for (const m of steps) if (m * 10 ** e >= low * 0.999 && m * 10 ** e <= high * 1.001) found.push(m * 10 ** e);
    if (found.length <= most) return found.length > 1 ? found : [low, high];
  }
  const all = ticks(Math.log10(low), Math.log10(high), most).map((e) => 10 ** e);
  return all;
}

/** Logarithmic from the smallest positive cost; what is free stands at the left edge. */
function costScale(costs, left, right) {
  const positive = costs.filter((c) => c > 0);
  const [low, high] = positive.length ? [Math.min(...positive), Math.max(...positive)] : [1, 1];
  const start = costs.some((c) => c <= 0) ? left + 28 : left;
  const span = Math.log(high / low) || 1;
  const at = (c) => (c <= 0 ? left : c < low ? start : start + (Math.log(c / low) / span) * (right - start));
  return { at, low, high, free: start > left };
}

function linear(low, high, from, to) {
  const span = high - low || 1;
  return (v) => from + ((v - low) / span) * (to - from);
}

/** Horizontal lines with their numbers on the left. */
function valueAxis(values, y, left, right) {
  return values.flatMap((v) => [
    draw("line", { x1: left, x2: right, y1: y(v), y2: y(v), class: "grid" }),
    words(left - 8, y(v) + 4, figure(v), "tick", "end"),
  ]);
}

function compact(x) {
  if (Math.abs(x) >= 1e6) return `${figure(x / 1e6)}M`;
  return Math.abs(x) >= 1e4 ? `${figure(x / 1e3)}k` : figure(Number(x.toPrecision(4)));
}
