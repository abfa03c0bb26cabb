"""The form at `/` in a real browser: a consultation from empty to stop, every number as `advise` gives it."""

import re
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import uvicorn
from litestar.testing import TestClient

import miserly as ms
from miserly.frontiers import figure
from miserly.plan import Menu
from miserly.schema import CellRules, Column, Schema
from miserly.serve import create_app
from oracles.hand_built import PLANS
from report.browser import axe_source, chromium, screenshot

COSTS = ms.CostTable(
    features=("age", "ward", "oxygen", "crp", "lactate", "ct"),
    needs={
        "age": (),
        "ward": ("ask",),
        "oxygen": ("ask",),
        "crp": ("draw", "crp"),
        "lactate": ("draw", "lac"),
        "ct": ("ct",),
    },
    prices={"ask": 1.0, "draw": 2.0, "crp": 3.0, "lac": 4.5, "ct": 80.0},
    unit="CHF",
)
SCHEMA = Schema(
    (
        Column("age", unit="years"),
        Column("ward", "category", ("surgery", "oncology", "<b>trauma</b>")),
        Column("oxygen", "boolean"),
        Column("crp", unit="mg/l"),
        Column("lactate", unit="mmol/l"),
        Column("ct"),
    ),
    CellRules(decimal=","),
    label="died",
)
CASE = {"age": "61", "ward": "oncology", "oxygen": "yes", "crp": "12,5", "lactate": "2,75", "ct": "1"}
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 320, "height": 640}


def patients(n=900):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.integers(20, 95, n), rng.integers(0, 3, n), rng.random(n) < 0.3, *rng.gamma(2.0, 1.2, (3, n))]
    ).astype(float)
    risk = 0.04 * (X[:, 0] - 60) + (X[:, 1] == 1) + X[:, 2] + 0.5 * (X[:, 4] - 2.4) + 0.8 * (X[:, 5] - 2.4)
    return X, np.where(risk + rng.logistic(size=n) > 1, "yes", "no")


def quality(y):
    return lambda plan, run: float(
        np.log(plan.probabilities(run.z)[np.arange(len(y)), (y == "yes").astype(int)]).mean()
    )


@pytest.fixture(scope="module")
def served():
    X, y = patients()
    fits = [ms.GreedyMiserClassifier(COSTS, tradeoff=t, n_estimators=30).fit(X, y) for t in (1e-5, 1e-4)]
    plans = [replace(fit.plan_, schema=SCHEMA) for fit in fits]
    plans.append(plans[0].truncate(20.0))
    free = replace(plans[0], nodes=(), roots=())
    active = ms.ActiveClassifier(COSTS, tradeoff=1e-3, n_estimators=20, n_rounds=1, lookahead=False).fit(X, y)
    menu = Menu.measured([free, *reversed(plans)], X, quality(y))
    return {"plan": plans[0], "menu": menu, "active": replace(active.plan_, schema=SCHEMA)}


@contextmanager
def running(app):
    """The application behind a real port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="module")
def browser():
    with chromium() as one:
        yield one


@pytest.fixture
def opened(browser, served):
    """Opens the form of a model; at the end nothing may have gone wrong in it, nor been asked of another server."""
    troubles, closing = [], []

    def open_form(model, size=WIDE, budget=None, **options):
        server = running(create_app(served[model] if isinstance(model, str) else model, budget=budget))
        url = server.__enter__()
        context = browser.new_context(viewport=size, **options)
        closing.extend([context.close, lambda: server.__exit__(None, None, None)])
        page = context.new_page()
        expected = "status of 400"  # the browser's own line about a value that the server refuses
        page.on("console", lambda m: troubles.append(m.text) if m.type == "error" and expected not in m.text else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda r: troubles.append(r.url) if not r.url.startswith((url, "data:")) else None)
        page.goto(url)
        page.locator("#total", has_text=re.compile(r"\d")).wait_for()
        return page

    yield open_form
    for close in closing:
        close()
    assert troubles == []


def settled(page):
    """Wait for the answer to the last question."""
    page.locator("#form:not([aria-busy])").wait_for()


def check(page, model, known, owned=(), unavailable=(), budget=None, paid=0.0):
    """What stands there is what the library says of this state."""
    settled(page)
    left = None if budget is None else max(0.0, budget - paid)
    advice = ms.advise(model, known, unavailable, left, owned)
    assert page.inner_text("#total") == f"{figure(float(paid))} CHF"
    if budget is not None:
        assert page.inner_text("#left") == f"{figure(float(left))} CHF"
    shown = dict(re.findall(r"(\S+)\n([\d.]+) %", page.inner_text("#prediction")))
    for label, p in zip(model.classes, advice.probabilities):
        assert shown[str(label)] == f"{100 * p:.1f}"
    assert page.inner_text("#prediction .best") == advice.value
    order = page.inner_text("#advice .order")
    if advice.stop:
        assert order == "Nothing more"
        assert page.inner_text("#advice .soft >> nth=0").lower() == advice.why.removeprefix("Stop: ").lower()
    else:
        assert order == " and ".join(advice.together)
        assert page.inner_text("#advice .price") == f"{figure(float(advice.price))} CHF"
        if advice.expected_gain >= 1e-9:
            assert f"by {figure(float(advice.expected_gain))}." in page.inner_text("#advice")
    return advice


def fill(page, host, name, text):
    control = page.locator(f"{host} [name='{name}']")
    if control.evaluate("c => c.tagName") == "SELECT":
        control.select_option(label=text)
    else:
        control.fill(text)


@pytest.mark.parametrize("name", ["plan", "menu", "active"])
def test_a_consultation_from_empty_to_stop(opened, served, name):
    page, model, budget = opened(name), served[name], 20.0
    assert "prediction of “died”" in page.inner_text("#lead")
    check(page, model, {})
    page.fill("#budget", "20")
    page.keyboard.press("Tab")
    check(page, model, {}, budget=budget)
    fill(page, "#known", "age", CASE["age"])
    page.keyboard.press("Tab")
    known, owned, paid, n_orders = {"age": "61"}, [], 0.0, 0
    advice = check(page, model, known, budget=budget)
    while not advice.stop:
        owned += advice.together
        paid += advice.price
        n_orders += 1
        brought = [f for f in COSTS.features if f not in known and set(COSTS.needs[f]) <= set(owned)]
        fields = page.locator("#advice .results input, #advice .results select")
        assert fields.evaluate_all("all => all.map(c => c.name)") == brought
        for feature in brought:
            fill(page, "#advice", feature, CASE[feature])
            known[feature] = CASE[feature] == "yes" if feature == "oxygen" else CASE[feature]
        page.locator("#advice .primary").click()
        advice = check(page, model, known, owned, budget=budget, paid=paid)
        assert page.locator("#bill .sum").count() == n_orders
    assert n_orders >= 2
    assert paid <= budget
    sums = [float(s) for s in page.locator("#bill .sum").all_inner_texts()]
    assert sum(sums) == pytest.approx(paid)
    assert page.locator("#live").inner_text().endswith("Nothing more to order.")
    screenshot(page, f"form-{name}-stop")
    for _ in range(n_orders):
        page.locator("#undo").click()
    check(page, model, {"age": "61"}, budget=budget)
    page.locator("#redo").click()
    page.go_back()  # the browser's own button
    check(page, model, {"age": "61"}, budget=budget)
    page.locator("#again").click()
    check(page, model, {}, budget=budget)


def test_what_is_not_available_and_other_orders(opened, served):
    page, model = opened("plan"), served["plan"]
    first = check(page, model, {})
    name = first.together[-1]
    button = f"{name} is not available" if len(first.together) > 1 else "Not available"
    page.get_by_role("button", name=button, exact=True).click()
    advice = check(page, model, {}, unavailable=[name])
    assert name not in advice.together
    page.get_by_role("button", name=f"{name}: available again").click()
    check(page, model, {})
    page.locator("#advice summary").click()
    rows = [line.split("\t") for line in page.locator("#advice tbody tr").all_inner_texts()]
    rest = [c for c in first.ranking if set(c.acquisitions) != set(first.together)]
    assert [row[1] for row in rows] == [figure(float(c.price)) for c in rest]
    other = next(c for c in rest if c.acquisitions == ("ct",))
    page.get_by_role("button", name="Order ct instead").click()
    assert page.inner_text("#advice .price") == "80 CHF"
    page.get_by_role("button", name="Enter result").click()  # nothing entered: the test gave no result
    check(page, model, {"ct": None}, ["ct"], paid=other.price)


def test_a_known_value_of_a_draw_leaves_the_other_test_alone_with_a_field_for_its_result(opened, served):
    page, model = opened("active"), served["active"]
    fill(page, "#known", "crp", "12,5")
    page.locator("#known [name=crp]").press("Enter")
    advice = check(page, model, {"crp": "12,5"})
    assert {c.acquisitions: c.price for c in advice.ranking}[("lac",)] == 4.5
    if advice.together != ("lac",):
        page.locator("#advice summary").click()
        page.get_by_role("button", name="Order lac instead").click()
    assert page.locator("#advice .results [name=lactate]").count() == 1


def test_a_wrong_value_is_said_at_its_field_and_changes_nothing(opened, served):
    page, model = opened("plan", budget=30.0), served["plan"]
    check(page, model, {}, budget=30.0)  # the server's own budget stands in the field
    fill(page, "#known", "crp", "12.5")
    page.keyboard.press("Tab")
    trouble = page.locator(".trouble:not([hidden])")
    trouble.wait_for()
    assert "decimal mark ','" in trouble.inner_text()
    assert page.locator("#known [name=crp]").get_attribute("aria-invalid") == "true"
    fill(page, "#known", "crp", "12,5")
    page.keyboard.press("Enter")
    check(page, model, {"crp": "12,5"}, budget=30.0)
    assert not trouble.is_visible()
    page.fill("#budget", "much")
    page.keyboard.press("Tab")
    assert "zero or more" in trouble.inner_text()


def test_many_classes_numbers_and_lists(opened):
    page = opened(PLANS["forest"]())
    assert page.locator("#prediction .number").count() + page.locator("#prediction li").count() >= 1
    by_query = next(plan for plan in (make() for make in PLANS.values()) if plan.by_query)
    with TestClient(create_app(by_query)) as client:
        text = client.get("/").text
    assert "cannot ask" in text
    assert "POST" in text


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_axe_finds_nothing_serious_and_a_narrow_screen_holds_it(opened, size, scheme):
    source = axe_source()
    page = opened("menu", size, color_scheme=scheme, bypass_csp=True)  # axe is injected; the policy is tested beside
    page.locator("#advice summary").click()
    page.evaluate(source)
    screenshot(page, f"form-{size['width']}-{scheme}")
    found = page.evaluate("axe.run()")["violations"]
    bad = [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in found if v["impact"] in ("serious", "critical")]
    assert bad == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_the_policy_is_strict_and_data_is_never_markup(served):
    with TestClient(create_app(served["menu"])) as client:
        response = client.get("/")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<b>trauma" not in response.text
    assert not re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", response.text)
    assert response.headers["cache-control"] == "no-store"
