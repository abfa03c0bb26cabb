"""Which known names somebody may have meant: without regard to case, to spaces, and to a unit in brackets."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_UNIT = re.compile(r"\s*[\[(][^\])]*[\])]\s*$")


def nearest_names(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that differ from this one only in case or unit; else those that look alike, nearest first.

    Parameters
    ----------
    name : str
        What was written.
    known : iterable of str
        What there is.
    most : int, default=3
        How many are given, 1 or more.

    Examples
    --------
    >>> nearest_names("crp", ["CRP (mg/l)", "lactate"])
    ['CRP (mg/l)']
    """
    plain: dict[str, list[str]] = {}
    for other in known:
        plain.setdefault(_plain(other), []).append(other)
    if _plain(name) in plain:
        return plain[_plain(name)][:most]
    near = difflib.get_close_matches(_plain(name), plain, most)
    return [other for one in near for other in plain[one]][:most]


def _plain(name: str) -> str:
    return _UNIT.sub("", name).strip().casefold() or name
