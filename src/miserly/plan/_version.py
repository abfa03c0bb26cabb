"""The version of a plan or a menu: a hash of its content, the same on every machine and after saving and loading."""

from __future__ import annotations

import io
import zipfile
from hashlib import blake2b
from typing import Any

import numpy as np

from miserly.plan._file import write_plan
from miserly.plan._menu import Menu
from miserly.plan._menu_file import TABLES
from miserly.plan._plan import Plan


def content_hash(plan: Plan | Menu) -> str:
    """Return what identifies a plan or a menu: twelve hexadecimal digits that depend on its content alone.

    Parameters
    ----------
    plan : Plan or Menu
        What is identified. Its notes count too.

    Examples
    --------
    >>> from miserly.costs import CostTable
    >>> from miserly.plan import Node, Plan, RawFeatures, content_hash
    >>> plan = Plan(CostTable.per_feature({"age": 2.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    >>> len(content_hash(plan))
    12
    """
    found = blake2b(digest_size=6)
    parts: list[Any] = _menu_parts(plan) if isinstance(plan, Menu) else _plan_parts(plan)
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()


def _plan_parts(plan: Plan) -> list[bytes]:
    """The entries of its file, not compressed: compressed bytes depend on the library that made them."""
    buffer = io.BytesIO()
    write_plan(plan, buffer)
    with zipfile.ZipFile(buffer) as archive:
        return [part for name in archive.namelist() for part in (name.encode(), archive.read(name))]


def _menu_parts(menu: Menu) -> list[bytes]:
    tables = [np.ascontiguousarray(getattr(menu, name)).tobytes() for name in TABLES]
    words = [word.encode() for word in (menu.metric, *menu.names)]
    return [*tables, *words, *(content_hash(plan).encode() for plan in menu.plans)]
