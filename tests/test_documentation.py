"""What the README and the pages show runs as it stands there, in an empty folder; the site has no warnings."""

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from litestar.testing import TestClient
from sklearn.utils.estimator_checks import check_estimator

import miserly
from miserly.cli.main import cli
from miserly.plan import load_menu, load_plan
from miserly.serve import create_app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
WALKED = DOCS / "start.md"
PICTURE = re.compile(r"!\[.*?\]\((.*?)\)")
snippets = runpy.run_path(str(DOCS / "pages.py"))


def name_of(page):
    return str(page.relative_to(ROOT))


def commands(page):
    """The lines of a page's shell blocks, without their comments, as words."""
    text = page.read_text(encoding="utf-8")
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for line in block.splitlines() if language in ("", "sh") else ():
            if line.startswith(("miserly ", "curl ")):
                yield shlex.split(line, comments=True)


def test_the_readmes_python_runs(tmp_path, capsys):
    names = snippets["run"](README, tmp_path)
    assert len(list(snippets["blocks"](README))) == 1
    assert names["model"].predict_cost(names["X_new"], budget=25).max() <= 25
    menu = load_menu(tmp_path / "tumours.menu")
    assert (menu.predict(names["X_new"], budget=25) == names["model"].predict(names["X_new"], budget=25)).all()
    assert "accuracy" in capsys.readouterr().out


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize("page", [page for page in snippets["pages"]() if page != WALKED], ids=name_of)
def test_a_pages_python_runs_and_draws_its_pictures(page, tmp_path):
    snippets["run"](page, tmp_path)
    shown = {Path(p).name for p in PICTURE.findall(page.read_text(encoding="utf-8"))}
    drawn = {p.name for p in (tmp_path / "pictures").iterdir()}
    assert drawn <= shown
    assert all((DOCS / "pictures" / name).exists() for name in drawn), "run `make pictures`"


def test_a_newcomer_comes_from_tables_to_a_served_model(tmp_path, monkeypatch):
    """All that *From your own CSV to a served model* shows, in its order, in one folder."""
    snippets["run"](WALKED, tmp_path)
    monkeypatch.chdir(tmp_path)
    served = None
    for program, *words in commands(WALKED):
        if program == "curl":
            with TestClient(create_app(served)) as client:
                answer = client.post("/v1/predict", json=json.loads(words[words.index("-d") + 1])).json()
            assert answer["value"] == "ill"
            assert answer["stopped"] == "answered"
        elif words[0] == "serve":
            served = load_plan(words[1])
        else:
            result = CliRunner().invoke(cli, words)
            assert result.exit_code == 0, f"{' '.join(words)}: {result.output} {result.exception}"
    assert served.predict_cost([[0.1, 0.4, 2.0, 0.3, float("nan")]]) <= 60
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "answers.csv").read_text().startswith("prediction,cost,stopped")


@pytest.mark.parametrize("page", [README, *DOCS.rglob("*.md")], ids=name_of)
def test_the_commands_of_a_page_exist(page):
    for program, *words in commands(page):
        if program == "miserly" and not words[0].startswith("-"):
            options = {o for p in cli.commands[words[0]].params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
            assert {w for w in words if re.match(r"--?[a-z]", w)} <= options, words


def test_the_page_of_the_command_line_is_up_to_date():
    page = runpy.run_path(str(DOCS / "cli.py"))["page"]()
    assert page == (DOCS / "cli.md").read_text(encoding="utf-8"), "run `make docs`"


def test_links_between_documents_lead_somewhere():
    for page in [README, ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_site_is_built_without_a_warning(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    reference = (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
    assert "predict_cost" in reference


def test_no_package_is_forgotten_in_the_contributors_map():
    packages = {p.parent.name for p in (ROOT / "src/miserly").glob("*/__init__.py")}
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert all(f"`{package}`" in text for package in packages)


def test_the_contributors_smallest_estimator_works(tmp_path):
    names = snippets["run"](ROOT / "CONTRIBUTING.md", tmp_path)
    kind = names["CheapFeaturesRegressor"]
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = kind(miserly.CostTable.per_feature([5.0, 1.0, 7.0]), max_price=2.0).fit(X, 2.0 * X[:, 1] + 3.0)
    assert model.predict(X) == pytest.approx(2.0 * X[:, 1] + 3.0)
    assert set(model.predict_cost(X)) == {1.0}
    of_a_page = {"check_estimators_pickle": "a class of a page is in no module"}
    check_estimator(kind(miserly.CostTable.uniform()), expected_failed_checks=of_a_page, on_skip=None)
    front = miserly.frontier(model, (X, X[:, 1]), (X, X[:, 1]))
    assert min(point.validation.quality for point in front.points) < 1e-9
    boosted = miserly.GreedyMiserRegressor(model.costs, tradeoff=0.0, loss="huber", n_estimators=20).fit(X, X[:, 0])
    assert np.mean(np.abs(boosted.predict(X) - X[:, 0])) < np.mean(np.abs(X[:, 0]))


def test_the_paths_and_commands_of_the_contributors_guide_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:tests|docs|cli|report|estimators|boosting|datasets)/[\w./]*\w)`", text):
        places = [ROOT / path, ROOT / "src/miserly" / path]
        assert "my_method" in path or any(place.exists() for place in places), path
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"^make (\w+)", text, re.MULTILINE)) <= targets


def test_every_public_name_is_documented_and_stands_in_an_example_that_is_run():
    packages = {f"miserly.{name}" for name in miserly._PACKAGES} | {"miserly", "miserly.frontiers"}
    code = "\n".join(block for page in [README, *snippets["pages"]()] for block in snippets["blocks"](page))
    shown = set(re.findall(r"\w+", code))
    for package in sorted(packages):
        names = set(import_module(package).__all__)
        assert names - shown - set(miserly._PACKAGES) == set(), package
        found = [getattr(import_module(package), name) for name in names]
        assert all(thing.__doc__ for thing in found if callable(thing)), package


def test_the_site_and_the_pages_have_one_look():
    """Fonts and colours of the site are those that the report and the server's page share."""
    theirs = (DOCS / "look.css").read_text(encoding="utf-8")
    ours = (ROOT / "src/miserly/_web/look.css").read_text(encoding="utf-8")
    light, dark = re.findall(r"scheme=.*?\{([^{}]*)\}", theirs)
    for name in ("paper", "card", "ink", "soft", "track", "accent", "coin"):
        for scheme, colour in zip((light, dark), re.search(rf"--{name}: light-dark\((.*?), (.*?)\);", ours).groups()):
            assert colour in scheme, name
    for font in ("serif", "sans"):
        assert re.search(rf"--{font}: (.*?);", ours)[1] in theirs
