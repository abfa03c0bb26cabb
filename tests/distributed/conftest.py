import pytest


@pytest.fixture(scope="session")
def cluster():
    """One worker process, on one thread; who needs more asks for them."""
    from distributed import LocalCluster

    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": None}
    with LocalCluster(n_workers=1, **options) as running:
        yield running


@pytest.fixture(scope="session")
def connected(cluster):
    from distributed import Client

    with Client(cluster, timeout=120) as one:
        yield one


@pytest.fixture
def client(cluster, connected):
    """A client of a cluster with two workers or more."""
    if len(connected.nthreads()) < 2:
        cluster.scale(2)
        connected.wait_for_workers(2, timeout=300)
    return connected
