"""The data sets of chapter 4, as the thesis has them: rows to train and to test, and C and gamma to choose among."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

Grid = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class SvmTask:
    """Rows to train and to test on; pairs of C and gamma, the latter as factors of 1 / (features · variance)."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    grid: Grid


def _grid(Cs: tuple[float, ...], factors: tuple[float, ...]) -> Grid:
    return tuple((C, f) for C in Cs for f in factors)


def page_blocks(folder: Path, quick: bool) -> SvmTask:
    """Text blocks against all others, 4379 and 1094 rows."""
    with gzip.open(folder / "page-blocks" / "page-blocks.data.gz") as file:
        table = np.loadtxt(file)
    X, y = np.log1p(np.maximum(table[:, :-1], 0.0)), (table[:, -1] == 1).astype(int)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X, X_test, y, y_test = train_test_split(X, y, test_size=1094, random_state=0, stratify=y)
    return SvmTask("page-blocks", X, y, X_test, y_test, _grid((10, 100, 1000), (0.25, 1, 4)))


def letter(folder: Path, quick: bool) -> SvmTask:
    """26 letters, 16,000 and 4000 rows; a quick look at 2000 and 2000."""
    with gzip.open(folder / "letter" / "letter-recognition.data.gz", "rt") as file:
        lines = [
            cells for cells in (line.strip().split(",") for line in file) if len(cells) == 17 and len(cells[0]) == 1
        ]
    X, y = np.array([cells[1:] for cells in lines], float) / 15.0, np.array([cells[0] for cells in lines])
    n, m = (2000, 2000) if quick else (16_000, 4000)
    return SvmTask("letter", X[:n], y[:n], X[-m:], y[-m:], _grid((10,), (4, 8)) if quick else _grid((10, 100), (4, 8)))


def mnist(folder: Path, quick: bool) -> SvmTask:
    """Ten digits, 60,000 and 10,000 images; a quick look at 1500 and 1500."""

    def idx(name: str) -> np.ndarray:
        with gzip.open(next((folder / "mnist").glob(name))) as file:
            raw = file.read()
        shape = np.frombuffer(raw, ">i4", raw[3], 4)
        return np.frombuffer(raw, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)

    n, m = (1500, 1500) if quick else (60_000, 10_000)
    rows = np.random.default_rng(0).permutation(60_000)[:n]
    X, y = idx("train-images*").reshape(60_000, -1)[rows] / 255.0, idx("train-labels*")[rows].astype(int)
    X_test, y_test = idx("t10k-images*").reshape(10_000, -1)[:m] / 255.0, idx("t10k-labels*")[:m].astype(int)
    return SvmTask("mnist", X, y, X_test, y_test, _grid((10,), (1, 2)))


def _plain(name: str, file: str) -> Callable[[Path, bool], SvmTask]:
    """A table of the user's own: numbers, label last, comma-separated."""

    def read(folder: Path, quick: bool) -> SvmTask:
        lines = [line.strip().split(",") for line in (folder / name / file).read_text().splitlines() if line.strip()]
        X, y = np.array([cells[:-1] for cells in lines], float), np.array([cells[-1] for cells in lines])
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
        n = 3000 if quick else len(y)
        return SvmTask(name, X[:n], y[:n], X_test, y_test, _grid((1, 10, 100), (0.25, 1, 4)))

    return read


TASKS: dict[str, tuple[str, Callable[[Path, bool], SvmTask]]] = {
    "page-blocks": ("page-blocks/page-blocks.data.gz", page_blocks),
    "letter": ("letter/letter-recognition.data.gz", letter),
    "mnist": ("mnist/train-images-idx3-ubyte.gz", mnist),
    "magic": ("magic/magic04.data", _plain("magic", "magic04.data")),
    "newsgroups": ("newsgroups/newsgroups.csv", _plain("newsgroups", "newsgroups.csv")),
    "dmoz": ("dmoz/dmoz.csv", _plain("dmoz", "dmoz.csv")),
}
