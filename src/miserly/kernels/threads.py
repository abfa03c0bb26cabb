"""How many threads the parallel kernels use: one in a process that was forked after they ran.

The threads of GNU OpenMP do not survive a fork, and numba ends a process that would wait for them. Where there is
neither OpenMP nor TBB, numba's own threads serve one caller at a time, and it ends a process that has a second one.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numba

WORTH_A_THREAD = 1 << 20  # cells: below, a second thread saves less than it costs
ROWS_AT_ONCE = 256  # enough work for a thread that is started for it


_forked = False
_one_caller = threading.Lock()


def n_threads(n_jobs: int | None) -> int:
    """The threads that `n_jobs` asks for: as many as now for None (all cores, unless set), all but k − 1 for −k."""
    if _forked:
        return 1
    if n_jobs is None:
        return numba.get_num_threads()
    most = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    return min(most, n_jobs) if n_jobs > 0 else max(1, most + 1 + n_jobs)


@contextmanager
def threads(n_jobs: int | None, cells: int | None = None) -> Iterator[int]:
    """Run kernels on this many threads (None: as many as now); work on few cells is not worth a second one."""
    before = numba.get_num_threads()
    small = cells is not None and cells < WORTH_A_THREAD
    numba.set_num_threads(1 if small else n_threads(n_jobs))
    try:
        yield numba.get_num_threads()
    finally:
        numba.set_num_threads(before)


def turn() -> AbstractContextManager[object]:
    """A context in which a parallel kernel may be called: where only one thread at a time may, the others wait."""
    try:
        is_safe = numba.threading_layer() != "workqueue"
    except ValueError:  # nothing parallel has run yet, so nobody knows
        is_safe = False
    return nullcontext() if is_safe else _one_caller


def in_blocks(n_rows: int, work: Callable[[int, int], None]) -> None:
    """Do something for blocks of rows (first, end), on as many threads as kernels use now; it must release the GIL."""
    blocks = [(first, min(n_rows, first + ROWS_AT_ONCE)) for first in range(0, n_rows, ROWS_AT_ONCE)]
    if len(blocks) < 2 or n_threads(None) == 1:
        work(0, n_rows)
        return
    with ThreadPoolExecutor(n_threads(None)) as pool:
        list(pool.map(lambda block: work(*block), blocks))


def _after_fork() -> None:
    """Go on with one thread, for which OpenMP needs none of those that are gone."""
    global _forked, _one_caller
    _one_caller = threading.Lock()
    pool = sys.modules.get("numba.np.ufunc.omppool")
    if pool is None:
        return
    _forked = True
    ctypes.CFUNCTYPE(None, ctypes.c_int)(pool.launch_threads)(1)  # lets numba know that this process knows
    numba.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
