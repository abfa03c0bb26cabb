"""The page in a browser, from disk, with the network off: what it shows is what the plans and the metrics say."""

import re

import numpy as np
import pytest
from browser import axe_source, chromium, screenshot
from scipy.stats import binomtest, ttest_ind
from sklearn.metrics import confusion_matrix
from sweeps import digits, mail, search, triage

from miserly.frontiers import figure
from miserly.report import Observed, protocol, write_report

RUNS = {"triage": triage, "mail": mail, "search": search, "digits": digits}
EACH = ["triage", "mail", *(pytest.param(name, marks=pytest.mark.slow) for name in ("search", "digits"))]
SCREENS = ("buys", "order", "whom", "trust", "more")
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
        n = len(run[0].rows)
        groups = (
            {"site": np.where(np.arange(n) % 3, "Basel", "Bern"), "age": np.arange(n) % 70}
            if name != "search"
            else None
        )
        write_report(run, folder / f"{name}.html", groups=groups)
    return folder, runs


@pytest.fixture
def opened(browser, pages):
    """Opens a page of a name; at the end nothing may have gone wrong in it, nor been asked of the network."""
    troubles, contexts = [], []

    def open_page(name, size=WIDE, screen="buys", **options):
        context = browser.new_context(viewport=size, offline=True, accept_downloads=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "request", lambda r: troubles.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None
        )
        page.goto((pages[0] / f"{name}.html").as_uri() + (f"#{screen}" if screen != "buys" else ""))
        page.locator(f"#{screen}:not([hidden])").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def turn_to(page, screen):
    """Open another question."""
    page.locator(f"#tabs a[href='#{screen}']").click()
    page.locator(f"#{screen}:not([hidden])").wait_for()


def numbers_in(text):
    """All numbers of a text, with the page's minus signs."""
    return [float(n) for n in re.findall(r"[-+]?\d+(?:\.\d+)?(?:e[-+]\d+)?", text.replace("−", "-").replace(",", ""))]


def seen_at(point, run):
    return Observed.of(point.model.plan_, run.rows)


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
    table = {row["mean_cost"]: row for row in run.front.records()}
    for plan, point in zip(plans, run.front.pareto()):
        cost = plan.predict_cost(run.rows.X, run.rows.qid)
        assert page.inner_text("#cost") == figure(float(cost.mean()))
        assert page.inner_text("#quality") == figure(float(quality_of(plan, run)))
        line = table[point.validation.cost["mean"]]
        verdict = re.sub("^the (most expensive|cost-blind) model: ", "", page.inner_text("#verdict").lower())
        assert verdict.startswith(f"{run.front.metric.name} {figure(line[run.front.metric.name])}")
        assert page.inner_text("#quality") == figure(line[run.front.metric.name])
        assert page.inner_text("#cost") == figure(line["mean_cost"])
        shown = dict(re.findall(r"(.+?)\t(\S[^\t\n]*)", page.inner_text("#compare table")))
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
    page.locator("#frontier .target").first.click()
    assert page.inner_text("#cost") == figure(float(plans_of(run)[0].predict_cost(run.rows.X).mean()))
    page.fill("#most", "13")
    page.keyboard.press("Tab")
    within = max(p.validation.cost["mean"] for p in run.front.pareto() if p.validation.cost["mean"] <= 13)
    assert page.inner_text("#cost") == figure(within)
    page.locator("#live", has_text="CAD").wait_for(state="attached")


def test_the_bill_and_the_model_beside_it(opened, pages):
    page, run = opened("digits"), pages[1]["digits"][0]
    assert page.input_value("#requests") == page.input_value("#unit-price") == ""
    assert not page.locator("#bills").is_visible(), "no invented bill"
    page.fill("#requests", "1000")
    page.fill("#unit-price", "0.5")
    number = lambda name: float(page.inner_text(name).replace(",", ""))  # noqa: E731
    highest = next(p for p in run.front.points if p.params["tradeoff"] == 0).validation.cost["mean"]
    here = run.chosen.validation.cost["mean"]
    assert number("#bill-here") == pytest.approx(1000 * 30 * 0.5 * here, abs=0.5)
    assert number("#bill-blind") == pytest.approx(1000 * 30 * 0.5 * highest, abs=0.5)
    assert number("#bill-saved") == pytest.approx(1000 * 30 * 0.5 * (highest - here), abs=1)
    assert "Cost-blind model" in page.inner_text("#compare")
    units = ["CAD", "usd", "€", "ms", "pixels", "tree evaluations"]
    assert page.evaluate("units => units.map(isMoney)", units) == [True, True, True, False, False, False]
    assert opened("mail").locator("#unit-price").is_hidden(), "a franc costs a franc"


def test_what_is_bought_and_what_is_not(opened, pages):
    page, run = opened("triage", screen="order"), pages[1]["triage"][0]
    page.select_option("#path", label="Anytime")
    page.fill("#most", "3.1")
    page.keyboard.press("Tab")
    plan = run.front.points[2].model.plan_
    bought = bought_by(plan)
    lines = [line.split("\t") for line in page.locator("#bought tbody tr").all_inner_texts()]
    assert {line[1] for line in lines} == bought
    assert [line[2] for line in lines] == [figure(plan.costs.prices[line[1]]) for line in lines]
    assert {line[3] for line in lines} == {"100 %"}
    mean = float(plan.predict_cost(run.rows.X).mean())
    assert sum(float(line[4]) for line in lines) == pytest.approx(mean)
    assert f"add up to {figure(mean)}" in page.inner_text("#bought")
    rest = [line.split("\t") for line in page.locator("#unbought tbody tr").all_inner_texts()]
    assert {name for line in rest for name in line[0].split(", ")} == set(plan.costs.acquisitions) - bought
    first = next(p for p in run.front.pareto() if "t3" in bought_by(p.model.plan_))
    line = next(line for line in rest if "t3" in line[0].split(", "))
    assert line[2] == figure(first.validation.cost["mean"])
    page.locator("#unbought button.inline", has_text=line[2]).first.click()
    assert page.inner_text("#cost") == line[2]


@pytest.mark.parametrize("name", EACH)
def test_walking_a_row(opened, pages, name):
    page, run = opened(name, screen="order"), pages[1][name][0]
    if len(pages[1][name]) > 1:
        page.select_option("#path", label=run.front.name)
    page.locator("#budget").focus()
    page.keyboard.press("End")
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
                more = f" and {len(walk.needs) - 4} more" if len(walk.needs) > 4 else ""
                assert shown == ", ".join(walk.needs[:4]) + more
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
    page.get_by_text("All models", exact=True).click()
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
    page = opened("mail", screen="order")
    page.locator("#plan > summary").click()
    where = {
        "frontier": "buys",
        "tiers": "order",
        "drawing": "order",
        "spending": "whom",
        "calibration": "trust",
        "gains": "more",
    }
    for name, screen in where.items():
        turn_to(page, screen)
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
    for screen in SCREENS:
        turn_to(page, screen)
        page.locator("#budget").focus()
        page.keyboard.press("End")
        screenshot(page, f"{name}-{screen}-320-light")
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
    for screen in SCREENS:
        turn_to(page, screen)
        page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
        screenshot(page, f"{name}-{screen}-{size['width']}-{scheme}")
        found = page.evaluate("axe.run()")["violations"]
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        assert [(screen, v["id"], [n["html"][:200] for n in v["nodes"]]) for v in serious] == []


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
    """No dash stands for a number that there is not; what rows pay by path is not added up."""
    page = opened("triage", screen="order")
    page.select_option("#path", label="Trees")
    page.locator("#budget").focus()
    page.keyboard.press("End")
    if "rows below" in page.inner_text("#bought"):
        assert "add up" not in page.inner_text("#bought")
    for screen in SCREENS:
        turn_to(page, screen)
        assert "–" not in page.inner_text("main")
    turn_to(page, "trust")
    assert page.locator("#rates").is_hidden()
    assert page.locator("#mistakes").is_hidden()
    assert opened("search", screen="trust").locator("#calibration").is_hidden()


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
    page, run = opened("mail", screen="order"), pages[1]["mail"][0]
    found = protocol(run.chosen.model.plan_, run.rows)
    assert page.locator("#protocol").is_visible() == bool(found.n_questions)
    if found.n_questions:
        assert page.inner_text("#order-lead") == found.headline()
        assert page.locator("#protocol .predicts").count() == sum(not s.question for s in found.steps)
    assert opened("search", screen="order").locator("#protocol").is_hidden(), "lists are not ordered by a protocol"


def test_for_whom_is_what_groups_pay_and_how_often_they_are_wrong(opened, pages):
    page, run = opened("mail", screen="whom"), pages[1]["mail"][0]
    seen = seen_at(run.chosen, run)
    wrong, bern = seen.answers != run.rows.y, np.arange(len(run.rows)) % 3 == 0
    lines = {line.split("\t")[1]: line.split("\t") for line in page.locator("#groups tbody tr").all_inner_texts()}
    assert len(lines) == 2 + 4, "numbers with many values are cut into quarters"
    cost = ttest_ind(seen.cost[bern], seen.cost[~bern], equal_var=False)
    low, high = cost.confidence_interval(0.95)
    gap = seen.cost[bern].mean() - seen.cost[~bern].mean()
    assert numbers_in(lines["Bern"][3])[0] == pytest.approx(seen.cost[bern].mean(), rel=5e-3)
    assert numbers_in(lines["Bern"][4]) == pytest.approx([gap, low, high], rel=5e-3)
    one = binomtest(int(wrong[bern].sum()), int(bern.sum())).proportion_ci(method="wilson")
    expected = [100 * wrong[bern].mean(), 100 * one.low, 100 * one.high]
    assert numbers_in(lines["Bern"][5]) == pytest.approx(expected, abs=0.051)
    assert numbers_in(lines["Bern"][6])[0] == pytest.approx(100 * (wrong[bern].mean() - wrong[~bern].mean()), abs=0.051)
    found = run.rows.y[bern] == "spam"
    assert numbers_in(lines["Bern"][7])[0] == pytest.approx(
        100 * np.mean((seen.answers == "spam")[bern][found]), abs=0.051
    )


def test_trust_is_the_confusion_of_the_plan_and_its_rates(opened, pages):
    page, run = opened("mail", screen="trust"), pages[1]["mail"][0]
    for place, point in enumerate(run.front.pareto()):
        page.locator("#budget").fill(str(place))
        seen = seen_at(point, run)
        counts = confusion_matrix(run.rows.y, seen.answers, labels=["ham", "spam"])
        shown = [numbers_in(line) for line in page.locator("#confusion tbody tr").all_inner_texts()]
        assert shown == counts.tolist()
        (tn, fp), (fn, tp) = counts
        rates = page.locator("#rates tbody tr").inner_text().split("\t")
        assert rates[0] == "spam"
        for cell, hits, n in zip(rates[2:], (tp, tn, tp, tn), (tp + fn, tn + fp, tp + fp, tn + fn)):
            if n:
                interval = binomtest(int(hits), int(n)).proportion_ci(method="wilson")
                assert numbers_in(cell) == pytest.approx(
                    [100 * hits / n, 100 * interval.low, 100 * interval.high], abs=0.051
                )
        assert numbers_in(page.inner_text("#trust-lead"))[0] == pytest.approx(
            100 * (tn + tp) / len(seen.rows), abs=0.051
        )


def test_ten_classes(opened, pages):
    page, run = opened("digits", screen="trust"), pages[1]["digits"][0]
    seen = seen_at(run.chosen, run)
    shown = [numbers_in(line)[1:] for line in page.locator("#confusion tbody tr").all_inner_texts()]
    assert shown == confusion_matrix(run.rows.y, seen.answers).tolist()
    lines = [line.split("\t") for line in page.locator("#rates tbody tr").all_inner_texts()]
    found = [100 * np.mean(seen.answers[run.rows.y == k] == k) for k in range(10)]
    assert [numbers_in(line[2])[0] for line in lines] == pytest.approx(found, abs=0.051)
    page.get_by_label("Any wrong prediction").fill("50")
    line = page.locator("#mistakes-sum tbody tr").first.inner_text().split("\t")
    assert float(line[2]) == pytest.approx(50 * np.mean(seen.answers != run.rows.y), rel=1e-3)
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDE["width"]


def test_the_reader_prices_mistakes(opened, pages):
    page, run = opened("mail", screen="trust"), pages[1]["mail"][0]
    assert page.inner_text("#mistakes-sum") == "", "no invented cost"
    page.get_by_label("ham, predicted spam").fill("200")
    page.get_by_label("spam, predicted ham").fill("30")
    totals = {}
    for point in run.front.pareto():
        seen = seen_at(point, run)
        mistakes = np.where(seen.answers == "spam", 200.0, 30.0) * (seen.answers != run.rows.y)
        whole = seen.cost + mistakes
        half = 1.96 * whole.std() / len(whole) ** 0.5
        ends = (whole.mean() - half, whole.mean() + half)
        totals[float(seen.cost.mean())] = (float(mistakes.mean()), float(whole.mean()), *ends)
    here = float(seen_at(run.chosen, run).cost.mean())
    line = page.locator("#mistakes-sum tbody tr").first.inner_text().split("\t")[1:]
    shown = [float(v.replace(",", "")) for v in [*line[:3], *line[3].split(" to ")]]
    assert shown == pytest.approx([here, *totals[here]], rel=1e-3)
    best = min(totals, key=lambda cost: totals[cost][1])
    if best != here:
        page.get_by_role("button", name="Move the budget to").click()
    assert page.inner_text("#cost") == figure(best)
    assert "This model is the least" in page.inner_text("#mistakes-sum")


def test_one_more_unit_is_the_difference_of_models_on_the_same_rows(opened, pages):
    page, run = opened("mail", screen="more"), pages[1]["mail"][0]
    page.locator("#budget").fill("0")
    front = run.front.pareto()
    sign = 1 if run.front.metric.greater_is_better else -1
    lines = [line.split("\t") for line in page.locator("#steps tbody tr").all_inner_texts()]
    assert len(lines) == len(front) - 1
    for line, point in zip(lines, front[1:]):
        more = point.validation.cost["mean"] - front[0].validation.cost["mean"]
        gain = sign * (point.validation.quality - front[0].validation.quality)
        assert line[0] == figure(point.validation.cost["mean"])
        assert float(line[1].replace(",", "")) == pytest.approx(more, rel=1e-3)
        shown, half = numbers_in(line[2])
        assert shown == pytest.approx(gain, rel=0.05)
        assert float(line[3].replace("−", "-")) == pytest.approx(gain / more, rel=0.05)
        assert line[4] == ("yes" if gain > half else "no")
    page.locator("#budget").fill(str(len(front) - 1))
    assert "nothing more" in page.inner_text("#more-lead")


def test_a_link_opens_its_question_and_the_back_button_the_one_before(opened):
    page = opened("mail", screen="trust")
    assert page.locator(".screen:visible").count() == 1
    turn_to(page, "whom")
    assert page.evaluate("document.activeElement.id") == "whom-title"
    page.go_back()
    page.locator("#trust:not([hidden])").wait_for()
    assert page.locator("[aria-current=page]").inner_text() == "Can I trust it?"
    page.locator("#onward a").click()
    page.locator("#more:not([hidden])").wait_for()


def test_paper_has_all_questions(opened):
    page = opened("mail", screen="trust")
    page.emulate_media(media="print")
    page.locator("#more:not([hidden])").wait_for()
    assert page.locator(".screen:visible").count() == 5
    assert page.locator("#frontier svg.picture path").count() > 3
    assert page.locator("#gains svg.picture circle").count() > 1
    screenshot(page, "mail-print")
    page.emulate_media(media="screen")
    page.locator("#more[hidden]").wait_for(state="attached")
    assert page.locator(".screen:visible").count() == 1
