"""A process that is forked after kernels ran: numba ended it, or it waited for threads that were gone."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, threading
import numpy as np
import miserly as ms

X = np.random.default_rng(0).normal(size=(60000, 20))
y = (X[:, 0] + X[:, 1] > 0).astype(int)
fit = lambda: ms.GreedyMiserClassifier(ms.CostTable.uniform(20), n_estimators=2, n_jobs=2).fit(X, y)
whole = fit().plan_


def check():
    assert fit().plan_ == whole
    others = [threading.Thread(target=fit) for _ in range(2)]
    [thread.start() for thread in others]
    [thread.join() for thread in others]
    assert fit().predict(X).shape == y.shape


def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def with_a_child():
    check()
    child(check)


child(with_a_child)
check()
print("ended")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fit_in_a_forked_process_gives_the_same_bits():
    env = os.environ | {"NUMBA_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, env=env)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
