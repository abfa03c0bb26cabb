import logging

import pytest


@pytest.fixture(autouse=True)
def _quiet_client():
    logging.getLogger("httpx").setLevel(logging.WARNING)
