"""One laboratory for all that we measure: data sets, methods, protocols, claims; `papers` has a module per paper."""

from miserly.experiments._claims import Claim, Verdict, claim_line, claims_table, verdict_counts
from miserly.experiments._methods import fit_arguments
from miserly.experiments._parts import DataPart, DataSplit, LearningProblem
from miserly.experiments._published import PUBLISHED
from miserly.experiments._study import Bench, Study, StudyResult, perform
from miserly.experiments.papers import STUDIES
from miserly.frontiers import interval

__all__ = [
    "PUBLISHED",
    "STUDIES",
    "Bench",
    "Claim",
    "DataPart",
    "DataSplit",
    "LearningProblem",
    "Study",
    "StudyResult",
    "Verdict",
    "claim_line",
    "claims_table",
    "fit_arguments",
    "interval",
    "perform",
    "verdict_counts",
]
