"""A raw hospital table (words, dates, identifiers, decimal commas, marks, a leak) from `init` to a served prediction,
without a change of the data; and the ten likeliest mistakes on the way."""

import csv
import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from command import miserly
from litestar.testing import TestClient

from miserly.cli.frontier import split_rows
from miserly.costs import CostTable
from miserly.datasets import Table, hospital_csv
from miserly.plan import Menu, load_menu, load_plan
from miserly.serve import create_app

SWEEP = ("--method", "greedy-miser", "--n-estimators", 30, "--grid", "1e-5:1e-1:3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("hospital")
    miserly("data", "hospital", "-n", 500, cwd=path)
    args = ("--label", "died", "--id", "patient", "--drop", "admitted", "--price", 1, "-o", "costs.toml")
    miserly("init", "patients.csv", *args, cwd=path)
    miserly("frontier", "patients.csv", "--costs", "costs.toml", *SWEEP, "--budget", 6, cwd=path)
    return path


def test_init_writes_a_price_file_and_proposes_what_to_leave_out(folder):
    args = ("--label", "died", "--id", "patient", "--drop", "admitted", "-o", "empty.toml")
    printed = miserly("init", "patients.csv", *args, cwd=folder)
    assert "Left out: 'country': it is constant" in printed
    assert "Left out: 'discharge': it alone explains 100% of the label" in printed
    assert "Write the prices into empty.toml, then: miserly frontier patients.csv --costs empty.toml" in printed
    content = tomllib.loads((folder / "costs.toml").read_text(encoding="utf-8"))
    assert list(content["columns"]) == ["age", "ward", "smoking", "oxygen", "crp [mg/l]", "lactate [mmol/l]"]
    assert content["columns"]["crp [mg/l]"] == {"price": 1, "group": "", "unit": "mg/l", "type": "number"}
    assert content["table"]["drop"] == ["admitted", "country", "discharge"]
    assert CostTable.from_file(folder / "costs.toml").price(content["columns"]) == 6
    with pytest.raises(ValueError, match=r"line \d+, column 'age': it has no price yet. Write a number"):
        CostTable.from_file(folder / "empty.toml")
    assert "'costs.toml' exists" in miserly("init", "patients.csv", cwd=folder, code=2)
    guessed = miserly("init", "patients.csv", "--label", "died", "-o", "guessed.toml", cwd=folder)
    assert "Left out: 'patient': nearly every row has its own word" in guessed
    assert "give it a price. If it names the rows, give --id, and predictions copy it." in guessed
    assert "Look at 'admitted': a date. Leave it out (--drop)" in guessed


def test_groups_of_columns_share_a_price(folder):
    text = (folder / "costs.toml").read_text(encoding="utf-8")
    for name in ("crp [mg/l]", "lactate [mmol/l]"):
        line = next(line for line in text.splitlines() if line.startswith(f'"{name}"'))
        text = text.replace(line, line.replace('group = ""', 'group = "blood"'))
    (folder / "grouped.toml").write_text(text.replace("\n[groups]", "\n[groups]\nblood = 5"), encoding="utf-8")
    costs = CostTable.from_file(folder / "grouped.toml")
    assert costs.price(["crp [mg/l]"]) == 6
    assert costs.price(["crp [mg/l]", "lactate [mmol/l]"]) == 7


def test_predictions_carry_the_identifier_and_the_labels(folder):
    plan = load_plan(folder / "frontier/chosen.plan")
    assert plan.schema["ward"].categories == ("cardiology", "oncology", "surgery", "trauma")
    assert plan.schema.id == "patient"
    printed = miserly("predict", "frontier/chosen.plan", "new.csv", "--proba", cwd=folder)
    rows = list(csv.DictReader(io.StringIO(printed)))
    original = list(csv.DictReader(io.StringIO(hospital_csv(500, 1).lstrip("\ufeff")), delimiter=";"))
    assert [row["patient"] for row in rows] == [row["patient"] for row in original]
    assert {row["prediction"] for row in rows} == {"yes", "no"}
    right = sum(row["prediction"] == known["died"] for row, known in zip(rows, original))
    assert right > 0.65 * len(rows)
    features = [{name: row[name] for name in plan.schema.names} for row in original]
    assert plan.predict(features).tolist() == [row["prediction"] for row in rows]


def test_columns_may_come_in_any_order_and_dialect(folder):
    rows = list(csv.DictReader(io.StringIO(hospital_csv(500, 1).lstrip("\ufeff")), delimiter=";"))
    file = io.StringIO()
    writer = csv.DictWriter(file, [*reversed(rows[0]), "more"])
    writer.writeheader()
    writer.writerows({k: v.replace(",", ".") for k, v in row.items()} | {"more": "1"} for row in rows)
    (folder / "shuffled.csv").write_text(file.getvalue())
    same = miserly("predict", "frontier/chosen.plan", "new.csv", cwd=folder)
    assert miserly("predict", "frontier/chosen.plan", "shuffled.csv", cwd=folder) == same


def test_the_server_takes_the_rows_of_the_table(folder):
    plan = load_plan(folder / "frontier/chosen.plan")
    rows = list(csv.DictReader(io.StringIO(hospital_csv(500, 1).lstrip("\ufeff")), delimiter=";"))[:20]
    with TestClient(create_app(plan)) as client:
        for row in rows:
            answer = client.post("/v1/predict", json={"row": row}).json()
            expected = plan.predict([row])[0]
            assert answer["value"] == expected, answer
        refused = client.post("/v1/predict", json={"row": rows[0] | {"age": "old"}})
        assert refused.status_code == 400
        assert "'old' is not a number" in refused.text


def test_a_run_becomes_a_page_with_words(folder):
    assert "report.html" in miserly("report", "frontier", cwd=folder)
    plans = [load_plan(path) for path in (folder / "frontier/plans").iterdir()]
    assert any("ward" in plan.describe() for plan in plans)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert any(ward in page for ward in ("cardiology", "oncology", "surgery", "trauma"))


def test_the_default_searches_a_portfolio_and_leaves_a_menu(folder):
    args = ("--costs", "costs.toml", "--time-limit", 4, "--out", "auto")
    assert "frontier.menu" in miserly("frontier", "patients.csv", *args, cwd=folder)
    described = miserly("explain", "auto/frontier.menu", cwd=folder)
    assert "plan 0, constant: mean cost 0" in described
    assert miserly("explain", "auto/frontier.menu", "--number", 1, cwd=folder)
    for budget in (0, 1, 3):
        args = ("predict", "auto/frontier.menu", "new.csv", "--budget", budget, "--json")
        rows = json.loads(miserly(*args, cwd=folder))
        assert max(row["cost"] for row in rows) <= budget
        assert list(rows[0]) == ["patient", "prediction", "cost", "stopped"]
    assert load_plan(folder / "auto/chosen.plan").schema.id == "patient"
    miserly("report", "auto", "-o", "auto.html", cwd=folder)
    refused = miserly("frontier", "patients.csv", "--costs", "costs.toml", "--grid", "1:2:3", cwd=folder, code=2)
    assert "--grid is for one method: add --method greedy-miser" in " ".join(refused.split())


def test_what_to_buy_next_for_one_patient(folder):
    known = ("--known", "age=84", "--known", "ward=oncology", "--known", "smoking=n/a")
    args = ("next", "frontier/chosen.plan", *known, "--budget", 3)
    advice = json.loads(miserly(*args, "--json", cwd=folder))
    assert advice["value"] in ("yes", "no")
    assert advice["stop"] or advice["price"] <= 3
    printed = miserly(*args, cwd=folder)
    assert f"Prediction: died = {advice['value']}" in printed
    assert advice["why"] in printed
    without = json.loads(miserly(*args, "--unavailable", "lactate [mmol/l]", "--json", cwd=folder))
    assert without["next"] != "lactate [mmol/l]"
    assert "knows no feature 'agee'" in miserly("next", "frontier/chosen.plan", "--known", "agee=1", cwd=folder, code=1)
    assert "FEATURE=VALUE" in miserly("next", "frontier/chosen.plan", "--known", "age", cwd=folder, code=2)


def test_methods_are_compared_on_the_same_rows(folder):
    methods = ("--method", "path-tree", "--method", "stagewise")
    args = ("compare", "patients.csv", "--costs", "costs.toml", *methods)
    rows = json.loads(miserly(*args, "--json", cwd=folder))
    assert {row["method"] for row in rows} == {"path-tree", "stagewise"}
    assert rows[0]["area"] >= rows[1]["area"]
    miserly("report", "compare/path-tree", "compare/stagewise", "-o", "both.html", cwd=folder)
    assert "does no ranking" in miserly(*args, "--task", "ranking", cwd=folder, code=2)


def test_the_transcript_of_the_page_is_what_is_printed(tmp_path, folder):
    """The page's commands up to the sweep print its lines; its request is answered by a plan and by a menu."""
    page = (Path(__file__).parents[2] / "docs/tables.md").read_text(encoding="utf-8")
    commands = [shlex.split(line) for line in re.search(r"```sh\n(.*?)```", page, re.DOTALL)[1].splitlines()]
    assert [words[1] for words in commands[:5]] == ["data", "init", "frontier", "predict", "serve"]
    printed = "".join(miserly(*words[1:], cwd=tmp_path) for words in commands[:2])
    for line in re.search(r"```text\n(.*?)```", page, re.DOTALL)[1].splitlines():
        assert line in printed.splitlines()
    written = (tmp_path / "costs.toml").read_text(encoding="utf-8").splitlines()
    shown = [line for line in re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1].splitlines() if line.startswith('"')]
    squeezed = {re.sub(r" += ", " = ", line) for line in written}
    assert all(re.sub(r" += ", " = ", line).replace('"blood"', '""') in squeezed for line in shown)
    plan = load_plan(folder / "frontier/chosen.plan")
    menu = Menu([plan], [0.0, np.inf], [[0.5, 0.7]], [[0.0, 2.0]])
    for model in (plan, menu):
        with TestClient(create_app(model)) as client:
            answer = client.post("/v1/predict", json=json.loads(commands[-1][-1]))
            assert answer.json()["value"] == "yes", answer.text


MISTAKES = {
    "a label that is misspelt": (
        ("frontier", "patients.csv", "--costs", "costs.toml", "--label", "Died"),
        "'patients.csv': There is no column 'Died' for the label. Did you mean 'died'?",
    ),
    "no label at all": (
        ("frontier", "patients.csv", "--costs", "flat.csv", "--id", "patient"),
        "Give --label COLUMN. It has: patient, admitted",
    ),
    "columns without a price": (
        ("frontier", "patients.csv", "--costs", "flat.csv", "--label", "died", "--drop", "patient"),
        "column 'crp [mg/l]': No price in 'flat.csv'. Add one there, or leave the column out: --drop crp [mg/l].",
    ),
    "an identifier among the features": (
        ("frontier", "patients.csv", "--costs", "flat.csv", "--label", "died"),
        "column 'patient': No price in 'flat.csv', and 500 different words: an identifier or free text?",
    ),
    "a price that is not filled in": (
        ("frontier", "patients.csv", "--costs", "unfilled.toml", "--label", "died"),
        "column 'age': it has no price yet. Write a number in place of '?'.",
    ),
    "a price for a column that is not there": (
        ("frontier", "patients.csv", "--costs", "extra.csv", "--label", "died"),
        "'wardd' has a price, but 'patients.csv' has no such column. Did you mean 'ward'?",
    ),
    "a word among numbers": (
        ("frontier", "typo.csv", "--costs", "costs.toml"),
        "'typo.csv', line 4, column 'age': 'sixty' is not a number. Correct it, or read it as a missing value",
    ),
    "a line that is cut short": (
        ("frontier", "cut.csv", "--costs", "costs.toml"),
        "'cut.csv', line 3: 2 cells, the header has 11. Add the missing cells.",
    ),
    "a validation file that lacks a column": (
        ("frontier", "patients.csv", "lacking.csv", "--costs", "costs.toml"),
        "'lacking.csv': There is no column 'ward', which the model reads. Did you mean 'Ward'?",
    ),
    "labels that are all the same": (
        ("frontier", "healthy.csv", "--costs", "costs.toml"),
        "column 'died': All 3 labels are no: there is nothing to learn.",
    ),
    "a file that is not there": (("frontier", "patient.csv", "--costs", "costs.toml"), "'patient.csv' does not exist"),
    "a file for prediction that lacks a column": (
        ("predict", "frontier/chosen.plan", "lacking.csv"),
        "There is no column 'ward', which the model reads. Did you mean 'Ward'?",
    ),
}


@pytest.fixture(scope="module")
def mistakes(folder):
    text = (folder / "patients.csv").read_text(encoding="utf-8-sig")
    header, *lines = text.splitlines()
    (folder / "flat.csv").write_text("feature,cost\nage,1\nward,1\n")
    (folder / "extra.csv").write_text("feature,cost\nage,1\nwardd,1\n")
    (folder / "unfilled.toml").write_text('[columns]\nage = { price = "?" }\nward = { price = 1 }\n')
    cells = lines[2].split(";")
    (folder / "typo.csv").write_text(
        "\n".join([header, *lines[:2], ";".join([*cells[:3], "sixty", *cells[4:]]), *lines[3:]])
    )
    (folder / "cut.csv").write_text("\n".join([header, lines[0], "P1;x", *lines[2:]]))
    (folder / "lacking.csv").write_text("\n".join([header.replace("ward", "Ward"), *lines]))
    (folder / "healthy.csv").write_text("\n".join([header, *[line for line in lines if line.endswith(";no")][:3]]))
    return folder


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_likeliest_mistakes_name_the_place_and_the_remedy(mistakes, mistake):
    args, message = MISTAKES[mistake]
    code = 2 if args[1] == "patient.csv" else 1
    printed = " ".join(miserly(*args, cwd=mistakes, code=code).split())
    assert message in printed


def test_mistakes_are_found_before_anything_heavy_is_loaded(mistakes):
    """Training code and compiled code stay out, which is why a message takes a fraction of a second."""
    code = (
        "import sys; from miserly.cli import main\n"
        "sys.argv = ['miserly', 'frontier', 'typo.csv', '--costs', 'costs.toml']\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 1\n"
        "heavy = [m for m in ('numba', 'sklearn', 'scipy', 'pandas', 'matplotlib') if m in sys.modules]\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=mistakes)
    assert done.returncode == 0, done.stderr
    assert "sixty" in done.stderr


def test_several_files_are_reported_at_once(mistakes):
    args = ("frontier", "typo.csv", "lacking.csv", "--costs", "unfilled.toml", "--label", "died")
    printed = miserly(*args, cwd=mistakes, code=1)
    for part in ("it has no price yet", "'sixty' is not a number", "no column 'ward'"):
        assert part in printed


def test_a_protocol_names_the_outcome_and_follows_what_mistakes_cost(folder):
    given = ("explain", "frontier/chosen.plan", "--rows", "patients.csv")
    plain = miserly(*given, cwd=folder)
    assert "predict died = no" in plain
    assert "died = yes in " in plain
    careful = miserly(*given, "--error-costs", "no:yes=1,yes:no=500", cwd=folder)
    assert "predict died = no" not in careful, "where a missed death costs 500, every leaf says yes"
    miserly(*given, "--out", "page.html", "--title", "Who may die", cwd=folder)
    assert "<title>Who may die</title>" in (folder / "page.html").read_text(encoding="utf-8")
    wrong = miserly(*given, "--error-costs", "no:maybe=1", cwd=folder, code=2)
    assert "There is no class 'maybe'" in wrong or "there is no class 'maybe'" in wrong
    assert "as in no:yes=1,yes:no=20" in miserly(*given, "--error-costs", "20", cwd=folder, code=2)


def test_a_frontier_is_chosen_by_what_mistakes_cost(folder):
    args = ("patients.csv", "--costs", "costs.toml", *SWEEP, "--out", "by_mistakes")
    miserly("frontier", *args, "--error-costs", "no:yes=1,yes:no=20", cwd=folder)
    plan, menu = load_plan(folder / "by_mistakes/chosen.plan"), load_menu(folder / "by_mistakes/frontier.menu")
    assert plan.error_costs.tolist() == [[0, 1], [20, 0]]
    assert all(p.error_costs.tolist() == [[0, 1], [20, 0]] for p in menu.plans)
    assert "give no --quality" in miserly(
        "frontier", *args, "--error-costs", "no:yes=1,yes:no=20", "--quality", 0.9, cwd=folder, code=2
    )
    miserly("report", "by_mistakes", cwd=folder)
    assert '"outcome":"died"' in (folder / "report.html").read_text(encoding="utf-8")


def test_next_charges_no_draw_twice_and_says_what_it_does_not_know(folder):
    text = (folder / "costs.toml").read_text(encoding="utf-8")
    text = re.sub(r'(mmol/l\]" = .*|mg/l\]" .*?)group = ""', r'\1group = "blood"', text)
    (folder / "blood.toml").write_text(text.replace("\n[groups]", "\n[groups]\nblood = 5"), encoding="utf-8")
    miserly("frontier", "patients.csv", "--costs", "blood.toml", *SWEEP, "--out", "blood", cwd=folder)
    plan = load_menu(folder / "blood/frontier.menu").plans[-1]
    plan.save(folder / "blood.plan")
    price = plan.costs.prices["lactate [mmol/l]"]
    for given in (("--known", "crp [mg/l]=3"), ("--owned", "blood")):
        asked = ("next", "blood.plan", *given, "--known", "ward=onkology", "--json")
        found = json.loads(miserly(*asked, cwd=folder))
        lactate = next(c for c in found["ranking"] if c["acquisitions"] == ["lactate [mmol/l]"])
        assert lactate["price"] == price
        assert found["unknown_words"] == ["ward"]
    printed = miserly("next", "blood.plan", "--known", "ward=onkology", cwd=folder)
    assert "The plan has not seen ward = 'onkology': it counts as missing." in printed
    assert printed.startswith("Prediction: died = ")
    assert "Did you mean 'crp [mg/l]'?" in miserly("next", "blood.plan", "--known", "CRP=3", cwd=folder, code=1)


@pytest.mark.parametrize(
    ("task", "how"), [("classification", "at random, stratified by the label"), ("regression", "at random")]
)
def test_it_is_said_how_rows_were_split(task, how, capsys):
    y = np.arange(40) % 2
    split_rows(Table(np.zeros((40, 1)), ("age",), y, None), 0.25, task, False, 0)
    assert capsys.readouterr().err == f"30 training rows, 10 validation rows, split {how}.\n"
