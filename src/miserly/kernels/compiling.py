"""How kernels are compiled: when they are first needed, as little as possible, and safely beside others.

Two things that numba leaves to its users end a process, or give wrong numbers, when several work at once: its cache
(`KeyedCacheFile`), and the threads that it takes where there is neither OpenMP nor TBB (`ParallelKernel`). A third
does so after an upgrade: numba compares only the file of a function with what was compiled, not the files whose
functions went into it, so the digest of all kernels is a part of what is compared.
"""

import gc
from collections.abc import Callable
from contextlib import suppress
from functools import partial, update_wrapper
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import IndexDataCacheFile

from miserly.kernels.threads import turn

# For loops that only other kernels call: without an entry from Python they compile in half the time.
inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]


def digest_of(folder: Path) -> str:
    """Tells the sources in a folder from all others."""
    content = sha256()
    for file in sorted(folder.glob("*.py")):
        content.update(file.read_bytes())
    return content.hexdigest()


KERNELS = digest_of(Path(__file__).parent)


class KeyedCacheFile(IndexDataCacheFile):
    """The compiled code of one function on disk, each version in a file named by the types that it is for.

    Numba numbers these files. Two processes that compile a function for different types at the same time may take the
    same number; from then on every process runs code for one type on data of the other.
    """

    def save(self, key: Any, data: Any) -> None:
        """Write the code, then name it in the index, where another process may have added something meanwhile. Where
        nothing can be written, as on a full disk, the code serves this process only."""
        name = self._data_name(int(sha256(repr((key, self._source_stamp)).encode()).hexdigest()[:15], 16))
        with suppress(OSError):
            self._save_data(name, data)
            self._save_index({**self._load_index(), key: name})

    def load(self, key: Any) -> Any:
        """The code for these types; None, so that it is compiled again, if there is none or the file is damaged."""
        try:
            return super().load(key)
        except Exception:
            return None

    def _load_index(self) -> dict[Any, str]:
        try:
            return super()._load_index()
        except Exception:
            return {}


class ParallelKernel:
    """A kernel with threads of its own. Where numba's threads can only do one thing at a time, callers take turns.

    That is so where neither OpenMP nor TBB is installed: a second caller would end the process.
    """

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        update_wrapper(self, dispatcher.py_func)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dispatcher, name)

    def __call__(self, *arguments: Any) -> Any:
        with turn():
            return self._dispatcher(*arguments)


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function when it is first called, and keep the code on disk. The options are those of numba."""
    if function is None:
        return partial(compiled, **options)
    made: Any = njit(cache=True, nogil=True, **options)(function)
    file = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if type(file) is IndexDataCacheFile:
        file.__class__ = KeyedCacheFile
        file._source_stamp = (file._source_stamp, KERNELS)
    return ParallelKernel(made) if options.get("parallel") and made is not function else made


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
