"""How kernels are compiled: when they are first needed, and as little as possible."""

import gc
from typing import Any

from numba import njit

# For loops that only other kernels call: without an entry from Python they compile in half the time.
inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]


def call(kernel: Any, *arguments: Any) -> Any:
    """Call a large kernel. The first call compiles it, without the garbage collector, which finds nothing and would
    take a sixth of the time."""
    if kernel.overloads or not gc.isenabled():
        return kernel(*arguments)
    gc.disable()
    try:
        return kernel(*arguments)
    finally:
        gc.enable()
