import pytest

from miserly.kernels.threads import threads


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems on a shared machine: more threads would mostly wait. A test that needs two asks for them."""
    with threads(1):
        yield
