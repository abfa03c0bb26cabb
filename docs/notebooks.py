"""Writes and executes the notebooks of the documentation: `python docs/notebooks.py [NAME ...]`."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "notebooks"
TRIAGE = [
    (
        "text",
        "# Triage: which test does which patient need?\n\nMade-up patients, real prices.",
    ),
    (
        "code",
        """
%matplotlib inline
import miserly as ms
from miserly.datasets import triage_like
from miserly.report import FrugalPicture, LabelledRows, Observed, protocol

train, choose, new = (triage_like(1500, seed=s) for s in range(3))
train.costs""",
    ),
    ("text", "A sweep over the trade-off between accuracy and price. In a notebook `front.plot()` is interactive."),
    (
        "code",
        """
model = ms.GreedyMiserClassifier(train.costs, charge="path", n_estimators=20)
front = ms.frontier(model, (train.X, train.y), (choose.X, choose.y), test=(new.X, new.y), metric="accuracy")
front""",
    ),
    ("code", "front.plot(interactive=False)"),
    ("text", "What would a budget of 25 CAD buy, and in which order?"),
    (
        "code",
        """
plan = front.choose(budget=25).plan_
rows = LabelledRows(new.X, new.y)
protocol(plan, rows)""",
    ),
    ("text", "For one patient: what each test moved, and what it cost. The parts add up to the score."),
    ("code", "moved = plan.contributions(new.X)\nprint(moved.text(0))\nmoved"),
    ("text", "Doctors know fast-and-frugal trees. Ill or well, with at most four questions:"),
    (
        "code",
        """
card = ms.FastFrugalTreeClassifier(train.costs, tradeoff=1e-3).fit(train.X, train.y != "well")
FrugalPicture(Observed.of(card.plan_, LabelledRows(new.X, new.y != "well"))).plot().figure""",
    ),
    ("text", "Is it as good? Both methods on the same five folds:"),
    (
        "code",
        """
from miserly.baselines import PathTreeClassifier
methods = {"card": ms.FastFrugalTreeClassifier(train.costs), "path tree": PathTreeClassifier(train.costs)}
ms.compare(methods, (train.X, train.y != "well"), cv=5, budgets=[5, 25, 50])""",
    ),
]
SEARCH = [
    (
        "text",
        "# Search: which documents deserve the expensive features?\n\nLists of 24 documents, priced columns.",
    ),
    (
        "code",
        """
%matplotlib inline
import numpy as np
import miserly as ms
from miserly.datasets import yahoo_like

train, choose, new = (yahoo_like(n, seed=s) for s, n in enumerate((60, 30, 30)))
keep = list(range(0, 519, 13))  # every 13th column, so that the notebook runs in a minute
costs = train.costs.restrict([train.costs.features[i] for i in keep])
costs""",
    ),
    (
        "code",
        """
model = ms.GreedyMiserRanker(costs, n_estimators=25)
sets = [(d.X[:, keep], d.y, d.qid) for d in (train, choose, new)]
front = ms.frontier(model, sets[0], sets[1], test=sets[2], metric="ndcg@5")
front""",
    ),
    ("text", "NDCG@5 against the mean cost of a document:"),
    ("code", "front.plot(interactive=False)"),
    ("text", "What a document's purchases moved its score by, over all documents:"),
    (
        "code",
        """
plan = front.choose(budget=60).plan_
plan.contributions(sets[2][0], sets[2][2])""",
    ),
    ("code", "plan"),
]
SERVICES = [
    (
        "text",
        "# Paid services: which call is worth its price?\n\nThree recognition services, each with a price per"
        " call, answer with a label and its confidence. The answers here are generated; your own are columns too.",
    ),
    (
        "code",
        """
%matplotlib inline
import numpy as np
import miserly as ms

def calls(n, seed):
    rng = np.random.default_rng(seed)
    truth, hard = rng.integers(0, 2, n), rng.random(n)
    columns = []
    for skill in (0.7, 0.85, 0.97):
        right = rng.random(n) < 0.5 + 0.5 * skill * (1 - hard ** 3)
        sure = np.clip(rng.normal(0.9 - 0.5 * hard, 0.1), 0.5, 1.0)
        columns += [np.where(right, truth, 1 - truth), sure]
    return np.column_stack(columns), truth

names = [f"{service}_{what}" for service in ("small", "medium", "large") for what in ("label", "confidence")]
needs = {name: [name.split("_")[0]] for name in names}
costs = ms.CostTable(names, needs, {"small": 0.01, "medium": 6.0, "large": 15.0}, unit="USD per 10,000")
train, choose, new = (calls(1500, seed) for seed in range(3))
costs""",
    ),
    (
        "text",
        "A model that predicts from what was answered so far, and asks another service only if it is worth it:",
    ),
    (
        "code",
        """
front = ms.frontier(ms.ActiveClassifier(costs, n_estimators=30), train, choose, test=new, metric="accuracy")
front""",
    ),
    ("code", "front.plot(interactive=False)"),
    (
        "code",
        """
model = front.choose(budget=6)
advice = ms.advise(model.plan_, known={"small_label": 1, "small_confidence": 0.55})
advice""",
    ),
    ("text", "What each call changed, over all rows:"),
    ("code", "model.plan_.contributions(new[0])"),
    ("text", "What is each service worth? The model is learned again without it:"),
    (
        "code",
        """
from miserly.report import purchase_values
cheap = ms.GreedyMiserClassifier(costs, tradeoff=1e-4, n_estimators=15)
worth = purchase_values(cheap, train, new)
worth.plot().figure""",
    ),
    ("code", "worth.frame()"),
]
BOOKS = {"triage": TRIAGE, "search": SEARCH, "services": SERVICES}


def write(name: str) -> None:
    """Execute one notebook and keep its outputs; no times, paths or versions of the machine."""
    import nbclient
    import nbformat

    book = nbformat.v4.new_notebook()
    make = {"text": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    book.cells = [make[kind](text.strip("\n")) for kind, text in BOOKS[name]]
    for number, cell in enumerate(book.cells):
        cell["id"] = f"{name}-{number}"
    nbclient.NotebookClient(book, timeout=600, kernel_name="python3", record_timing=False).execute()
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.output_type != "stream" or o.name != "stderr"]
    book.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    FOLDER.mkdir(exist_ok=True)
    nbformat.write(book, FOLDER / f"{name}.ipynb")
    print(f"{name}: {(FOLDER / f'{name}.ipynb').stat().st_size // 1024} kB")


if __name__ == "__main__":
    for asked in sys.argv[1:] or BOOKS:
        write(asked)
