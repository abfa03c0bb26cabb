// What does a budget buy? The headline, this model beside the reference, the bill, all models.

const signed = (v) => (v > 0 ? `+${figure(v)}` : figure(v).replace("-", "−"));
const inline = (text, name, onclick, pressed = null) =>
  make("button", { type: "button", class: "inline", onclick, "aria-label": name, "aria-pressed": pressed }, text);
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const isMoney = (unit) => /^([A-Z]{3}|usd|eur|chf|gbp|cad|jpy|cents?|dollars?|euros?|francs?|[$€£¥])$/.test(unit);

function buildMoney(data, pick) {
  const hasTest = data.methods.some((method) => method.points.some((point) => point.test));
  const several = data.methods.length > 1;
  const modelButton = (row) => inline(row.params || "this one", `Show ${row.method}, ${row.params}`, () => pick(row.stop), row.here ? "true" : "false");
  tables.all = new Table(byId("all"), {
    caption: "Every model of the sweep", filter: "Filter", open: 15,
    columns: [
      ...(several ? [{ key: "method", label: "Method", wide: true }] : []),
      { key: "params", label: "Setting", show: (v, row) => (row.stop === null ? v : modelButton(row)) },
      { key: "quality", label: data.metric.name, number: true },
      { key: "cost", label: "Mean cost", number: true },
      { key: "p95", label: "95 % cost", number: true },
      ...(hasTest ? [{ key: "testQuality", label: `${data.metric.name}, test`, number: true }, { key: "testCost", label: "Cost, test", number: true }] : []),
      { key: "front", label: "On the front", show: (v) => (v ? "yes" : "no") },
      { key: "seconds", label: "Seconds to fit", number: true },
    ],
  });
  byId("models").addEventListener("toggle", () => showModels(data, state));
  byId("price-name").textContent = `Money for one unit (${data.unit})`;
  byId("price-part").hidden = isMoney(data.unit);
  byId("bill-how").textContent = isMoney(data.unit)
    ? `Requests a day × 30 days × mean cost, in ${data.unit}. Fill in your number to see the bill.`
    : "Requests a day × 30 days × mean cost × money for one unit. Fill in both to see the bill.";
}

function showCompare(data, stop) {
  const blind = data.stops[data.blind];
  const columns = stop === blind ? [["This model", stop]] : [["This model", stop], [capital(data.blindName), blind]];
  const test = columns.every(([, s]) => s.test);
  const withHalf = (s) => figure(s.quality) + (s.half === null ? "" : ` ± ${twoDigits(s.half)}`);
  const lines = [
    [data.metric.name, withHalf],
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
  byId("compare").replaceChildren(
    make("h3", {}, stop === blind ? `This is the ${data.blindName}` : `Beside the ${data.blindName}`),
    make("table", { class: "compare" }, make("thead", {}, head), make("tbody", {}, ...rows)),
    ...(stop === blind ? [] : [make("p", { class: "note" }, lostText(data, stop))]),
    ...(data.constant === null ? [] : [make("p", { class: "note" }, `A constant prediction, which is free, has ${data.metric.name} ${figure(data.constant)}.`)]),
  );
}

function lostText(data, stop) {
  const half = stop.lostHalf === null ? "" : ` ± ${twoDigits(stop.lostHalf)}`;
  const [word, size] = stop.lost >= 0 ? ["Worse", stop.lost] : ["Better", -stop.lost];
  const doubt = stop.lostHalf !== null && size <= stop.lostHalf ? ": within the noise of these rows" : "";
  return `${word} by ${figure(size)}${half} ${data.metric.name} on the same rows${doubt}.`;
}

function showBill(data, stop) {
  const value = (id) => Math.max(0, Number(byId(id).value) || 0);
  const factor = value("requests") * 30 * (isMoney(data.unit) ? 1 : value("unit-price"));
  byId("bills").hidden = !factor;
  const [here, blind] = [stop, data.stops[data.blind]].map((s) => factor * s.cost.mean);
  byId("bill-here").textContent = money(here);
  byId("bill-blind").textContent = money(blind);
  byId("bill-blind-name").textContent = capital(data.blindName);
  byId("bill-saved-name").textContent = blind >= here ? "Saved" : "Paid on top";
  byId("bill-saved").textContent = money(Math.abs(blind - here));
}

function showModels(data, state) {
  tables.all.set(data.methods.flatMap((method) => method.points.map((p) => ({
    ...p, method: method.name, testQuality: p.test && p.test[0], testCost: p.test && p.test[1], here: p.stop !== null && p.stop === state.stop,
  }))));
}
