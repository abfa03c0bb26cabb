// The plan as a test-ordering protocol: a small tree of purchases.

function showProtocol(data, detail) {
  const protocol = detail.protocol;
  byId("protocol").hidden = !protocol;
  byId("order-lead").textContent = protocol ? protocol.headline : data.byQuery
    ? "A list is ordered by scores, which no small tree of questions says: below is what its documents buy."
    : "This model asks no question: below is what rows buy.";
  if (!protocol) return;
  byId("protocol").replaceChildren(
    make("h3", {}, "The protocol"),
    make("ul", { class: "protocol" }, protocolBranch(data, protocol, 0, "")),
    ...(protocol.rates.length && !protocol.exact ? [make("details", {}, make("summary", {}, "How well the protocol does by itself"), ratesTable(protocol.rates))] : []),
  );
}

/** The rates of the protocol; those of the model stand under "Can I trust it?". */
function ratesTable(rates) {
  const names = ["Class", "Sensitivity", "Specificity", "Positive predictive value", "Negative predictive value"];
  const lines = rates.map((r) => [r.label, ...["sensitivity", "specificity", "positive", "negative"].map((key) => withInterval(r[key]))]);
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "How well the protocol does" },
    make("table", { class: "plain-table" }, make("thead", {}, make("tr", {}, ...names.map((n, i) => make("th", { scope: "col", class: i ? "number" : null }, n)))),
      make("tbody", {}, ...lines.map((line) => make("tr", {}, ...line.map((v, i) => make("td", { class: i ? "number" : null }, v)))))));
}

const withInterval = (rate) => (rate === null ? "" : `${(100 * rate[0]).toFixed(1)} % (${(100 * rate[1]).toFixed(1)} to ${(100 * rate[2]).toFixed(1)})`);

function protocolBranch(data, protocol, number, when) {
  const step = protocol.steps[number];
  const order = step.price > 0
    ? [make("strong", {}, `order ${some(step.buys, 4)}`), ` for ${figure(step.price)} ${data.unit}`]
    : step.feature ? [make("strong", {}, `look at ${step.feature}`)] : [];
  const ends = !step.question;
  const what = ends
    ? [...order, order.length ? ", then " : "", make("span", { class: "predicts" }, `predict ${step.prediction}`)]
    : order;
  const right = !ends || !step.right ? "" : step.risk ? ` · ${protocol.positive} in ${withInterval(step.risk)}`
    : protocol.isClass ? ` · right ${withInterval(step.right)}` : ` · mean label ${figure(step.right[0])}`;
  const line = make("div", { class: "protocol-line" },
    make("span", {}, when ? make("span", { class: "when" }, `${when} `) : null, ...what),
    make("span", { class: "soft" }, `${percent(step.share)} of rows (${step.rows}) · ${figure(step.paid)} paid${right}`));
  if (ends) return make("li", {}, line);
  const yes = `${step.question}${step.missing === "yes" ? " or missing" : ""}:`;
  const no = `otherwise${step.missing === "no" ? " or missing" : ""}:`;
  return make("li", {}, line, make("ul", {}, protocolBranch(data, protocol, step.yes, yes), protocolBranch(data, protocol, step.no, no)));
}
