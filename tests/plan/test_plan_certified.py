"""Certificates: exact tests against enumeration, how often guarantees fail over many draws, files, and refusals."""

import math
from dataclasses import replace

import numpy as np
import pytest

from miserly.costs import CostTable
from miserly.plan import EXIT, Menu, Node, Plan, RawFeatures, load_menu, load_plan
from miserly.plan._certificate import confidences, lower_bound, rows_needed, tail

COSTS = CostTable.per_feature({"cheap": 1.0, "full": 10.0})


def staged():
    """A cheap guess, then the log-odds themselves: the labels follow the second feature."""
    nodes = (
        Node([0], [1.0], combine="replace", passed=1),
        Node([1], [1.0], combine="replace", passed=EXIT),
    )
    return Plan(COSTS, RawFeatures([0, 1]), nodes, [0.0], link="logistic", classes=np.array(["no", "yes"]))


def drawn(rng, n):
    """Rows whose second feature is the log-odds of their label; the first is that with noise."""
    odds = rng.normal(scale=4.0, size=n)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return np.column_stack([odds + rng.normal(scale=2.0, size=n), odds]), y


def figure(plan, X, y, of, whole):
    predicted = plan.predict(X)
    among = {"precision": predicted == "yes", "recall": y == "yes"}.get(of, np.ones(len(y), bool))
    return float((predicted == (whole if of == "agreement" else y))[among].mean())


@pytest.mark.parametrize("n", [1, 7, 30])
def test_tail_equals_enumeration(n):
    for right in range(n + 1):
        expected = sum(math.comb(n, k) * 0.8**k * 0.2 ** (n - k) for k in range(right, n + 1))
        assert tail(right, n, 0.8) == pytest.approx(expected, abs=1e-12)
        assert right == 0 or tail(right, n, lower_bound(right, n, 0.05)) <= 0.05 + 1e-9


def test_rows_needed_is_where_the_test_begins_to_pass():
    n = rows_needed(0.97, 0.95, 0.05)
    assert tail(math.floor(0.97 * n), n, 0.95) <= 0.05
    assert rows_needed(0.95, 0.95, 0.05) is None


def violations(n_draws, of, target, delta, n_rows=400):
    rng = np.random.default_rng(5)
    X_new, y_new = drawn(rng, 40_000)
    plan, failed, certified, cost = staged(), 0, 0, []
    whole = plan.predict(X_new)
    known = {}
    for _ in range(n_draws):
        X, y = drawn(rng, n_rows)
        try:
            safe = plan.certified(X, y, target=target, of=of, delta=delta)
        except ValueError:
            continue
        certified += 1
        key = (safe.certificate.confidence, safe.certificate.threshold)
        if key not in known:
            known[key] = figure(safe, X_new, y_new, of, whole)
        failed += known[key] < target
        cost.append(safe.certificate.cost)
    return failed, certified, float(np.mean(cost)) if cost else math.nan


@pytest.mark.parametrize(
    ("of", "target"), [("accuracy", 0.85), ("agreement", 0.95), ("recall", 0.9), ("precision", 0.9)]
)
def test_guarantees_rarely_fail(of, target):
    failed, certified, cost = violations(60, of, target, 0.1)
    assert certified >= 20
    assert failed <= 60 * 0.1 + 3 * math.sqrt(60 * 0.1 * 0.9)
    assert cost < 11.0 or of in ("recall", "precision")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of", "target"), [("accuracy", 0.85), ("agreement", 0.95), ("recall", 0.9), ("precision", 0.9)]
)
def test_guarantees_fail_at_most_as_often_as_delta_in_1000_draws(of, target):
    failed, _, _ = violations(1000, of, target, 0.05)
    assert failed / 1000 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1000)


def test_certificates_survive_files_and_are_shown(tmp_path):
    X, y = drawn(np.random.default_rng(0), 800)
    plan = staged().certified(X, y, target=0.85)
    plan.save(tmp_path / "a.plan")
    again = load_plan(tmp_path / "a.plan")
    assert again == plan
    assert again.certificate == plan.certificate
    assert "Certified: accuracy of at least 0.85" in again.describe()


def test_other_thresholds_have_no_certificate():
    X, y = drawn(np.random.default_rng(0), 800)
    plan = staged().certified(X, y, target=0.85)
    assert plan.stopping(0.7).certificate is None
    assert plan.with_error_costs([[0, 1], [9, 0]]).certificate is None
    assert plan.truncate(20).certificate is None


def test_menus_keep_the_plans_that_can_be_certified(tmp_path):
    X, y = drawn(np.random.default_rng(0), 2000)
    free = replace(staged(), nodes=(), roots=())
    menu = Menu([free, staged()], [0.0, np.inf], [[0, 0], [0, 1]], [[0, 0], [0, 11]]).certified(X, y, target=0.85)
    assert len(menu.plans) == 1
    assert menu.plans[0].certificate.delta == 0.025
    menu.save(tmp_path / "a.menu")
    assert load_menu(tmp_path / "a.menu") == menu


def test_agreement_needs_no_labels():
    X, _ = drawn(np.random.default_rng(0), 800)
    assert staged().certified(X, of="agreement", target=0.9).certificate.cost < 11.0


def test_refusals_say_how_many_rows_are_needed():
    X, y = drawn(np.random.default_rng(0), 30)
    with pytest.raises(ValueError, match=r"about \d+ calibration rows would be needed"):
        staged().certified(X, y, of="agreement", target=0.95)
    with pytest.raises(ValueError, match="no number of rows would do"):
        staged().certified(X, y, target=0.999)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"of": "f1"}, "of is one of"),
        ({"target": 1.0}, "target lies between"),
        ({"delta": 0.0}, "delta lies between"),
        ({"of": "recall", "positive": "maybe"}, "none of the classes"),
        ({"y_cal": ["no"]}, "one label per row"),
        ({"y_cal": None}, "give y_cal"),
    ],
)
def test_bad_input(how, words):
    X, y = drawn(np.random.default_rng(0), 30)
    with pytest.raises(ValueError, match=words):
        staged().certified(**{"X_cal": X, "y_cal": y, **how})


def test_thresholds_fall():
    assert (np.diff(confidences(3)) < 0).all()
    assert confidences(3)[-1] == pytest.approx(1 / 3)
