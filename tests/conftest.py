import os
from pathlib import Path

import pytest

os.environ["SCIPY_ARRAY_API"] = "1"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run on as many processes as there are cores

HERE = Path(__file__).parent
# What `make quick` leaves out: these start browsers, servers, clusters or other processes, build the site, or run long.
INTEGRATION = (
    "benchmarks",
    "distributed",
    "conformance",
    "experiments",
    "test_documentation.py",
    "test_release.py",
    "test_triage_example.py",
)


def pytest_collection_modifyitems(items):
    for item in items:
        place = str(item.path.relative_to(HERE))
        if place.startswith(INTEGRATION):
            item.add_marker(pytest.mark.integration)
