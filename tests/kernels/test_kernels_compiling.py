"""Compiled code that several processes keep in one place, and parallel kernels that several threads call at once.

Both ended test processes and servers: numba gave the code of two types one file, and its own threads, which it takes
where there is neither OpenMP nor TBB, end a process with two callers.
"""

import importlib
import os
import pkgutil
import subprocess
import sys
from itertools import permutations

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from miserly import kernels
from miserly.kernels.compiling import KERNELS, KeyedCacheFile, ParallelKernel, digest_of
from miserly.kernels.trees import add_columns_to_row

STAMP = (1.0, 100)


def interleaved(kind, folder, order):
    """Two processes save the code of two types; the steps of writing happen in the given order of who writes."""
    files = [kind(str(folder), "kernel", STAMP) for _ in range(2)]
    steps = []

    def recorded(who, write):
        return lambda *arguments: steps.append((who, lambda: write(*arguments)))

    for who, file in enumerate(files):  # both read the index before either writes
        file._save_index, file._save_data = recorded(who, file._save_index), recorded(who, file._save_data)
        file.save(f"type {who}", f"code {who}")
    for who in order:
        at = next(i for i, (other, _) in enumerate(steps) if other == who)
        steps.pop(at)[1]()
    reader = kind(str(folder), "kernel", STAMP)
    return [reader.load(f"type {who}") for who in range(2)]


def orders():
    return sorted(set(permutations([0, 0, 1, 1])))


@pytest.mark.parametrize("order", orders())
def test_code_for_one_type_never_runs_on_another(tmp_path, order):
    found = interleaved(KeyedCacheFile, tmp_path, order)
    assert found[0] in ("code 0", None)
    assert found[1] in ("code 1", None)
    assert found != [None, None]


def test_the_files_of_numba_would_be_mixed_up(tmp_path):
    """Numba at the time of writing: some orders give the code of the other type."""
    mixed = 0
    for number, order in enumerate(orders()):
        (folder := tmp_path / str(number)).mkdir()
        mixed += any(
            found not in (f"code {who}", None)
            for who, found in enumerate(interleaved(IndexDataCacheFile, folder, order))
        )
    assert mixed > 0


def test_every_kernel_keeps_its_code_so():
    n = 0
    for module in pkgutil.iter_modules(kernels.__path__):
        for kernel in vars(importlib.import_module(f"miserly.kernels.{module.name}")).values():
            file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
            if file is not None:
                n += 1
                assert type(file) is KeyedCacheFile, kernel
                assert KERNELS in file._source_stamp
                assert isinstance(kernel, ParallelKernel) == bool(kernel.targetoptions.get("parallel"))
    assert n > 50


def test_code_is_compiled_again_when_a_function_in_another_file_changes(tmp_path):
    """After an upgrade a kernel ran with the old code of those functions that it takes from other files."""
    (sources := tmp_path / "sources").mkdir()
    (sources / "loops.py").write_text("from inner import step")
    (sources / "inner.py").write_text("step = 1")
    before = digest_of(sources)
    KeyedCacheFile(str(tmp_path), "kernel", (STAMP, before)).save("type", "code")
    assert KeyedCacheFile(str(tmp_path), "kernel", (STAMP, digest_of(sources))).load("type") == "code"
    (sources / "inner.py").write_text("step = 2")
    assert KeyedCacheFile(str(tmp_path), "kernel", (STAMP, digest_of(sources))).load("type") is None


@pytest.mark.parametrize("damage", [b"", b"\0" * 100, b"\x80\x05garbage"])
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_damaged_code_is_compiled_again(tmp_path, damage, suffix):
    file = KeyedCacheFile(str(tmp_path), "kernel", STAMP)
    file.save("type", "code")
    (path,) = tmp_path.glob(f"*.{suffix}")
    path.write_bytes(damage)
    assert file.load("type") is None
    file.save("type", "code")
    assert file.load("type") == "code"


def test_a_kernel_works_where_its_code_cannot_be_written(monkeypatch):
    def full(self, name, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(KeyedCacheFile, "_save_data", full)
    monkeypatch.setattr(KeyedCacheFile, "load", lambda self, key: None)
    score, numbers = np.zeros(1), np.arange(2, dtype=np.int16)  # a type that nothing else uses
    add_columns_to_row(np.ones(2), numbers, np.array([0, 1, 2]), np.zeros(2, np.int16), np.ones(2), score)
    assert score[0] == 2.0


CALLERS = """
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
import numba
import numpy as np
from miserly.kernels.leaves import sum_by_leaf

codes = np.zeros((16, 20_000), np.uint8)
values = np.ones((20_000, 1))

def work(_):
    out = np.zeros((16, 256, 1))
    sum_by_leaf(codes, values, out)
    return out[:, 0, 0].sum() == 16 * 20_000

def many():
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(12)))

many()
assert numba.threading_layer() == sys.argv[1]
ends = threading.Event()
def busy():
    while not ends.is_set():
        work(0)
thread = threading.Thread(target=busy, daemon=True)
thread.start()
for _ in range(3):  # while another thread is in a kernel
    if not (child := os.fork()):
        work(0)
        many()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
ends.set()
thread.join()
print("well")
"""


@pytest.mark.parametrize("layer", ["workqueue", "omp"])
def test_many_threads_and_forks_may_use_parallel_kernels(layer):
    pytest.importorskip({"omp": "numba.np.ufunc.omppool", "workqueue": "numba.np.ufunc.workqueue"}[layer])
    environment = {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CALLERS, layer],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ended.returncode, ended.stdout) == (0, "well\n"), ended.stderr
