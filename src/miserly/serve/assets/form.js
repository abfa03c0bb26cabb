// A consultation: what is known goes to POST /v1/next, which keeps nothing; each answered state is a step to go back to.

const data = JSON.parse(byId("data").textContent);
const inputs = new Map(data.inputs.map((input) => [input.name, input]));
const nothing = { known: {}, owned: [], away: [], bill: [], budget: data.budget };
const steps = [];
let place = -1;
let asked = 0;

const here = () => steps[place];
const paid = (state) => state.bill.reduce((sum, line) => sum + line.price, 0);
const priced = (x) => `${figure(x)} ${data.unit}`;
const listed = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);

// ---- asking ----

/** Ask the server about a state; it becomes the present one, or the trouble is shown where it arose. */
async function go(state, trouble) {
  const number = ++asked;
  byId("form").setAttribute("aria-busy", "true");
  const body = { known: state.known, unavailable: state.away, owned: state.owned };
  if (state.budget !== null) body.budget = Math.max(0, state.budget - paid(state));
  const { error, answer } = await ask(body);
  if (number !== asked) return false; // a later question is on its way
  byId("form").removeAttribute("aria-busy");
  if (error) {
    trouble(error);
    return false;
  }
  steps.length = place + 1;
  steps.push({ state, answer });
  place += 1;
  if (place) history.pushState(place, "");
  show();
  return true;
}

async function ask(body) {
  const path = location.pathname.replace(/\/?$/, "/");
  try {
    const response = await fetch(`${path}v1/next`, { method: "POST", body: JSON.stringify(body) });
    const answer = await response.json();
    if (response.ok) return { answer };
    const { what, where, remedy } = answer.error;
    return { error: { text: `${what} ${remedy}`, where } };
  } catch {
    return { error: { text: "The server does not answer. Try again.", where: "" } };
  }
}

// ---- fields ----

/** A labelled field for one input; its value is text, and empty if nothing is entered. */
function field(input, id, hint = "") {
  const trouble = make("p", { class: "trouble", id: `${id}-trouble`, hidden: true });
  const common = { id, name: input.name, "aria-describedby": `${id}-trouble`, autocomplete: "off" };
  let control;
  if (input.choices) {
    control = make("select", common, make("option", { value: "" }, hint || "unknown"),
      ...input.choices.map(([name], i) => make("option", { value: i }, name)));
  } else {
    const kind = input.kind === "date" && !input.format ? "date" : "text";
    control = make("input", { ...common, type: kind, inputmode: input.kind === "number" ? "decimal" : null, placeholder: hint || input.format || null });
  }
  const unit = input.unit ? ` (${input.unit})` : "";
  return make("div", { class: "field" }, make("label", { for: id }, input.name + unit), control, trouble);
}

/** What was entered, as it is sent: undefined if nothing was. */
function entered(control) {
  const input = inputs.get(control.name);
  const text = control.value.trim();
  if (text === "") return undefined;
  if (input.choices) return input.choices[Number(text)][1];
  if (data.words) return text;
  const number = Number(text.replace(",", "."));
  return Number.isFinite(number) ? number : text;
}

function mark(control, text) {
  const trouble = byId(`${control.id}-trouble`);
  trouble.textContent = text;
  trouble.hidden = !text;
  control.setAttribute("aria-invalid", text ? "true" : "false");
  if (text) control.focus();
}

/** Show the trouble at the field that it names; otherwise above the button. */
function troubleIn(host) {
  return ({ text, where }) => {
    const name = where.replace(/^known\./, "");
    const control = [...host.querySelectorAll("input, select")].find((c) => c.name === name);
    if (control) mark(control, text);
    else sayTrouble(text);
  };
}

function sayTrouble(text) {
  byId("advice").querySelector(".general")?.remove();
  byId("advice").prepend(make("p", { class: "trouble general", role: "alert" }, text));
}

// ---- what is shown ----

function show() {
  const { state, answer } = here();
  byId("undo").disabled = place === 0;
  byId("redo").disabled = place === steps.length - 1;
  byId("budget").value = state.budget === null ? "" : String(state.budget);
  byId("left-part").hidden = state.budget === null;
  if (state.budget !== null) byId("left").textContent = priced(Math.max(0, state.budget - paid(state)));
  byId("total").textContent = priced(paid(state));
  showAdvice(state, answer);
  showPrediction(answer);
  showBill(state);
  showKnown(state);
  const next = answer.stop ? "Nothing more to order." : `Next: ${listed(answer.together)} for ${priced(answer.price)}.`;
  byId("live").textContent = `Prediction ${inWords(answer)}. ${next}`;
}

function inWords(answer) {
  if (!answer.probabilities) return figure(answer.value);
  return `${answer.value}, probability ${share(Math.max(...answer.probabilities))}`;
}

/** A probability; only certainty is called 0 % or 100 %. */
function share(p) {
  const text = (100 * p).toFixed(1);
  if (p < 1 && text === "100.0") return "> 99.9 %";
  return p > 0 && text === "0.0" ? "< 0.1 %" : `${text} %`;
}

function showAdvice(state, answer) {
  const parts = answer.stop ? stopParts(answer) : orderParts(state, answer.together, answer.price, answer);
  const typed = new Map([...byId("advice").querySelectorAll("input, select")].map((control) => [control.name, control.value]));
  byId("advice").replaceChildren(...parts, ...away(state), ...others(state, answer));
  for (const control of byId("advice").querySelectorAll("input, select")) control.value = typed.get(control.name) ?? "";
}

function stopParts(answer) {
  return [make("p", { class: "order" }, "Nothing more"), make("p", { class: "soft" }, answer.why.replace(/^Stop: (.)/, (_, c) => c.toUpperCase()))];
}

/** The order of a purchase: its price, what it is for, fields for its results. */
function orderParts(state, together, price, answer) {
  const owned = new Set([...state.owned, ...together]);
  const paid = new Set([...owned, ...data.inputs.flatMap((i) => (i.name in state.known ? i.needs : []))]); // a known value needed these
  const brought = data.inputs.filter((i) => i.needs.some((a) => together.includes(a)) && i.needs.every((a) => paid.has(a)) && !(i.name in state.known));
  const hint = data.canMiss ? "no result" : "";
  const results = make("fieldset", { class: "results" },
    make("legend", {}, brought.length ? "Results" : "It brings no value by itself: it is part of later tests."),
    ...brought.map((input, i) => field(input, `result-${i}`, hint)));
  const form = make("form", { autocomplete: "off", onsubmit: (event) => {
    event.preventDefault();
    const known = { ...state.known };
    for (const control of results.querySelectorAll("input, select")) {
      mark(control, "");
      const value = entered(control);
      known[control.name] = value === undefined ? null : value;
    }
    const line = { names: together, price };
    go({ ...state, known, owned: [...owned], bill: [...state.bill, line] }, troubleIn(form)).then((done) => done && byId("next-title").focus());
  } }, results, make("div", { class: "actions" },
    make("button", { type: "submit", class: "primary" }, brought.length > 1 ? "Enter results" : "Enter result"),
    ...together.map((name) => make("button", { type: "button", class: "quiet", onclick: () => setAway(state, [...state.away, name]) },
      together.length > 1 ? `${name} is not available` : "Not available"))));
  const why = answer
    ? answer.expected_gain >= 1e-9
      ? `Expected to lower the ${data.loss} by ${figure(answer.expected_gain)}.`
      : "The plan needs it to decide what comes next; by itself it is not expected to improve the prediction."
    : "Your choice: the plan would order something else.";
  return [make("p", { class: "order" }, listed(together)), make("p", {}, make("span", { class: "price" }, priced(price)), make("span", { class: "soft" }, ` · ${why}`)), form];
}

function setAway(state, away) {
  go({ ...state, away }, ({ text }) => sayTrouble(text)).then((done) => done && byId("next-title").focus());
}

function away(state) {
  if (!state.away.length) return [];
  const items = state.away.map((name) => make("li", {}, make("button", { type: "button", class: "quiet", onclick: () => setAway(state, state.away.filter((a) => a !== name)) }, `${name}: available again`)));
  return [make("ul", { class: "away" }, make("li", { class: "soft" }, "Not available:"), ...items)];
}

/** Everything else that could be ordered, best gain per price first. */
function others(state, answer) {
  const same = (c) => c.acquisitions.length === answer.together.length && c.acquisitions.every((a) => answer.together.includes(a));
  const rest = answer.ranking.filter((c) => !same(c));
  if (!rest.length) return [];
  const line = (c) => make("tr", {}, make("td", {}, listed(c.acquisitions)), make("td", { class: "right" }, figure(c.price)), make("td", { class: "right" }, c.gain >= 1e-9 ? figure(Number(c.gain.toPrecision(3))) : "none"),
    make("td", { class: "right" }, make("button", { type: "button", class: "quiet", "aria-label": `Order ${listed(c.acquisitions)} instead`, onclick: () => orderInstead(state, c) }, "Order")));
  const head = make("tr", {}, make("th", { scope: "col" }, "Order"), make("th", { scope: "col", class: "right" }, `Price (${data.unit})`), make("th", { scope: "col", class: "right" }, "Gain"), make("td"));
  return [make("details", { class: "others" }, make("summary", {}, answer.stop ? "What else could be ordered" : "Order something else"),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What else could be ordered" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rest.slice(0, 30).map(line)))),
    make("p", { class: "note" }, `Gain: by how much the ${data.loss} is expected to fall.`))];
}

function orderInstead(state, candidate) {
  byId("advice").replaceChildren(...orderParts(state, candidate.acquisitions, candidate.price, null),
    make("p", { class: "actions" }, make("button", { type: "button", class: "quiet", onclick: show }, "Back to the advice")));
  byId("next-title").focus();
}

function showPrediction(answer) {
  if (!answer.probabilities) {
    byId("prediction").replaceChildren(make("p", { class: "number" }, figure(answer.value)));
    return;
  }
  const before = place ? steps[place - 1].answer.probabilities : null;
  const lines = answer.probabilities.map((p, i) => ({ p, name: String(data.classes[i]), change: before ? p - before[i] : 0 })).sort((a, b) => b.p - a.p);
  const item = ({ p, name, change }) => {
    const bar = make("i");
    bar.style.setProperty("width", `${100 * p}%`);
    const moved = Math.abs(change) >= 5e-4 ? ` (${change > 0 ? "+" : "−"}${(100 * Math.abs(change)).toFixed(1)})` : "";
    return make("li", {}, make("span", { class: name === String(answer.value) ? "name best" : "name" }, name), make("span", { class: "share" }, share(p), make("span", { class: "soft" }, moved)),
      make("div", { class: "meter", "aria-hidden": "true" }, bar));
  };
  const list = (part) => make("ul", { class: "classes" }, ...part.map(item));
  byId("prediction").replaceChildren(list(lines.slice(0, 6)),
    ...(lines.length > 6 ? [make("details", {}, make("summary", {}, `${lines.length - 6} more classes`), list(lines.slice(6)))] : []));
}

function showBill(state) {
  const lines = state.bill.map((line, i) => make("li", {}, make("span", {}, listed(line.names)), make("span", { class: "sum" }, figure(line.price)),
    make("span", { class: "soft" }, `then: ${inWords(steps.slice(0, place + 1).find((s) => s.state.bill.length === i + 1).answer)}`)));
  byId("bill").replaceChildren(...(lines.length ? lines : [make("li", { class: "soft" }, "Nothing was ordered yet.")]));
}

const fields = new Map(); // what is known already: one field for each input, made once

/** The fields say what is known; one that is being typed in keeps its text. */
function showKnown(state) {
  const bought = new Set(state.owned);
  for (const input of data.inputs) {
    const { part, control, note } = fields.get(input.name);
    const value = state.known[input.name];
    const isBought = input.needs.length > 0 && input.needs.every((a) => bought.has(a));
    part.classList.toggle("was-bought", isBought);
    note.textContent = isBought ? (value === null ? " no result" : " ordered") : input.needs.length ? "" : " free";
    if (control === document.activeElement) continue;
    mark(control, "");
    if (input.choices) control.value = value === undefined || value === null ? "" : String(input.choices.findIndex(([, v]) => v === value));
    else control.value = value === undefined || value === null ? "" : String(value);
  }
}

function buildKnown() {
  data.inputs.forEach((input, i) => {
    const part = field(input, `known-${i}`);
    const note = make("span", { class: "soft" });
    part.querySelector("label").append(note);
    fields.set(input.name, { part, control: part.querySelector("input, select"), note });
  });
  byId("known").replaceChildren(...[...fields.values()].map(({ part }) => part));
}

// ---- start ----

byId("known").addEventListener("change", (event) => {
  const { state } = here();
  const value = entered(event.target);
  const known = { ...state.known };
  delete known[event.target.name];
  if (value !== undefined) known[event.target.name] = value;
  mark(event.target, "");
  go({ ...state, known }, troubleIn(byId("known")));
});
byId("known").addEventListener("submit", (event) => event.preventDefault());
byId("filter").addEventListener("input", (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  for (const [name, { part }] of fields) part.hidden = !name.toLowerCase().includes(wanted);
});
byId("budget").addEventListener("change", (event) => {
  const text = event.target.value.trim();
  const number = text === "" ? null : Number(text.replace(",", "."));
  const bad = number !== null && !(number >= 0);
  mark(event.target, bad ? "The budget is a number of zero or more; empty: no limit." : "");
  if (!bad) go({ ...here().state, budget: number }, ({ text: why }) => mark(byId("budget"), why));
});
byId("undo").addEventListener("click", () => history.back());
byId("redo").addEventListener("click", () => history.forward());
byId("again").addEventListener("click", () => go({ ...nothing, budget: here().state.budget }, ({ text }) => sayTrouble(text)));
addEventListener("popstate", (event) => {
  const wanted = event.state ?? 0;
  if (wanted >= steps.length) return; // of a page that was loaded before this one
  asked += 1;
  byId("form").removeAttribute("aria-busy");
  place = wanted;
  show();
});
byId("form").hidden = false;
buildKnown();
byId("filter-part").hidden = data.inputs.length <= 16;
history.replaceState(0, "");
go(nothing, ({ text }) => sayTrouble(text));
