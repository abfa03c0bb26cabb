"""Objects in a real Jupyter kernel, and the notebooks of the documentation."""

import json
from pathlib import Path

import numpy as np
import pytest

import miserly as ms
from miserly.report import show

DOCS = Path(__file__).parents[2] / "docs" / "notebooks"
SETUP = """
import numpy as np, miserly as ms
from miserly.runtime import readers
X = np.random.default_rng(0).normal(size=(300, 3)); y = X[:, 0] + 0.3 * X[:, 1] > 0
costs = ms.CostTable.per_feature({"age": 1.0, "crp": 5.0, "mri": 80.0}, unit="usd")
front = ms.frontier(ms.GreedyMiserClassifier(costs, n_estimators=8), (X, y), (X, y), grid={"tradeoff": [0, 1e-3, 1e-1]})
plan = front.points[0].model.plan_
menu = front.menu()
with ms.OnDemand(plan, readers(costs)) as runner:
    answer = runner.predict(dict(zip(costs.features, X[0])))
advice = ms.advise(plan, known={"age": 0.1})
"""
SHOWN = ("costs", "plan", "menu", "front", "answer", "advice")


def test_plot_is_interactive_where_plotly_is_and_nothing_says_otherwise(tmp_path):
    go = pytest.importorskip("plotly.graph_objects")
    scope = {}
    exec(SETUP, scope)
    front = scope["front"]
    figure = front.plot()
    assert isinstance(figure, go.Figure)
    line = figure.data[1]
    pareto = front.pareto()
    assert list(line.x) == [p.validation.cost["mean"] for p in pareto if p in front.points]
    assert not isinstance(front.plot(interactive=False), go.Figure)
    front.plot(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").exists()


def test_the_page_in_a_frame_is_the_page():
    scope = {}
    exec(SETUP, scope)
    shown = show(scope["front"], (scope["X"], scope["y"]))
    html = shown._repr_html_()
    assert html.startswith("<iframe")
    assert 'sandbox="allow-scripts"' in html
    assert "<!doctype html" in shown.html.lower()
    assert len(repr(shown)) < 100
    without = ms.frontier(scope["front"].points[0].model, (scope["X"], scope["y"]), (scope["X"], scope["y"]))
    bare = type(without.points[0])({}, object(), without.points[0].validation, None, 0.0)
    with pytest.raises(ValueError, match=r"ms\.compare"):
        show(ms.Frontier((bare,), without.metric, "usd"), (scope["X"], scope["y"]))


@pytest.mark.integration
def test_every_public_object_in_a_real_kernel():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    book = nbformat.v4.new_notebook()
    cells = [SETUP, *SHOWN, *(f"print({name})" for name in SHOWN), "front.plot(interactive=False)"]
    book.cells = [nbformat.v4.new_code_cell(code) for code in cells]
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    for name, cell in zip(SHOWN, book.cells[1:]):
        [output] = [o for o in cell.outputs if o.output_type == "execute_result"]
        assert "<svg" in output.data["text/html"], name
        assert "<script" not in output.data["text/html"], name
        assert len(output.data["text/html"]) < 20_000
        assert len(output.data["text/plain"].splitlines()) <= 20, name
    for name, cell in zip(SHOWN, book.cells[1 + len(SHOWN) :]):
        assert len("".join(o.get("text", "") for o in cell.outputs).splitlines()) <= 20, name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["triage", "search", "services"])
def test_the_notebooks_of_the_documentation_run(name):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    book = nbformat.read(DOCS / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(book, timeout=600, kernel_name="python3").execute()


@pytest.mark.parametrize("name", ["triage", "search", "services"])
def test_the_notebooks_are_those_of_the_script_and_were_executed(name):
    from docs.notebooks import BOOKS

    kept = json.loads((DOCS / f"{name}.ipynb").read_text(encoding="utf-8"))
    sources = ["".join(cell["source"]) for cell in kept["cells"]]
    assert sources == [text.strip("\n") for _, text in BOOKS[name]]
    code = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in code), "python docs/notebooks.py executes them"
    assert not [o for cell in code for o in cell["outputs"] if o["output_type"] == "error"]
    assert np.sum([bool(cell["outputs"]) for cell in code]) >= 3
