"""Three times saturation, a new plan every two seconds, SIGTERM under load: nothing is lost and memory stays flat."""

import pytest

from benchmarks import serve


@pytest.mark.slow
def test_five_minutes_at_three_times_saturation():
    found = serve.soak(300.0)
    assert set(found.statuses) == {200, 503}
    assert found.n_lost == 0
    assert found.n_reloads > 100
    assert 0.95 < found.memory_ratio < 1.05
    assert found.code == 0
