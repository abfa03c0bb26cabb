"""Tiny batches on one thread: on a busy machine, starting threads for a dozen rows takes most of the time."""

import pytest

from miserly.kernels.threads import threads


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    with threads(1):
        yield
