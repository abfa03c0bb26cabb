"""Spending caps: never exceeded whatever runs at once, corrected by what was paid, counted on after a restart."""

import asyncio
import math
import multiprocessing
import pickle
import random
import sqlite3
import threading
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import miserly as ms
from miserly.plan import Menu, Node, Plan, RawFeatures
from miserly.runtime import BadRow, Cache, OnDemand, SpendCap, SpendCapReached, Spent, VirtualClock, extractor
from miserly.runtime._spend_limits import QUANTA, SpendLimit, as_quanta
from miserly.runtime._spend_stores import StoreError
from runtime.test_runtime_redis import server  # noqa: F401

DAY = 86_400.0
COSTS = ms.CostTable(["free", "x"], {"free": [], "x": ["x"]}, {"x": 1.0}, unit="USD")
LINEAR = Plan(COSTS, RawFeatures([0, 1]), (Node([0, 1], [1.0, 10.0]),), [0.0], means=[0.0, 0.0])


def forest():
    """Trees, which do without what cannot be bought: one leaf by the free feature, one by the paid one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    return ms.GreedyMiserRegressor(COSTS, n_estimators=5).fit(X, X @ [1.0, 10.0]).plan_


FOREST = forest()


@extractor(yields="free")
def free(row):
    return row["free"]


def paid_x(function=lambda row: row["x"], **options):
    return extractor("x", yields="x", **options)(function)


ROW = {"free": 1.0, "x": 2.0}


# ---- limits -------------------------------------------------------------------------------------------------------


def test_limits_are_read():
    assert SpendLimit.parse("50USD/day") == SpendLimit(50.0, "USD", "day")
    assert SpendLimit.parse(" 1e3 / month") == SpendLimit(1000.0, "", "month")
    assert SpendLimit.parse("2.5EUR/min").name == "2.5EUR/minute"
    assert SpendLimit.parse("5eur/h") == SpendLimit(5.0, "eur", "hour")


@pytest.mark.parametrize("text", ["", "50USD", "USD/day", "50/fortnight", "0/day", "-1/day", "nan/day", "1e300/day"])
def test_wrong_limits_are_refused(text):
    with pytest.raises(ValueError, match="spending limit"):
        SpendCap(text)


def test_limits_must_fit_the_plan(on_demand):
    with pytest.raises(ValueError, match="is in 'EUR', and the plan's prices are in 'USD'"):
        on_demand(FOREST, [free, paid_x()], spend_cap="50EUR/day")
    with pytest.raises(ValueError, match="keep the lower"):
        SpendCap(["1/day", "2/day"])
    with pytest.raises(ValueError, match="at least one limit"):
        SpendCap([])
    with pytest.raises(ValueError, match="timeout"):
        SpendCap("1/day", timeout=0)


@given(st.floats(0, 4e9))
def test_months_and_days_are_those_of_the_calendar(time):
    then = datetime.fromtimestamp(time, UTC)
    month, day = SpendLimit(1.0, "", "month"), SpendLimit(1.0, "", "day")
    assert divmod(month.slot(time), 12) == (then.year, then.month - 1)
    end = datetime.fromtimestamp(month.ends(time), UTC)
    assert (end.day, end.hour, end.month) == (1, 0, then.month % 12 + 1)
    assert day.ends(time) - DAY <= time < day.ends(time)


@given(st.floats(0, 1e6))
def test_what_is_counted_is_never_less_than_what_is_spent(price):
    assert price * QUANTA - 0.01 <= as_quanta(price) <= price * QUANTA + 1.01


# ---- the cap itself, against a plain account ------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["second", "minute", "hour", "day", "month"]))
def test_no_window_holds_more_than_its_limit(seed, period):
    draw = random.Random(seed)
    length = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": DAY, "month": 28 * DAY}[period]
    now, events = [draw.uniform(0, 2e9)], []
    cap = SpendCap(f"10/{period}", now=lambda: now[0])
    for _ in range(150):
        now[0] += draw.expovariate(30.0 / length)
        price = draw.choice((0.1, 1.0, 2.5))
        held = cap.take(price)
        paid = draw.choice((0.0, 0.5, 1.0)) * price
        if held.n:
            cap.correct(held, paid)
            events.append((now[0], paid))
        else:
            assert sum(p for t, p in events if t > now[0] - 1.12 * length) + price > 10.0 - 1e-9
    limit = cap.limits[0]
    for at, _ in events:
        if period in ("day", "month"):
            inside = [p for t, p in events if limit.slot(t) == limit.slot(at)]
        else:
            inside = [p for t, p in events if at <= t < at + length]
        assert sum(inside) <= 10.0 + 1e-9


def test_a_clock_that_is_set_back_gives_no_money():
    now = [10 * DAY]
    cap = SpendCap(["1/day", "5/hour"], now=lambda: now[0])
    assert cap.take(1.0).n == 1
    now[0] -= 3 * DAY
    assert cap.take(1.0).n == 0


def test_every_limit_holds():
    now = [0.0]
    cap = SpendCap(["3/day", "1/minute", "100calls/hour"], now=lambda: now[0])
    taken = 0
    for now[0] in np.arange(0.0, 600.0, 10.0):
        taken += cap.take(0.5).n
    assert taken == 6
    assert [s.limit for s in cap.status()] == ["3/day", "1/minute", "100calls/hour"]
    assert cap.status()[0] == Spent("3/day", 3.0, 3.0, 0.0, DAY)
    assert cap.status()[2].spent == 6
    assert cap.left() == (0.0, "3/day")


def test_calls_are_counted():
    cap = SpendCap("2calls/day", now=lambda: 0.0)
    assert [cap.take(0.0).n, cap.take(5.0, 3).n, cap.take(1.0).n] == [1, 1, 0]


def test_overruns_count_and_are_shown():
    cap = SpendCap("10/day", now=lambda: 0.0)
    held = cap.take(1.0)
    cap.correct(held, 9.5)
    assert cap.overrun == pytest.approx(8.5)
    assert cap.take(1.0).n == 0
    assert cap.take(0.5).n == 1


# ---- runners ------------------------------------------------------------------------------------------------------


def test_predictions_go_on_with_what_is_free(clock, on_demand):
    runner = on_demand(FOREST, [free, paid_x()], clock=clock, spend_cap="3USD/day")
    answers = [runner.predict(ROW) for _ in range(5)]
    assert [a.stopped for a in answers] == ["answered"] * 3 + ["spend-cap:3USD/day"] * 2
    assert [a.cost for a in answers] == [1.0] * 3 + [0.0] * 2
    row = np.array([[1.0, np.nan]])
    assert answers[-1].value == FOREST.predict(row, budget=0)[0] != answers[0].value
    clock.sleep(DAY)
    assert runner.predict(ROW).stopped == "answered"


@pytest.mark.parametrize("deadline", [None, 5.0])
@pytest.mark.parametrize("many", [False, True])
def test_a_batch_buys_what_there_is_money_for(clock, on_demand, deadline, many):
    calls = []

    def ask(rows):
        calls.append(len(rows) if many else 1)
        return [r["x"] for r in rows] if many else rows["x"]

    runner = on_demand(FOREST, [free, paid_x(ask, many=many)], clock=clock, spend_cap="3USD/day")
    answers = runner.predict_many([ROW] * 5, deadline=deadline)
    assert sorted(a.stopped for a in answers) == ["answered"] * 3 + ["spend-cap:3USD/day"] * 2
    assert sum(calls) == 3
    refused = [a for a in answers if a.stopped != "answered"]
    assert all("SpendCapReached: 3USD/day leaves 0 until" in a.calls[-1].outcome for a in refused)
    assert runner.spend_cap.refused == {"x": 2}
    assert not runner.left_alone["x"], "that is no failure of the extractor"


def test_linear_plans_and_menus_go_on(clock, on_demand):
    runner = on_demand(LINEAR, [free, paid_x()], clock=clock, spend_cap="1USD/day")
    assert [runner.predict(ROW).value for _ in range(2)] == [21.0, 1.0]
    cheap = Plan(COSTS, RawFeatures([0]), (Node([0], [3.0]),), [0.0])
    menu = Menu([cheap, LINEAR], [0.0, np.inf], [[1.0, 1.0], [0.0, 2.0]], [[0, 0], [0, 1]])
    runner = on_demand(menu, [free, paid_x()], clock=clock, spend_cap="1USD/day")
    first, second = runner.predict(ROW), runner.predict(ROW)
    assert (first.value, first.stopped) == (21.0, "answered")
    assert second.value == 3.0, "the plan that is best without money"


def test_priced_evaluations_are_no_services(clock, on_demand):
    costs = ms.CostTable(["free", "x"], {"free": [], "x": ["x"]}, {"x": 1.0}, evaluation=0.5, unit="USD")
    X = np.random.default_rng(0).normal(size=(300, 2))
    plan = ms.GreedyMiserRegressor(costs, n_estimators=3).fit(X, X @ [1.0, 10.0]).plan_
    runner = on_demand(plan, [free, paid_x()], clock=clock, spend_cap="1USD/day")
    first, second = runner.predict(ROW), runner.predict(ROW)
    assert first.cost > second.cost > 0
    assert second.stopped == "spend-cap:1USD/day"
    assert runner.spend_cap.status()[0].spent == 1.0


def test_a_limit_in_one_currency_counts_that_currency(clock, on_demand):
    prices = {"x": {"USD": 1.0, "minutes": 30}}
    costs = ms.CostTable(["free", "x"], {"free": [], "x": ["x"]}, prices, exchange={"USD": 1, "minutes": 2})
    X = np.random.default_rng(0).normal(size=(300, 2))
    plan = ms.GreedyMiserRegressor(costs, n_estimators=5).fit(X, X @ [1.0, 10.0]).plan_
    runner = on_demand(plan, [free, paid_x()], clock=clock, spend_cap="3USD/day")
    answers = [runner.predict(ROW) for _ in range(5)]
    assert [a.stopped for a in answers] == ["answered"] * 3 + ["spend-cap:3USD/day"] * 2
    assert runner.spend_cap.status()[0].spent == 3.0
    with pytest.raises(ValueError, match="in one currency"):
        on_demand(plan, [free, paid_x()], spend_cap=SpendCap(["3USD/day", "9minutes/hour"]))
    with pytest.raises(ValueError, match="is in 'EUR'"):
        on_demand(plan, [free, paid_x()], spend_cap="3EUR/day")


def test_prices_by_row_need_what_is_reserved_and_what_is_paid(clock, on_demand):
    prices = {"x": ms.LinearPrice(0.5, {"free": 0.1})}
    costs = ms.CostTable(["free", "x"], {"free": [], "x": ["x"]}, prices, unit="USD")
    X = np.random.default_rng(0).random((300, 2))
    plan = ms.GreedyMiserRegressor(costs, n_estimators=5).fit(X, X @ [1.0, 10.0]).plan_
    with pytest.raises(ValueError, match="depends on the row"):
        on_demand(plan, [free, paid_x()], spend_cap="3USD/day")
    known = paid_x(at_most=1.0, usage=lambda reply: 0.6)
    runner = on_demand(plan, [free, known], clock=clock, spend_cap="1.7USD/day")
    assert [runner.predict(ROW).paid for _ in range(4)] == [0.6, 0.6, 0.0, 0.0]


def test_what_was_not_spent_is_given_back(clock, on_demand):
    luck = iter([ValueError("broken"), BadRow("bad"), None, TimeoutError("late"), None, None])

    def ask(row):
        if (error := next(luck)) is not None:
            raise error
        return row["x"]

    runner = on_demand(FOREST, [free, paid_x(ask)], clock=clock, spend_cap="10USD/day")
    spent = []
    for _ in range(4):
        runner.predict(ROW)
        spent.append(runner.spend_cap.status()[0].spent)
    assert spent == [0.0, 0.0, 1.0, 2.0], "errors cost nothing; a service whose time was up may have worked"


def test_usage_gives_what_was_paid(clock, on_demand):
    options = {"usage": lambda reply: 0.01 * reply["tokens"], "at_most": 2.0}
    llm = paid_x(lambda row: {"x": row["x"], "tokens": row["tokens"]}, **options)
    runner = on_demand(FOREST, [free, llm], clock=clock, spend_cap="10USD/day")
    answer = runner.predict({**ROW, "tokens": 150})
    assert (answer.cost, answer.paid, answer.calls[-1].paid) == (1.0, 1.5, 1.5)
    assert runner.spend_cap.status()[0].spent == 1.5
    plain = on_demand(FOREST, [free, llm], clock=clock)
    assert plain.predict({**ROW, "tokens": 50}).paid == 0.5, "also without a cap"
    assert on_demand(FOREST, [free, paid_x()]).predict(ROW).paid == 1.0


@pytest.mark.parametrize("usage", [lambda reply: 1 / 0, lambda reply: -1.0, lambda reply: math.nan, lambda reply: "?"])
def test_a_usage_that_is_wrong_counts_the_price(clock, on_demand, caplog, usage):
    runner = on_demand(FOREST, [free, paid_x(usage=usage)], clock=clock, spend_cap="10USD/day")
    assert [runner.predict(ROW).paid for _ in range(2)] == [1.0, 1.0]
    assert caplog.text.count("cannot be read") == 1


def test_what_is_kept_or_given_costs_nothing(clock, on_demand):
    cached = paid_x(cache=Cache(lambda row: row["x"], ttl=1e9, now=clock.now))
    runner = on_demand(FOREST, [free, cached], clock=clock, spend_cap="1USD/day")
    assert runner.predict(ROW).stopped == "answered"
    assert runner.spend_cap.status()[0].spent == 1.0
    assert runner.predict(ROW, given={"x": 2.0, "free": 1.0}).stopped == "answered"
    assert runner.spend_cap.status()[0].spent == 1.0


def test_rankings_keep_the_cap(clock, on_demand):
    @extractor("x", yields="x")
    def x(pair):
        return pair.document["x"]

    @extractor(yields="free")
    def at_hand(pair):
        return pair.document["free"]

    runner = on_demand(FOREST, [at_hand, x], clock=clock, spend_cap="2USD/day")
    ranking = runner.rank("query", [ROW] * 4)
    assert sorted(a.stopped for a in ranking.answers) == ["answered"] * 2 + ["spend-cap:2USD/day"] * 2


def test_a_rate_lets_go_on_after_a_while(clock, on_demand):
    runner = on_demand(FOREST, [free, paid_x()], clock=clock, spend_cap=SpendCap("2USD/minute", now=clock.wall))
    bought = []
    for _ in range(300):
        clock.sleep(1.0)
        if runner.predict(ROW).cost:
            bought.append(clock.now())
    assert 8 <= len(bought) <= 11
    assert min(b - a for a, b in zip(bought, bought[2:])) >= 60.0


@pytest.mark.parametrize("seed", range(20))
def test_concurrent_requests_never_exceed_the_cap(seed):
    """Async and plain calls with waits, failures, retries, cancellations and time-outs, all in virtual time."""
    draw, clock = random.Random(seed), VirtualClock()
    sent = []

    async def later(row):
        sent.append(clock.now())
        await asyncio.sleep(draw.choice((0.0, 0.1, 5.0)))
        if draw.random() < 0.3:
            raise ValueError("broken")
        return row["x"]

    def plain(row):
        sent.append(clock.now())
        clock.sleep(draw.choice((0.0, 0.1, 5.0)))
        return row["x"]

    e = paid_x(draw.choice((later, plain)), retries=draw.choice((0, 2)), timeout=draw.choice((None, 1.0)))
    most = draw.randint(1, 8)
    runner = OnDemand(FOREST, [free, e], clock=clock, spend_cap=f"{most}USD/day")

    async def ask(row):
        await asyncio.sleep(draw.random())
        return await runner.apredict(row, deadline=draw.choice((0.5, 100.0)))

    async def schedule():
        tasks = [asyncio.ensure_future(ask(ROW)) for _ in range(30)]
        for task in tasks:
            if draw.random() < 0.2:
                clock.loop.call_later(draw.random(), task.cancel)
        done, _ = await asyncio.wait(tasks)
        await runner.aclose()
        return [task.result() for task in done if not task.cancelled()]

    answers = clock.run(schedule())
    clock.close()
    assert runner.spend_cap.status()[0].spent <= most
    assert sum(a.cost for a in answers) <= most
    assert {a.stopped.partition(":")[0] for a in answers} <= {"answered", "spend-cap", "deadline", "failed"}
    n_bought = sum("x" in a.acquired for a in answers)
    assert n_bought <= runner.spend_cap.status()[0].spent <= len(sent)


# ---- stores -------------------------------------------------------------------------------------------------------


def spend(path, n_tries, queue):
    cap = SpendCap("100USD/day", path, timeout=30.0)
    granted = 0
    for k in range(n_tries):
        held = cap.take(1.0)
        granted += held.n
        if held.n and k % 3 == 0:
            cap.correct(held, 0.0)
            granted -= 1
    queue.put(granted)


def test_processes_share_a_file_and_it_survives(tmp_path):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    SpendCap("100USD/day", tmp_path / "spent")  # it is open in the parent when the others begin
    started = [context.Process(target=spend, args=(tmp_path / "spent", 60, queue)) for _ in range(3)]
    for process in started:
        process.start()
    granted = [queue.get(timeout=60) for _ in started]
    for process in started:
        process.join(60)
    assert sum(granted) == 100, "180 tries, every third given back"
    again = SpendCap("100USD/day", tmp_path / "spent")
    assert again.status()[0].spent == 100.0
    assert SpendCap("120USD/day", tmp_path / "spent").take(1.0, 50).n == 20, (
        "another amount goes on with what was spent"
    )


def test_threads_share_a_cap():
    cap, granted = SpendCap("50/day"), []
    threads = [threading.Thread(target=lambda: granted.extend(cap.take(1.0).n for _ in range(30))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == 50


def test_redis_counts_as_memory_does(server):  # noqa: F811
    for seed in range(5):
        draw, now = random.Random(seed), [1.7e9]
        options = {"now": lambda now=now: now[0]}
        limits = ["10.5/day", "4/minute", "30calls/hour"]
        one = SpendCap(limits, **options)
        two = [SpendCap(limits, server.url, name=f"run{seed}", timeout=5.0, **options) for _ in range(2)]
        for _ in range(60):
            now[0] += draw.choice((0.0, 1.0, 30.0))
            price, n = draw.choice((0.0, 0.3, 1.0)), draw.choice((1, 1, 5))
            held, other = one.take(price, n), two[draw.randrange(2)].take(price, n)
            assert held == other
            if held.n:
                paid = held.n * price * draw.choice((0.5, 1.0, 1.5))
                one.correct(held, paid)
                two[draw.randrange(2)].correct(other, paid)
            assert one.status() == two[0].status()


def test_while_redis_is_away_nothing_is_bought(server, on_demand, caplog):  # noqa: F811
    cap = SpendCap("10USD/day", server.url, timeout=5.0)
    runner = on_demand(FOREST, [free, paid_x()], spend_cap=cap)
    assert runner.predict(ROW).stopped == "answered"
    server.kill()
    answers = [runner.predict(ROW) for _ in range(3)]
    assert {a.stopped for a in answers} == {"spend-cap:unknown"}
    assert {a.cost for a in answers} == {0.0}
    assert cap.status() == []
    assert "nothing is bought" in caplog.text


def test_corrections_wait_for_the_store():
    cap = SpendCap("10/day", now=lambda: 0.0)
    held = cap.take(4.0)
    store, cap._store = cap._store, Broken()
    cap.correct(held, 1.0)
    assert cap.take(1.0).n == 0
    assert cap.left() == (0.0, "unknown")
    cap._store = store
    assert cap.status()[0].spent == 1.0


class Broken:
    is_instant = True

    def take(self, wants, n):
        raise StoreError("gone")

    def change(self, changes):
        raise StoreError("gone")


@pytest.mark.parametrize("what", ["foreign", "folder", "nowhere", "other table"])
def test_files_that_cannot_count_are_refused(tmp_path, what):
    path = tmp_path / "spent"
    if what == "foreign":
        path.write_text("a letter to a friend, long enough to be read as a page of a database " * 20)
    elif what == "folder":
        path.mkdir()
    elif what == "nowhere":
        path = tmp_path / "none" / "spent"
    else:
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE spent (name TEXT)")
    with pytest.raises(ValueError, match="Spending cannot be counted in"):
        SpendCap("1/day", path)


def test_a_store_in_a_file_pays_off_the_loop(tmp_path):
    """With a store that waits, async calls reserve on a thread, also those that are cancelled before they are made."""
    made = []

    async def later(row):
        made.append(1)
        return row["x"]

    cap = SpendCap("5USD/day", tmp_path / "spent", timeout=10.0)

    async def main():
        async with OnDemand(FOREST, [free, paid_x(later)], spend_cap=cap) as runner:
            answers = await asyncio.gather(*(runner.apredict(ROW, deadline=60.0) for _ in range(8)))
            return [a.stopped for a in answers]

    stopped = asyncio.run(main())
    assert (stopped.count("answered"), len(made)) == (5, 5)
    assert stopped.count("spend-cap:5USD/day") == 3
    assert cap.status()[0].spent == 5.0


def test_the_refusal_can_be_sent():
    error = pickle.loads(pickle.dumps(SpendCapReached("none left", "1/day")))
    assert (str(error), error.limit) == ("none left", "1/day")


@pytest.mark.parametrize("wrong", [{"at_most": -1.0}, {"at_most": math.nan}])
def test_wrong_extractors_are_refused(wrong):
    with pytest.raises(ValueError, match="at_most"):
        paid_x(**wrong)
    with pytest.raises(ValueError, match="is free"):
        extractor(yields="free", usage=lambda reply: 1.0)(lambda row: 1.0)
