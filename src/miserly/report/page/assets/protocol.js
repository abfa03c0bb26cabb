// The plan as a test-ordering protocol: a small tree of purchases.

function showProtocol(data, detail) {
  const protocol = detail.protocol;
  byId("order").hidden = !protocol;
  if (!protocol) return;
  byId("order-lead").textContent = protocol.headline;
  byId("protocol").replaceChildren(
    make("h3", {}, "The protocol"),
    make("ul", { class: "protocol" }, protocolBranch(data, protocol, 0, "")),
  );
  byId("rates").hidden = !protocol.rates.length;
  tables.rates ??= new Table(byId("rates"), {
    caption: "How well each class is found", open: 12,
    columns: [
      { key: "label", label: "Class", wide: true },
      ...[["sensitivity", "Sensitivity"], ["specificity", "Specificity"], ["positive", "If predicted, true"], ["negative", "If not predicted, not"]]
        .map(([key, label]) => ({ key, label, number: true, show: withInterval })),
    ],
  });
  tables.rates.set(protocol.rates);
}

const withInterval = (rate) => (rate === null ? "" : `${(100 * rate[0]).toFixed(1)} % (${(100 * rate[1]).toFixed(1)} to ${(100 * rate[2]).toFixed(1)})`);

function protocolBranch(data, protocol, number, when) {
  const step = protocol.steps[number];
  const order = step.buys.length ? [make("strong", {}, `order ${some(step.buys, 4)}`), ` for ${figure(step.price)} ${data.unit}`] : [];
  const ends = !step.question;
  const what = ends
    ? [...order, order.length ? ", then " : "", make("span", { class: "predicts" }, `predict ${step.prediction}`)]
    : order.length ? order : [make("span", { class: "soft" }, "with what is known")];
  const right = ends && step.right ? (protocol.isClass ? ` · right ${withInterval(step.right)}` : ` · mean label ${figure(step.right[0])}`) : "";
  const line = make("div", { class: "protocol-line" },
    make("span", {}, when ? make("span", { class: "when" }, `${when} `) : null, ...what),
    make("span", { class: "soft" }, `${percent(step.share)} of rows · ${figure(step.paid)} paid${right}`));
  if (ends) return make("li", {}, line);
  const yes = `${step.question}${step.missing === "yes" ? " or missing" : ""}:`;
  const no = `otherwise${step.missing === "no" ? " or missing" : ""}:`;
  return make("li", {}, line, make("ul", {}, protocolBranch(data, protocol, step.yes, yes), protocolBranch(data, protocol, step.no, no)));
}
