"""Anytime models as lines: what a plan's first stages cost and are worth, had it stopped there."""

from __future__ import annotations

import numpy as np

from miserly.metrics import Metric
from miserly.plan import Plan
from miserly.report._observed import LabelledRows, Observed

MOST = 24


def prefixes(plan: Plan, metric: Metric, rows: LabelledRows, most: int = MOST) -> list[tuple[float, float]]:
    """Mean cost and quality after stages of a chain: those before which something is bought, at most so many of them,
    and the last. Plans whose ways part have none."""
    chain = plan.tables.chain
    if len(chain) < 2:
        return []
    ends = [i for i, k in enumerate(chain[1:]) if plan.tables.new_acquisitions(k)]
    if len(ends) >= most:
        ends = [ends[i] for i in np.unique(np.geomspace(1, len(ends), most - 1).astype(int) - 1)]
    wanted = {*ends, len(chain) - 1}
    line = []
    for i, stage in enumerate(plan.stages(rows.X, rows.qid)):
        if i in wanted:
            seen = Observed(plan, rows, stage)
            score = stage.score[:, 0] if metric.grouped else seen.output(metric)
            quality = metric(rows.y, score, qid=rows.qid, classes=plan.classes)
            line.append((float(stage.cost.mean()), quality))
    return line
