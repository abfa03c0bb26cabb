"""What the arrays of a plan file may hold: finite numbers, in an amount that fits the file."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 1 << 32  # of a plan in memory
SMALL, MOST_GROWTH = 1 << 24, 200  # bytes, times: beyond the first, an honest plan does not shrink by more
MOST_TABLE_BYTES = 1 << 28  # of the table of which feature needs what: 100,000 features of 20,000 acquisitions
MAY_BE_INFINITE = ("threshold",)  # a split that only asks whether a value is missing
MAY_BE_UNKNOWN = ("means", "shares")  # a feature that no training row had


def size_error(archive: zipfile.ZipFile) -> str | None:
    """What is wrong with the sizes in a zip file, before anything is read; None if nothing is."""
    assert archive.fp is not None
    entries, size = archive.infolist(), archive.fp.seek(0, io.SEEK_END)
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > MOST_BYTES:
        return f"unpacks to more than {MOST_BYTES >> 30} GiB; that is no plan"
    if any(entry.compress_size > size for entry in entries):
        return "is damaged: an entry claims to be larger than the file"
    if unpacked > SMALL + MOST_GROWTH * size:
        return f"unpacks to {unpacked // size} times its size; that is no plan"
    if not {entry.compress_type for entry in entries} <= {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        return "is packed in another way than plans are"
    return None


def check_header(costs: Mapping[str, Any], roots: Sequence[int]) -> None:
    """Refuse a header that would take much more memory or time than its size."""
    n_features, n_prices = (len(costs.get(name) or ()) for name in ("features", "prices"))
    if n_features * math.ceil(n_prices / 64) * 8 > MOST_TABLE_BYTES:
        raise ValueError(f"{n_features} features of {n_prices} acquisitions are more than a plan can have.")
    if len(set(roots)) != len(roots):
        raise ValueError("A root appears twice.")


def check_numbers(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse NaN and infinity where a plan computes with them."""
    for name, array in arrays.items():
        if array.dtype.kind != "f" or name in MAY_BE_UNKNOWN:
            continue
        part = array[:, :2] if name == "node.numbers" and array.ndim == 2 else array  # the third is a note
        is_wrong = np.isnan(part) if name.endswith(MAY_BE_INFINITE) else ~np.isfinite(part)
        if is_wrong.any():
            raise ValueError(f"{name} holds a value that is not a finite number.")
