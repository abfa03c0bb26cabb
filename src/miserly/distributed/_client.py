"""A connection to a cluster."""

from __future__ import annotations

from typing import Any

from distributed import Client


def connect(address: str) -> Any:
    """Return a client of a Dask cluster, whose `submit` runs functions on its workers; close it at the end.

    Parameters
    ----------
    address : str
        Of the scheduler, such as "tcp://10.0.0.1:8786".

    Examples
    --------
    >>> client = connect("tcp://10.0.0.1:8786")  # doctest: +SKIP
    """
    return Client(address, timeout=30)
