// The slider, and everything that follows it.

const data = JSON.parse(byId("main-data").textContent);
const known = new Map();
const state = { path: 0, stop: 0, row: 0, by: "label", screen: "buys", detail: null, walkRow, pick };

/** The details of a stop, read when they are first asked for. */
function detailsOf(stop) {
  if (!known.has(stop)) known.set(stop, JSON.parse(byId(`stop-${stop}`).textContent));
  return known.get(stop);
}

/** What each screen shows of a stop. */
const SCREENS = {
  buys: (stop) => {
    byId("verdict").replaceChildren(...sentence(stop.verdict));
    frontierPicture(figures.frontier, data, state, pick);
    showCompare(data, stop);
    showBill(data, stop);
    if (byId("models").open) showModels(data, state);
  },
  order: (stop, detail) => {
    showOrder(data, detail, state);
    showRows(data, detail, state);
    showWalk(data, detail, detailsOf(data.blind), state);
  },
  whom: (stop, detail) => showPeople(data, detail, state),
  trust: (stop, detail) => showTrust(data, detail, detailsOf(data.blind), state),
  more: (stop, detail) => showMore(data, detail, state),
};
const NAMES = Object.keys(SCREENS);
const tables = {};
const figures = {};

/** Show the stop on the screen that is open; the others follow when they are opened. */
function show() {
  state.detail = detailsOf(state.stop);
  showDock(data.stops[state.stop]);
  SCREENS[state.screen](data.stops[state.stop], state.detail);
}

/** One question at a time: the address says which, so that the back button and links work. */
function openScreen(name, focus = false) {
  state.screen = name;
  for (const other of NAMES) byId(other).hidden = other !== name;
  for (const tab of byId("tabs").children) {
    if (tab.hash === `#${name}`) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  const next = byId("tabs").children[NAMES.indexOf(name) + 1];
  byId("onward").replaceChildren(...(next ? [make("a", { href: next.hash }, `Next: ${next.textContent} →`)] : []));
  show();
  if (!focus) return;
  scrollTo(0, Math.min(scrollY, byId("tabs").offsetTop));
  byId(`${name}-title`).focus({ preventScroll: true });
}

/** All questions one below the other, for paper. */
function openAll() {
  for (const name of NAMES) {
    byId(name).hidden = false;
    SCREENS[name](data.stops[state.stop], state.detail);
  }
  for (const each of Object.values(figures)) each.fit();
}

function showDock(stop) {
  const { unit, metric } = data;
  const slider = byId("budget");
  const place = path().indexOf(state.stop);
  slider.value = Math.max(0, place);
  slider.style.setProperty("--fill", `${(100 * Math.max(0, place)) / Math.max(1, path().length - 1)}%`);
  slider.setAttribute("aria-valuetext", `${figure(stop.cost.mean)} ${unit}: ${metric.name} ${figure(stop.quality)}`);
  byId("quality").textContent = figure(stop.quality);
  byId("quality-half").textContent = stop.half === null ? "" : ` ± ${twoDigits(stop.half)}`;
  byId("cost").textContent = figure(stop.cost.mean);
  byId("times").textContent = stop.times === null ? "free" : stop.times >= 1 ? `${stop.times.toFixed(1)}×` : `${(1 / stop.times).toFixed(1)}×`;
  const change = byId("change");
  const size = Math.abs(stop.lost);
  const noticeable = stop.lostHalf !== null && size > stop.lostHalf;
  change.textContent = state.stop === data.blind ? "" : `${stop.lost > 0 ? (metric.greater ? "−" : "+") : metric.greater ? "+" : "−"}${twoDigits(size)}`;
  byId("change-half").textContent = state.stop === data.blind || stop.lostHalf === null ? "" : ` ± ${twoDigits(stop.lostHalf)}`;
  change.parentElement.className = noticeable && stop.lost > 0 ? "worse" : "";
  for (const id of ["change-part", "times-part"]) byId(id).style.visibility = state.stop === data.blind ? "hidden" : "visible"; // keeps its place
  byId("verdict").className = noticeable && stop.lost > 0 ? "verdict warns" : "verdict";
  byId("times-name").textContent = stop.times !== null && stop.times < 1 ? "More expensive" : "Cheaper";
}

const path = () => data.paths[state.path].stops;

/** Show a stop; if it is not on the slider's path, take the path of its method. */
function pick(stop) {
  if (!path().includes(stop)) {
    const other = data.paths.findIndex((way) => way.stops.includes(stop));
    if (other >= 0) choosePath(other);
  }
  state.stop = stop;
  show();
  announce();
}

function choosePath(number) {
  state.path = number;
  byId("path").value = String(number);
  byId("budget").max = path().length - 1;
  const [first, last] = [path()[0], path().at(-1)].map((s) => figure(data.stops[s].cost.mean));
  byId("cheapest").textContent = first;
  byId("most-expensive").textContent = `${last} ${data.unit}`;
}

/** The most expensive stop of the path that costs no more than this: the best within the budget. */
function within(budget) {
  const stops = path().filter((s) => data.stops[s].cost.mean <= budget);
  return stops.length ? stops.at(-1) : path()[0];
}

function walkRow(index) {
  state.row = index;
  showRows(data, state.detail, state);
  showWalk(data, state.detail, detailsOf(data.blind), state);
  byId("live").textContent = `Row ${data.walked[index].row}`;
}

let soon = 0;
function announce() {
  clearTimeout(soon);
  soon = setTimeout(() => { byId("live").textContent = data.stops[state.stop].verdict.replaceAll("**", ""); }, 400);
}

const THEMES = ["light dark", "light", "dark"];
function theme(number) {
  const scheme = THEMES[number];
  document.documentElement.style.colorScheme = scheme;
  document.documentElement.dataset.theme = ["auto", "light", "dark"][number];
  byId("theme").textContent = ["Theme: auto", "Theme: light", "Theme: dark"][number];
  byId("theme").onclick = () => theme((number + 1) % 3);
}

function begin() {
  const { unit, metric, rows, queries, methods } = data;
  const how = queries === null ? "" : ` of ${many(queries, "query", "queries")}`;
  const what = data.outcome === null ? "" : `Predicts ${data.outcome}${data.classes ? ` (${data.classes.slice(0, 6).join(", ")})` : ""} · `;
  byId("about").textContent = `${what}${methods.map((m) => m.name).join(" · ")} · ${many(rows, "validation row")}${how}`;
  byId("quality-name").textContent = metric.name;
  byId("cost-unit").textContent = ` ${unit}`;
  byId("most-unit").textContent = unit;
  byId("times-note").textContent = `than the ${data.blindName}`;
  byId("change-name").textContent = `Change in ${metric.name}`;
  byId("price-name").textContent = `Money for one unit (${unit})`;
  byId("path").replaceChildren(...data.paths.map((way, i) => make("option", { value: i }, way.name)));
  byId("path-part").hidden = data.paths.length < 2;
  const unfinished = methods.filter((m) => !m.complete).map((m) => m.name);
  byId("how").textContent =
    `Figures are of validation rows, on which models were chosen${methods[0].points[0].test ? "; where test data were given, theirs stand beside" : ""}. ` +
    "Costs come from the plans' own ledger, as predict_cost gives them; ± is a 95 % jackknife interval over groups of rows. " +
    (unfinished.length ? `The sweep of ${unfinished.join(", ")} was interrupted. ` : "") + `Miserly ${data.version}.`;
  theme(0);
  for (const name of ["frontier", "drawing", "stages", "leaves", "tiers", "spending", "calibration", "gains"]) figures[name] = new Figure(byId(name), name);
  buildMoney(data, pick);
  buildOrder(data, pick);
  buildWalk(data, walkRow);
  buildPeople(data);
  buildTrust(data);
  buildMore(data, pick);
  const middle = data.chosen ?? path()[Math.floor(path().length / 2)];
  choosePath(Math.max(0, data.paths.findIndex((way) => way.stops.includes(middle))));
  state.stop = middle;
  byId("budget").addEventListener("input", (event) => { state.stop = path()[Number(event.target.value)]; show(); announce(); });
  byId("path").addEventListener("change", (event) => {
    const cost = data.stops[state.stop].cost.mean;
    choosePath(Number(event.target.value));
    pick(within(cost));
  });
  byId("most").addEventListener("change", (event) => { if (event.target.value !== "") pick(within(Number(event.target.value))); });
  for (const id of ["requests", "unit-price"]) byId(id).addEventListener("input", () => showBill(data, data.stops[state.stop]));
  const asked = () => (NAMES.includes(location.hash.slice(1)) ? location.hash.slice(1) : NAMES[0]);
  addEventListener("hashchange", () => { if (location.hash !== "#main") openScreen(asked(), true); });
  addEventListener("beforeprint", openAll);
  addEventListener("afterprint", () => openScreen(state.screen));
  matchMedia("print").addEventListener("change", ({ matches }) => (matches ? openAll() : openScreen(state.screen)));
  history.scrollRestoration = "manual"; // the slider stays in view, whatever screen the address asks for
  openScreen(asked());
  scrollTo(0, 0);
}

begin();
