"""What the spam server needs: `miserly serve FOLDER/spam.plan --extractors examples.spam.serving:extractors --read-row
examples.spam.serving:read_row`, with the folder that `python -m examples.spam --out FOLDER` wrote in SPAM_FOLDER.

A mail goes over the wire as JSON text with one character for each of its bytes (Latin-1).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import miserly as ms
from examples.spam.extractors import all_extractors
from examples.spam.learning import Knowledge
from miserly.runtime import Extractor


def save(plan: ms.Plan, knowledge: Knowledge, folder: Path) -> None:
    """Write the plan and what the extractors have learnt."""
    folder.mkdir(parents=True, exist_ok=True)
    plan.save(folder / "spam.plan")
    learnt = {
        "prior": knowledge.prior,
        "addresses": {as_text(name): counts for name, counts in knowledge.addresses.items()},
        "domains": {as_text(name): counts for name, counts in knowledge.domains.items()},
        "subject": knowledge.subject,
        "words": knowledge.words,
        "grams": knowledge.grams.tolist(),
    }
    (folder / "knowledge.json").write_bytes(msgspec.json.encode(learnt))


def load_knowledge(folder: Path) -> Knowledge:
    """Read what was learnt."""
    learnt: dict[str, Any] = msgspec.json.decode((folder / "knowledge.json").read_bytes())
    for kind in ("addresses", "domains"):
        learnt[kind] = {read_row(name): tuple(counts) for name, counts in learnt[kind].items()}
    return Knowledge(**{**learnt, "grams": np.array(learnt["grams"])})


def extractors() -> list[Extractor]:
    """The extractors with what they have learnt."""
    return all_extractors(load_knowledge(Path(os.environ["SPAM_FOLDER"])))


def read_row(row: str) -> bytes:
    """A mail as it came over the wire."""
    return row.encode("latin-1")


def as_text(mail: bytes) -> str:
    """A mail as it goes over the wire."""
    return mail.decode("latin-1")
