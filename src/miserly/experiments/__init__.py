"""One laboratory for all that we measure: data sets, methods, protocols, claims; `papers` has a module per paper."""

from miserly.experiments._study import Bench, Claim, Outcome, Study, claim_line, claims_table, perform
from miserly.experiments.papers import STUDIES

__all__ = ["STUDIES", "Bench", "Claim", "Outcome", "Study", "claim_line", "claims_table", "perform"]
