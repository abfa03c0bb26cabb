"""The five plain extractors of `benchmarks.serving`, for the command line."""

from benchmarks.serving import extractors

__all__ = ["extractors"]
