"""What a test leaves behind is cleaned up here, also when it fails; time that matters is virtual."""

import asyncio
import threading

import pytest

from miserly.runtime import OnDemand, VirtualClock


@pytest.fixture(autouse=True)
def _no_threads_left():
    """Set up first, so this comes last."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("miserly-"):
            thread.join(10.0)
            assert not thread.is_alive(), f"{thread.name} is left running"


@pytest.fixture
def clock():
    """Virtual time; tasks that are left on its loop are cancelled."""
    made = VirtualClock()
    yield made
    for task in (left := asyncio.all_tasks(made.loop)):
        task.cancel()
    if left:
        made.run(asyncio.wait(left))
    made.close()


@pytest.fixture
def on_demand():
    """Makes runners and closes them."""
    made = []

    def make(*args, **options):
        made.append(OnDemand(*args, **options))
        return made[-1]

    yield make
    for runner in made:
        runner.close(5.0)


@pytest.fixture
def release():
    """What hanging functions wait for; it is set in the end."""
    event = threading.Event()
    yield event
    event.set()
