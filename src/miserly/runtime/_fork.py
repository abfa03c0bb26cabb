"""What must be made again in a forked process, which has none of its parent's threads and maybe a held lock."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Resettable(Protocol):
    """Holds locks, threads or a loop."""

    def after_fork(self) -> None:
        """Forget what belongs to the parent."""


_known: WeakSet[Resettable] = WeakSet()


def reset_after_fork(holder: Resettable) -> None:
    """Call the holder's `after_fork` in every process that is forked while it lives."""
    _known.add(holder)


def _reset_all() -> None:
    for holder in list(_known):
        holder.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
