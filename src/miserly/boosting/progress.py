"""The rounds that are done, kept in a file as they are made: a line of JSON each, so that a killed fit can go on."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from miserly.boosting.boost import Boosted, Round
from miserly.boosting.grower import GrownTree
from miserly.boosting.nodes import Split

FORMAT = "miserly-rounds"
VERSION = 1
_TYPES = {"feature": np.int32, "threshold": float, "left": np.int32, "missing_right": bool, "value": float}


class Progress:
    """The last whole round of a fit; with a path also in a file, under a `fingerprint` of what is fitted."""

    def __init__(self, last: Boosted | None = None, path: str | Path | None = None, fingerprint: str = "") -> None:
        self.last = last
        self._path = None if path is None else Path(path)
        self._fingerprint = fingerprint
        self._n_written: int | None = None

    def load(self) -> Boosted | None:
        """What the file holds; None without a file. A last line that was cut off is not there."""
        if self._path is None or not self._path.exists():
            return None
        content = self._path.read_text()
        whole = content[: content.rfind("\n") + 1]
        try:
            header, *rounds = [json.loads(line) for line in whole.splitlines()]
            known = header["format"] == FORMAT and header["version"] == VERSION
        except (ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise ValueError(f"'{self._path}' is not a checkpoint, or is damaged. Delete it or give another path.")
        if header["fingerprint"] != self._fingerprint:
            raise ValueError(
                f"'{self._path}' is the checkpoint of another model: other parameters, prices, or shape of the data. "
                "Delete it or give another path."
            )
        last: dict[str, Any] = rounds[-1] if rounds else {"n_tried": 0, "pause": (0, 0)}
        self._n_written = len(rounds)
        if whole != content:
            self._path.write_text(whole)
        return Boosted(
            np.array(header["constant"], float),
            header["start_loss"],
            tuple(_round(line) for line in rounds),
            tuple(line["loss"] for line in rounds),
            last["n_tried"],
            tuple(last["pause"]),
        )

    def __call__(self, boosted: Boosted) -> None:
        """A round is done."""
        self.last = boosted
        if self._path is None:
            return
        if self._n_written is None:
            head = {"format": FORMAT, "version": VERSION, "fingerprint": self._fingerprint}
            start = {"constant": boosted.constant.tolist(), "start_loss": boosted.start_loss}
            self._path.write_text(json.dumps(head | start) + "\n")
            self._n_written = 0
        with self._path.open("a") as file:
            for number in range(self._n_written, len(boosted.rounds)):
                file.write(json.dumps(_line(boosted, number)) + "\n")
        self._n_written = len(boosted.rounds)


def _line(boosted: Boosted, number: int) -> dict[str, Any]:
    this = boosted.rounds[number]
    return {
        "outputs": this.outputs,
        "tables": [{name: column.tolist() for name, column in table.items()} for table in this.tables],
        "trees": [{"splits": [asdict(split) for split in tree.splits], "leaves": tree.leaves} for tree in this.trees],
        "loss": boosted.losses[number],
        "n_tried": boosted.n_tried,
        "pause": boosted.pause,
    }


def _round(line: dict[str, Any]) -> Round:
    tables = [{name: np.array(table[name], kind) for name, kind in _TYPES.items()} for table in line["tables"]]
    trees = [GrownTree(tuple(map(_split, tree["splits"])), tuple(tree["leaves"])) for tree in line["trees"]]
    return Round(tuple(line["outputs"]), tuple(tables), tuple(trees))


def _split(values: dict[str, Any]) -> Split:
    return Split(**values | {"bought": tuple(values["bought"]), "shares": tuple(values["shares"])})
