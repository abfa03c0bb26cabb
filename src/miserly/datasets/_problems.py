"""What is wrong with a table, all of it in one report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from miserly.schema import nearest_names

_MOST_SHOWN = 12  # more lines than this scroll the first ones away


class TableProblem(NamedTuple):
    """One problem of a file: where it is, what it is, and what to do about it.

    Parameters
    ----------
    path : str
        The file.
    where : str
        The line, the column, or both; empty if it is about the whole file.
    what : str
        What is wrong, in a sentence.
    remedy : str
        What to do, in a sentence.

    Examples
    --------
    >>> print(TableProblem("a.csv", "line 3", "2 cells, the header has 3.", "Add the missing one."))
    line 3: 2 cells, the header has 3. Add the missing one.
    """

    path: str
    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where + ': ' if self.where else ''}{self.what} {self.remedy}".strip()


class TableError(ValueError):
    """A table that cannot be read as it is; `problems` lists everything that was found.

    Parameters
    ----------
    problems : sequence of TableProblem
        At least one.

    Examples
    --------
    >>> print(TableError([TableProblem("a.csv", "line 3", "2 cells, the header has 3.", "Add the missing one.")]))
    'a.csv', line 3: 2 cells, the header has 3. Add the missing one.
    """

    def __init__(self, problems: Sequence[TableProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(_report(self.problems))


def _report(problems: Sequence[TableProblem]) -> str:
    by_file: dict[str, list[TableProblem]] = {}
    for problem in problems:
        by_file.setdefault(problem.path, []).append(problem)
    if len(problems) == 1:
        (only,) = problems
        return f"'{only.path}'{', ' if only.where else ': '}{only}"
    lines = []
    for path, found in by_file.items():
        lines.append(f"'{path}' has {len(found)} problem{'s' if len(found) > 1 else ''}:")
        lines += [f"  {problem}" for problem in found[:_MOST_SHOWN]]
        if len(found) > _MOST_SHOWN:
            lines.append(f"  … and {len(found) - _MOST_SHOWN} more.")
    return "\n".join(lines)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint at the nearest known name; all of them if there are few, else some."""
    names = list(known)
    near = nearest_names(name, names, 2)
    if near:
        return f"Did you mean {' or '.join(repr(n) for n in near)}?"
    shown = ", ".join(names[:40])
    return f"It has: {shown}{' …' if len(names) > 40 else ''}."
