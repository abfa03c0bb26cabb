"""Prices of raw columns, carried through scikit-learn's transformers."""

from miserly.estimators.pipeline._needs import Traced, trace_needs
from miserly.estimators.pipeline._pipeline import PricedPipeline
from miserly.estimators.pipeline._unnamed import refuse_unnamed

__all__ = ["PricedPipeline", "Traced", "refuse_unnamed", "trace_needs"]
