"""Progress bars: only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def bar(what: str, quiet: bool = False) -> Iterator[Callable[..., None]]:
    """Gives a function to call with (done, of, …) after each piece of work."""
    if quiet or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)

        def update(done: int, of: int, *_: Any) -> None:
            progress.update(task, completed=done, total=of)

        yield update


@contextmanager
def share_bar(quiet: bool = False) -> Iterator[Callable[[str, float, float], None]]:
    """Gives a function to call with what is being done, the share that is done, and the seconds that are left."""
    if quiet or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=1.0, left="")

        def update(what: str, share: float, left: float) -> None:
            text = "" if left != left else f"about {left:.0f} s left"
            progress.update(task, description=what, completed=share, left=text)

        yield update


@contextmanager
def waiting(what: str, quiet: bool = False) -> Iterator[None]:
    """A sign of life while something runs that has no steps to count."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """Gives a function to call with what is being done now, which is shown on one line."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update
