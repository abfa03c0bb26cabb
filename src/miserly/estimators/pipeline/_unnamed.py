"""The guard for plain scikit-learn pipelines: prices do not fit columns that a transformer has moved or mixed."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from sklearn.pipeline import Pipeline

from miserly.estimators.pipeline._needs import trace_needs

MOST_FRAMES = 15  # how far up the pipeline that calls this fit can be: its wrappers and ours


def refuse_unnamed(estimator: Any) -> None:
    """Refuse columns without names that reach an estimator from a pipeline whose transformers move or mix columns.

    Such columns would be charged in the order of the price table, whatever they are. A pipeline gives its last step
    nothing but the data, so it is looked for among the callers.
    """
    pipeline, X = _calling_pipeline(estimator)
    if pipeline is None or not hasattr(X, "shape"):
        return
    before = Pipeline(pipeline.steps[:-1])
    names = [str(i) for i in range(X.shape[1])]
    try:
        needs = trace_needs(before, X, names).needs
    except (ValueError, TypeError, AttributeError):
        needs = ()
    if needs == tuple(frozenset((name,)) for name in names):
        return
    last = type(before.steps[-1][1]).__name__
    raise ValueError(
        f"{type(estimator).__name__} gets columns without names from {last}, which moves, drops or mixes columns: "
        "prices would be charged to the wrong ones. Use PricedPipeline(preprocessing, estimator), which carries prices "
        "through, or pipeline.set_output(transform='pandas') with prices for the new names."
    )


def _calling_pipeline(estimator: Any) -> tuple[Pipeline | None, Any]:
    """The pipeline that ends in this estimator and is being fitted, and its data."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(MOST_FRAMES):
        if frame is None:
            break
        caller = frame.f_locals.get("self")
        if isinstance(caller, Pipeline) and len(caller.steps) > 1 and caller.steps[-1][1] is estimator:
            return caller, frame.f_locals.get("X")
        frame = frame.f_back
    return None, None
