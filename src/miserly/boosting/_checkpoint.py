"""The rounds that are done, kept in a file as they are made: a line of JSON each, so that a killed fit can go on.

Every line ends with a checksum of itself and of all lines before it: one that was changed, doubled, moved or removed is
found. Lines that are missing at the end are made again.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from miserly.boosting._boost import Boosted
from miserly.boosting._nodes import TreeSplit
from miserly.boosting._trees import GrownTree, Round
from miserly.files import locked, write_whole, writing

FORMAT = "miserly-rounds"
VERSION = 2
CHAIN = b', "chain": "'
_TYPES = {"feature": np.int32, "threshold": float, "left": np.int32, "missing_right": bool, "value": float}


class Checkpoint:
    """The last whole round of a fit; with a path also in a file, under a `fingerprint` of what is fitted."""

    def __init__(self, last: Boosted | None = None, path: str | Path | None = None, fingerprint: str = "") -> None:
        self.last = last
        self._path = None if path is None else Path(path)
        self._fingerprint = fingerprint
        self._n_written: int | None = None
        self._size = 0
        self._chain = b""

    def load(self) -> Boosted | None:
        """What the file holds; None without a file. A last line that was cut off is taken away."""
        if self._path is None or not self._path.exists():
            return None
        with locked(self._path):
            content = self._path.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            header, boosted = self._read(whole)
            if header["fingerprint"] != self._fingerprint:
                raise ValueError(
                    f"'{self._path}' is the checkpoint of another model: other parameters, prices, or shape of the "
                    "data. Delete it or give another path."
                )
            if whole != content:
                os.truncate(self._path, len(whole))
        self._n_written, self._size = len(boosted.rounds), len(whole)
        return boosted

    def _read(self, content: bytes) -> tuple[dict[str, Any], Boosted]:
        try:
            header, *rounds = self._verified(content.splitlines())
            if (header["format"], header["version"]) != (FORMAT, VERSION):
                raise ValueError("another format")
            last: dict[str, Any] = rounds[-1] if rounds else {"n_tried": 0, "pause": (0, 0)}
            constant, losses = np.array(header["constant"], float), tuple(line["loss"] for line in rounds)
            rest = (tuple(map(_round, rounds)), losses, last["n_tried"], tuple(last["pause"]))
            return header, Boosted(constant, header["start_loss"], *rest)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"'{self._path}' is not a checkpoint, or is damaged. Delete it or give another path."
            ) from error

    def _verified(self, lines: list[bytes]) -> list[Any]:
        """The content of lines whose checksums agree."""
        self._chain = b""
        for line in lines:
            if self._chained(line[: line.rfind(CHAIN)] + b"}") != line + b"\n":
                raise ValueError("a line was changed, doubled, moved or removed")
        return [json.loads(line) for line in lines]

    def _chained(self, line: bytes) -> bytes:
        """A line of JSON with the checksum of all lines up to it."""
        self._chain = hashlib.sha256(self._chain + line).hexdigest().encode()
        return line[:-1] + CHAIN + self._chain + b'"}\n'

    def __call__(self, boosted: Boosted) -> None:
        """A round is done."""
        self.last = boosted
        if self._path is None:
            return
        if self._n_written is None:
            head = {"format": FORMAT, "version": VERSION, "fingerprint": self._fingerprint}
            start = {"constant": boosted.constant.tolist(), "start_loss": boosted.start_loss}
            self._chain = b""
            first = self._chained(json.dumps(head | start).encode())
            write_whole(self._path, first)
            self._n_written, self._size = 0, len(first)
        new = range(self._n_written, len(boosted.rounds))
        self._append(self._path, b"".join(self._chained(json.dumps(_line(boosted, i)).encode()) for i in new))
        self._n_written = len(boosted.rounds)

    def _append(self, path: Path, lines: bytes) -> None:
        """All of these lines or none; a file that is not as it was left belongs to another fit by now."""
        with locked(path):
            if path.stat().st_size != self._size:
                raise ValueError(f"Another fit writes the checkpoint '{path}' too. Give each a path of its own.")
            try:
                with writing(path, "The rounds before this one are kept."), path.open("ab") as file:
                    file.write(lines)
            except OSError:
                os.truncate(path, self._size)
                raise
        self._size += len(lines)


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


def _split(values: dict[str, Any]) -> TreeSplit:
    return TreeSplit(**values | {"bought": tuple(values["bought"]), "shares": tuple(values["shares"])})
