"""Three times saturation, a new plan every two seconds, hanging extractors, a dying Redis, SIGTERM under load: nothing
is lost and memory stays flat."""

import shutil

import pytest

from benchmarks import serve


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_five_minutes_at_three_times_saturation():
    found = serve.soak(300.0)
    assert set(found.statuses) == {200, 503}
    assert set(found.reasons) <= {"answered", "failed", "deadline"}
    assert found.n_lost == 0
    assert found.n_reloads > 100
    assert found.n_redis_deaths > 10
    assert 0.95 < found.memory_ratio < 1.05
    assert found.code == 0
