"""BLAS on one thread where matrices are small: starting a second costs more than it computes, and on a busy machine it
waits for its turn (a fit of AFR on 640 rows took 12 times as long with two threads)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

WORTH_A_THREAD = 1 << 22  # numbers in the data; below it the largest products take less than a few milliseconds


@contextmanager
def blas_threads(cells: int = 0) -> Iterator[None]:
    """Run BLAS on one thread, unless the data have so many cells that more pay."""
    if cells >= WORTH_A_THREAD:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
