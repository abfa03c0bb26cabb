"""A plan for people: its purchases as a table, its graph in words and for Graphviz."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from miserly.costs import set_bits
from miserly.plan._node import EXIT

if TYPE_CHECKING:
    from miserly.plan._plan import Plan


def purchases(plan: Plan) -> list[dict[str, Any]]:
    """One line per node that buys something that rows do not certainly own: what, its price, what it serves.

    `learners`, `evaluation` and `gain` count the node and those after it that buy nothing; `total` is what a row has
    paid by then.
    """
    ledger = plan.tables.ledger
    lines: list[dict[str, Any]] = []
    learners = evaluated = 0
    for k, node in enumerate(plan.nodes):
        new = plan.tables.new_acquisitions(k)
        owned = plan.tables.owned_at(k)
        if new or not lines:
            names = [plan.costs.acquisitions[a] for a in set_bits(new)]
            lines.append({"node": k, "buys": names, "price": ledger.price(new), "learners": 0, "gain": 0.0})
            learners = 0
        learners |= plan.tables.purchase(k)[1] & ~evaluated
        evaluated |= learners
        line = lines[-1]
        line["learners"] += len(node.learners)
        line["evaluation"] = ledger.price(0, learners)
        line["total"] = ledger.price(*owned)
        line["gain"] += node.gain
    return lines


KINDS = {
    "raw": "features",
    "trees": "trees",
    "rbf": "RBF kernels",
    "polynomial": "polynomial kernels",
    "chi2": "chi-squared kernels",
}


def summary(plan: Plan) -> str:
    """What the plan is, and what it may cost at most, in three sentences."""
    everything = 0
    for k in range(len(plan.nodes)):
        everything |= plan.tables.purchase(k)[0]
    price = plan.tables.ledger.price(everything)
    n_nodes, learners = len(plan.nodes), KINDS[plan.dictionary.kind]
    return (
        f"{plan.notes.get('estimator', 'A plan')}: {n_nodes} node{'' if n_nodes == 1 else 's'} over "
        f"{len(plan.dictionary)} {learners}, {_payment(plan)}; answers {_answers(plan)}.\n"
        f"It may buy {everything.bit_count()} of {len(plan.costs.acquisitions)} acquisitions "
        f"for {price:g} {plan.costs.unit} in all; evaluation {plan.costs.evaluation_text}.\n"
        f"Before any purchase it predicts {_first(plan)}."
        + ("" if plan.error_costs is None else f"\nIt predicts what is expected to cost least: {_costs(plan)}.")
        + ("" if plan.certificate is None else f"\n{plan.certificate.describe()}")
    )


def in_words(plan: Plan) -> str:
    """The summary, what is bought in which order, and where gates send rows."""
    lines, is_policy = [summary(plan)], getattr(plan, "policy", None) is not None
    if is_policy:
        lines.append("At each step a row buys what is expected to lower the loss most for its price, or stops.")
    bought = {line["node"]: line for line in purchases(plan)}
    for k, node in enumerate(plan.nodes):
        gated = node.gate.kind != "open"
        if k not in bought and not gated:
            continue
        line = bought.get(k, {"node": k, "buys": [], "price": 0.0, "learners": len(node.learners), "gain": node.gain})
        gain = "" if math.isnan(line["gain"]) else f", gain {line['gain']:.4g}"
        what = ", ".join(line["buys"]) or "nothing"
        price = f"{line['price']:g} {plan.costs.unit}"
        rows_differ = plan.charge == "path" or is_policy
        verb, most = ("may buy", "at most ") if rows_differ and line["buys"] else ("buys", "")
        lines.append(f"  node {line['node']}: {verb} {what} for {most}{price}; {line['learners']} learners{gain}")
        if gated:
            lines.append(f"    {node.gate.describe()}: to {_place(node.passed)}; otherwise to {_place(node.failed)}")
    return "\n".join(lines)


def to_dot(plan: Plan) -> str:
    """The graph for Graphviz; what each node buys is written into it."""
    lines = ["digraph plan {", "  node [shape=box, fontname=Helvetica];"]
    exits = False
    for k, node in enumerate(plan.nodes):
        bought = [plan.costs.acquisitions[a] for a in set_bits(plan.tables.new_acquisitions(k))]
        shown = ", ".join(bought[:4]) + (f" and {len(bought) - 4} more" if len(bought) > 4 else "")
        lines.append(f'  n{k} [label="{_quoted(f"{k}: buys {shown}" if bought else str(k))}"];')
        ways = {node.passed: "" if node.gate.kind == "open" else node.gate.describe()}
        if node.gate.kind != "open":
            ways.setdefault(node.failed, "otherwise")
        for way, label in ways.items():
            exits |= way == EXIT
            target = "exit" if way == EXIT else f"n{way}"
            lines.append(f'  n{k} -> {target} [label="{_quoted(label)}"];')
    if exits:
        lines.append('  exit [shape=plain, label="answer"];')
    return "\n".join([*lines, "}"])


def _first(plan: Plan) -> str:
    """The prediction for a row of which nothing is known."""
    if plan.classes is None:
        return ", ".join(f"{p:.4g}" for p in plan.prior)
    chances = plan.probabilities(plan.prior[None])[0]
    best = int(np.argmax(chances))
    return f"{plan.classes[best]} (probability {chances[best]:.4g})"


def _payment(plan: Plan) -> str:
    """What a row pays for, and of lazy plans when it stops."""
    lazy = getattr(plan, "laziness", None)
    if lazy is None:
        return f"charged by {plan.charge}"
    if lazy.keep == "order":
        return f"lazy (buys until the order of the first {lazy.k} documents of a query is certain)"
    sure = f" or has probability {lazy.confidence:g}" if lazy.confidence <= 1.0 else ""
    return f"lazy (buys until the class of a row is certain{sure})"


def _answers(plan: Plan) -> str:
    if plan.by_query or plan.notes.get("task") == "ranking":
        return "a score that ranks the documents of a query"
    if plan.classes is None:
        return "a number"
    shown = ", ".join(str(c) for c in np.asarray(plan.classes)[:8])
    return f"one of {shown}" + (", …" if len(plan.classes) > 8 else "")


def _costs(plan: Plan) -> str:
    """The costs of mistakes in words."""
    matrix, names = np.asarray(plan.error_costs), [str(c) for c in np.asarray(plan.classes)]
    pairs = [(t, p) for t in range(len(names)) for p in range(len(names)) if matrix[t, p]]
    shown = ", ".join(f"{matrix[t, p]:g} for {names[p]} where it is {names[t]}" for t, p in pairs[:6])
    return shown + (", …" if len(pairs) > 6 else "")


def _place(node: int) -> str:
    return "the exit" if node == EXIT else f"node {node}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
