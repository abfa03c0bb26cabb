"""Where one machine is not enough: the rows on the workers of a Dask cluster, the trees the same to the bit."""

from miserly.distributed._backend import DaskBackend
from miserly.distributed._client import connect
from miserly.distributed._traffic import Traffic

__all__ = ["DaskBackend", "Traffic", "connect"]
