"""The figures and tables of the papers, one file per paper: its protocol as code, and *the paper says / we see*."""

from miserly.reproduction import afr, astc, combinations, cronus, cstc, cvm, miser, scenes
from miserly.reproduction.study import Bench, Claim, Outcome, Study, claim_line, claims_table, perform

STUDIES: dict[str, Study] = {
    study.name: study
    for paper in (miser, cronus, afr, scenes, cstc, cvm, astc, combinations)
    for study in paper.STUDIES
}

__all__ = ["STUDIES", "Bench", "Claim", "Outcome", "Study", "claim_line", "claims_table", "perform"]
