"""One module per paper: its figures and its claims."""

from miserly.experiments._study import Study
from miserly.experiments.papers import (
    ablation,
    afr,
    astc,
    combinations,
    cronus,
    cstc,
    cvm,
    effort,
    family,
    miser,
    scenes,
)

STUDIES: dict[str, Study] = {
    study.name: study
    for paper in (miser, cronus, afr, scenes, cstc, cvm, astc, combinations, family, effort, ablation)
    for study in paper.STUDIES
}

__all__ = ["STUDIES"]
