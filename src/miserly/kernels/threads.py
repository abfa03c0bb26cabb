"""How many threads the parallel kernels use."""

from collections.abc import Iterator
from contextlib import contextmanager

import numba


def n_threads(n_jobs: int | None) -> int:
    """The number of threads that `n_jobs` asks for: all cores for None, all but k-1 for -k."""
    most = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    if n_jobs is None:
        return most
    return min(most, n_jobs) if n_jobs > 0 else max(1, most + 1 + n_jobs)


@contextmanager
def threads(n_jobs: int | None) -> Iterator[int]:
    """Run the kernels of a block on this many threads."""
    before = numba.get_num_threads()
    numba.set_num_threads(n_threads(n_jobs))
    try:
        yield numba.get_num_threads()
    finally:
        numba.set_num_threads(before)
