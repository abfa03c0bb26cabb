"""Compressed vector machines (Xu, thesis 2014, chapter 4): few vectors instead of many."""

from miserly.estimators.cvm._cvm import CompressedSVC

__all__ = ["CompressedSVC"]
