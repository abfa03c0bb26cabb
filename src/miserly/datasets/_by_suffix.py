"""One way in for every file format, chosen by the name of the file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from miserly.datasets._frames import read_parquet
from miserly.datasets._letor import read_letor
from miserly.datasets._tables import Table, read_csv

_LETOR = (".txt", ".svm", ".letor")


def read_table(
    path: str | Path, label: str | None = None, qid: str | None = None, features: Sequence[str] | None = None
) -> Table:
    """Read `.csv`, `.parquet` or, without label and qid, LETOR (`.txt`, `.svm`, `.letor`, also with `.gz`).

    The columns of a LETOR file have numbers only: `features` are their names in that order, and say how many there are.
    """
    name = Path(path).name.lower()
    if name.endswith(".csv"):
        return read_csv(path, label, qid)
    if name.endswith(".parquet"):
        return read_parquet(path, label, qid)
    if name.removesuffix(".gz").endswith(_LETOR):
        if label is not None or qid is not None:
            raise ValueError(
                f"'{path}' is a LETOR file: label and qid stand first on every line and have no name. "
                "Leave label and qid out."
            )
        table = read_letor(path, None if features is None else len(features))
        if features is None or set(features) == set(table.features):
            return table
        return replace(table, features=tuple(features))
    raise ValueError(
        f"'{path}': the format is chosen by the suffix: .csv, .parquet, {', '.join(_LETOR)} (the last three also "
        "with .gz). Rename the file or call its reader."
    )
