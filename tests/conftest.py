import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

from integration import INTEGRATION

os.environ["SCIPY_ARRAY_API"] = "1"
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # tests run on as many processes as there are cores
    os.environ.setdefault(variable, "1")

HERE = Path(__file__).parent

# `make test` draws the same examples each time; `make slow` draws new ones. Neither looks at the clock.
_patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", _patient, derandomize=True)
settings.register_profile("new", _patient, print_blob=True)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE) and str(item.path.relative_to(HERE)).startswith(INTEGRATION):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Problems are small: a second thread would mostly wait. A test that needs two asks for them."""
    from miserly.kernels.threads import threads

    with threads(1):
        yield


@pytest.fixture(autouse=True, scope="session")
def _short_searches():
    """A search's time limit counts CPU, which does not depend on the machine's load, and runs out ten times as fast."""
    from miserly.auto import _clock

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_clock, "time", SimpleNamespace(monotonic=lambda: 10.0 * time.process_time()))
        yield
