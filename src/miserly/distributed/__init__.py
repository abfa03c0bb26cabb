"""Where one machine is not enough: the rows on the workers of a Dask cluster, the trees the same to the bit."""

from miserly.distributed.backend import DaskBackend
from miserly.distributed.traffic import Traffic

__all__ = ["DaskBackend", "Traffic"]
