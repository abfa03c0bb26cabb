"""One laboratory for all that we measure: data sets, methods, protocols, claims; `papers` has a module per paper."""

from miserly.experiments._measure import interval
from miserly.experiments._methods import fit_arguments
from miserly.experiments._parts import DataPart, DataSplit, LearningProblem
from miserly.experiments._study import Bench, Claim, Study, StudyResult, claim_line, claims_table, perform
from miserly.experiments.papers import STUDIES

__all__ = [
    "STUDIES",
    "Bench",
    "Claim",
    "DataPart",
    "DataSplit",
    "LearningProblem",
    "Study",
    "StudyResult",
    "claim_line",
    "claims_table",
    "fit_arguments",
    "interval",
    "perform",
]
