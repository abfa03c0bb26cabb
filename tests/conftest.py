import os
from pathlib import Path

import pytest

from integration import INTEGRATION

os.environ["SCIPY_ARRAY_API"] = "1"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run on as many processes as there are cores

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE) and str(item.path.relative_to(HERE)).startswith(INTEGRATION):
            item.add_marker(pytest.mark.integration)
