"""Hundreds of seeded schedules in virtual time: no error, no lost request, no leaked task, every promise kept."""

from collections import Counter

import pytest

from runtime.simulation import simulate


def run(seeds):
    ends = Counter()
    for seed in seeds:
        try:
            ends += simulate(seed)
        except BaseException as error:
            error.add_note(f"replay it: simulate({seed})")
            raise
    return ends


def test_schedules_keep_every_promise():
    ends = run(range(400))
    assert {"answered", "budget", "deadline", "failed", "cancelled"} <= set(ends), ends
    assert ends["answered"] > ends["budget"] + ends["deadline"] + ends["failed"]
    assert ends["equal to the batch"] > 1000


def test_a_seed_replays_its_schedule():
    assert [simulate(seed) for seed in range(20)] == [simulate(seed) for seed in range(20)]


@pytest.mark.slow
@pytest.mark.parametrize("tenth", range(10))
def test_many_schedules_keep_every_promise(tenth):
    run(range(10_000 * tenth, 10_000 * (tenth + 1)))
