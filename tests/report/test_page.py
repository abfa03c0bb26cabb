"""The page in a browser, from disk, with the network off: what it shows is what the plans and the metrics say."""

import re

import numpy as np
import pytest
from browser import axe_source, chromium, screenshot
from sweeps import mail, search, triage

from miserly.frontiers import figure
from miserly.report import protocol, write_report

RUNS = {"triage": triage, "mail": mail, "search": search}
EACH = ["triage", "mail", pytest.param("search", marks=pytest.mark.slow)]
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 320, "height": 640}


@pytest.fixture(scope="module")
def browser():
    with chromium() as one:
        yield one


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    runs = {name: make() for name, make in RUNS.items()}
    for name, run in runs.items():
        write_report(run, folder / f"{name}.html")
    return folder, runs


@pytest.fixture
def opened(browser, pages):
    """Opens a page of a name; at the end nothing may have gone wrong in it, nor been asked of the network."""
    troubles, contexts = [], []

    def open_page(name, size=WIDE, **options):
        context = browser.new_context(viewport=size, offline=True, accept_downloads=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "request", lambda r: troubles.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None
        )
        page.goto((pages[0] / f"{name}.html").as_uri())
        return ready(page)

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def ready(page):
    """Sections off the screen are shown a little later."""
    page.locator("html:not([data-busy])").wait_for()
    return page


def plans_of(run):
    """The plans that the slider visits, cheapest first."""
    return [point.model.plan_ for point in run.front.pareto()]


def bought_by(plan):
    return {name for line in plan.purchases() for name in line["buys"]}


def quality_of(plan, run):
    rows, metric = run.rows, run.front.metric
    if metric.grouped:
        return metric(rows.y, plan.rank_score(rows.X, rows.qid), qid=rows.qid)
    if metric.input == "proba":
        return metric(rows.y, plan.predict_proba(rows.X), classes=plan.classes)
    return metric(rows.y, plan.predict(rows.X))


@pytest.mark.parametrize("name", EACH)
def test_at_every_stop_of_the_slider_the_figures_are_those_of_the_plan(opened, pages, name):
    page, run = opened(name), pages[1][name][0]
    if len(pages[1][name]) > 1:
        page.select_option("#path", label=run.front.name)
    plans = plans_of(run)
    slider = page.locator("#budget")
    assert slider.get_attribute("max") == str(len(plans) - 1)
    slider.focus()
    page.keyboard.press("Home")
    table = {row["test_mean_cost"]: row for row in run.front.records()}
    for plan, point in zip(plans, run.front.pareto()):
        cost = plan.predict_cost(run.rows.X, run.rows.qid)
        assert page.inner_text("#cost") == figure(float(cost.mean()))
        assert page.inner_text("#quality") == figure(float(quality_of(plan, run)))
        line = table[point.test.cost["mean"]]
        assert page.inner_text("#quality") == figure(line[run.front.metric.name])
        assert page.inner_text("#cost") == figure(line["mean_cost"])
        shown = dict(re.findall(r"(.+)\t(\S.*)\t.*", page.inner_text("#compare table")))
        assert shown["Cost of 95 % of rows"] == f"≤ {figure(float(np.percentile(cost, 95)))}"
        assert shown["Most expensive row"] == figure(float(cost.max()))
        assert figure(float(cost.mean())) in slider.get_attribute("aria-valuetext")
        page.keyboard.press("ArrowRight")


def test_nothing_moves_under_the_pointer_while_the_slider_is_dragged(opened):
    for size in (WIDE, NARROW):
        page = opened("triage", size)
        page.locator("#budget").focus()
        places = []
        for key in ("Home", *["ArrowRight"] * 5):
            page.keyboard.press(key)
            places.append(
                page.evaluate("Object.values(document.getElementById('budget').getBoundingClientRect().toJSON())")
            )
        assert places == places[:1] * 6


def test_dragging_the_slider_and_pointing_at_a_mark(opened, pages):
    page, run = opened("triage"), pages[1]["triage"][0]
    page.select_option("#path", label="Anytime")
    box = page.locator("#budget").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 3, middle, steps=5)
    page.mouse.up()
    expensive = plans_of(run)[-1].predict_cost(run.rows.X).mean()
    assert page.inner_text("#cost") == figure(float(expensive))
    assert "1.0×" in page.inner_text("#times")
    page.locator("#frontier .target").first.click()
    assert page.inner_text("#cost") == figure(float(plans_of(run)[0].predict_cost(run.rows.X).mean()))
    page.fill("#most", "13")
    page.keyboard.press("Tab")
    within = max(p.validation.cost["mean"] for p in run.front.pareto() if p.validation.cost["mean"] <= 13)
    assert page.inner_text("#cost") == figure(within)
    page.locator("#live", has_text="CAD").wait_for(state="attached")


def test_the_bill_and_the_model_beside_it(opened, pages):
    page, run = opened("mail"), pages[1]["mail"][0]
    assert page.input_value("#requests") == page.input_value("#unit-price") == ""
    assert not page.locator("#bills").is_visible(), "no invented bill"
    page.fill("#requests", "1000")
    page.fill("#unit-price", "0.5")
    number = lambda name: float(page.inner_text(name).replace(",", ""))  # noqa: E731
    highest = max(p.validation.cost["mean"] for p in run.front.points)
    here = run.chosen.validation.cost["mean"]
    assert number("#bill-here") == pytest.approx(1000 * 30 * 0.5 * here, abs=0.5)
    assert number("#bill-blind") == pytest.approx(1000 * 30 * 0.5 * highest, abs=0.5)
    assert number("#bill-saved") == pytest.approx(1000 * 30 * 0.5 * (highest - here), abs=1)
    assert "Most expensive model" in page.inner_text("#compare")


def test_what_is_bought_and_what_is_not(opened, pages):
    page, run = opened("triage"), pages[1]["triage"][0]
    page.select_option("#path", label="Anytime")
    page.fill("#most", "3.1")
    page.keyboard.press("Tab")
    ready(page)
    plan = run.front.points[2].model.plan_
    bought = bought_by(plan)
    cells = page.locator("#bought tbody tr td:nth-child(2)").all_inner_texts()
    assert {name for cell in cells for name in cell.split(", ")} == bought
    paid = page.locator("#bought tbody tr td:nth-child(4)").all_inner_texts()
    assert paid == [figure(line["total"]) for line in plan.purchases()]
    rest = [line.split("\t") for line in page.locator("#unbought tbody tr").all_inner_texts()]
    assert {name for line in rest for name in line[0].split(", ")} == set(plan.costs.acquisitions) - bought
    first = next(p for p in run.front.pareto() if "t3" in bought_by(p.model.plan_))
    line = next(line for line in rest if "t3" in line[0].split(", "))
    assert line[2] == figure(first.validation.cost["mean"])
    assert line[3] == figure(first.validation.quality), "of the whole model there"
    page.locator("#unbought button.inline", has_text=line[2]).first.click()
    assert page.inner_text("#cost") == line[2]


@pytest.mark.parametrize("name", EACH)
def test_walking_a_row(opened, pages, name):
    page, run = opened(name), pages[1][name][0]
    if len(pages[1][name]) > 1:
        page.select_option("#path", label=run.front.name)
    page.locator("#budget").focus()
    page.keyboard.press("End")
    ready(page)
    plan = plans_of(run)[-1]
    cost, answers = plan.predict_cost(run.rows.X, run.rows.qid), plan.predict(run.rows.X, run.rows.qid)
    for place in (0, 4, 7):
        button = page.locator("#rows tbody button").nth(place)
        row = int(button.inner_text())
        button.click()
        assert page.inner_text("#way h3") == f"Row {row}"
        facts = dict(re.findall(r"(.+)\n(.+)", page.inner_text("#way .facts")))
        assert facts["Paid"] == figure(float(cost[row]))
        answer = answers[row]
        assert facts["Prediction"].startswith(str(answer) if plan.classes is not None else figure(float(answer)))
        steps = page.locator("#way .steps li").all_inner_texts()
        assert steps[0].startswith("Before any purchase")
        assert steps[-1].endswith(f"paid {figure(float(cost[row]))}")
        if not plan.by_query:
            walk = plan.start()
            for step in steps[1:]:
                shown = step.split("\n")[0].removeprefix("Buys ")
                assert shown == ", ".join(walk.needs)
                value = {n: float(run.rows.X[row, f]) for n, f in plan.tables.arriving(walk.owned, walk.asked).items()}
                walk.supply(value)
                assert f"paid {figure(walk.cost)}" in step
                best = walk.best
                seen = str(best.value) if plan.classes is not None else figure(float(f"{best.value:.4g}"))
                assert f"predicts {seen}" in step
            assert walk.done
    page.get_by_role("button", name="Next row").click()
    assert page.inner_text("#way h3") != f"Row {row}"


def test_tables_sort_and_filter(opened, pages):
    page, runs = opened("triage"), pages[1]["triage"]
    column = page.locator("#all tbody tr td:nth-child(4)")
    head = page.locator("#all th").nth(3)
    costs = [p.validation.cost["mean"] for run in runs for p in run.front.points]
    assert column.all_inner_texts() == [figure(c) for c in costs]
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert column.all_inner_texts() == [figure(c) for c in sorted(costs, reverse=True)]
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column.all_inner_texts() == [figure(c) for c in sorted(costs)]
    page.locator("#all input[type=search]").fill("casc")
    assert page.locator("#all tbody tr").count() == 1
    assert "1 of 10 match" in page.inner_text("#all")


def test_figures_are_saved_as_svg(opened, tmp_path):
    page = opened("mail")
    for name in ("frontier", "drawing", "spending", "calibration", "tiers"):
        with page.expect_download() as waiting:
            page.locator(f"#{name}").get_by_role("button", name="Save SVG").click()
        waiting.value.save_as(tmp_path / f"{name}.svg")
        text = (tmp_path / f"{name}.svg").read_text()
        assert text.startswith("<?xml")
        assert "var(--" not in re.sub(r'style="[^"]*"', "", text)
    copy = page.context.new_page()
    copy.goto((tmp_path / "frontier.svg").as_uri())
    assert copy.locator("path").count() > 5


@pytest.mark.parametrize("name", EACH)
def test_a_narrow_screen(opened, name):
    page = opened(name, NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.locator("#budget").focus()
    page.keyboard.press("End")
    assert ready(page).locator("#verdict").is_visible()
    screenshot(page, f"{name}-320-light")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_light_and_dark(opened):
    colour = "getComputedStyle(document.body).backgroundColor"
    page = opened("triage", color_scheme="dark")
    assert page.evaluate(colour) == "rgb(18, 20, 24)"
    screenshot(page, "triage-1280-dark")
    page.locator("#theme").click()
    assert page.evaluate(colour) == "rgb(248, 245, 238)"
    page.locator("#theme").click()
    assert page.evaluate(colour) == "rgb(18, 20, 24)"
    page.emulate_media(color_scheme="light")
    page.locator("#theme").click()
    assert page.evaluate(colour) == "rgb(248, 245, 238)"


LOOKS = [(name, size, scheme) for name in RUNS for size in (WIDE, NARROW) for scheme in ("light", "dark")]


@pytest.mark.parametrize(
    ("name", "size", "scheme"), [LOOKS[0], *(pytest.param(*look, marks=pytest.mark.slow) for look in LOOKS[1:])]
)
def test_axe_finds_nothing_serious(opened, name, size, scheme):
    source = axe_source()
    page = opened(name, size, color_scheme=scheme)
    page.evaluate(source)
    screenshot(page, f"{name}-{size['width']}-{scheme}")
    found = page.evaluate("axe.run()")["violations"]
    bad = [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in found if v["impact"] in ("serious", "critical")]
    assert bad == []


def test_the_whole_page_by_keyboard(opened):
    page = opened("triage")
    names = []
    for _ in range(14):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert names[0] == "Skip to the figures"
    assert "theme" in names
    assert "budget" in names
    assert page.evaluate("document.querySelectorAll('h1').length") == 1


def test_numbers_are_written_as_in_the_runs_table(opened):
    rng = np.random.default_rng(0)
    numbers = [
        0.0,
        0.5,
        12.345,
        1234.5,
        1235.5,
        1236.5,
        9999.5,
        10000.5,
        10001.5,
        12345678.5,
        1e15,
        1e-5,
        0.00012345,
        2.5e-4,
    ]
    numbers += [0.03125, 0.00390625, 99999.0, 9999.6, 123456.5, -3.14159, -1234.5, 1e300, 5e-324]
    numbers += (rng.normal(size=300) * 10.0 ** rng.integers(-7, 9, 300)).tolist()
    numbers += (rng.integers(0, 1 << 16, 300) / 16).tolist()
    shown = opened("mail").evaluate("numbers => numbers.map(figure)", numbers)
    assert shown == [figure(float(x)) for x in numbers]


def test_what_does_not_apply_is_left_out(opened):
    """A plan charged by path has no total and no gain of its purchases: those columns are gone, and no dash stands."""
    page = opened("triage")
    page.select_option("#path", label="Trees")
    page.locator("#budget").focus()
    page.keyboard.press("End")
    ready(page)
    if "own path" in page.inner_text("#buys-lead"):
        assert not page.get_by_role("columnheader", name="Paid by then").is_visible()
    assert "–" not in page.inner_text("main")


def test_a_loss_stands_in_the_headline(opened, pages):
    page, run = opened("triage"), pages[1]["triage"][0]
    page.select_option("#path", label=run.front.name)
    page.locator("#budget").focus()
    page.keyboard.press("Home")
    headline = page.inner_text("#verdict")
    assert "loses" in headline
    assert page.locator("#verdict.warns").is_visible()
    assert page.inner_text("#change").startswith("+"), "a higher squared error"
    assert "constant prediction" in page.inner_text("#frontier").lower()


def test_the_protocol_is_that_of_the_library(opened, pages):
    page, run = opened("mail"), pages[1]["mail"][0]
    found = protocol(run.chosen.model.plan_, run.rows)
    assert page.locator("#order").is_visible() == bool(found.n_questions)
    if found.n_questions:
        assert page.inner_text("#order-lead") == found.headline()
        assert page.locator("#protocol .predicts").count() == sum(not s.question for s in found.steps)
    assert opened("search").locator("#order").is_hidden(), "lists are not ordered by a protocol"
