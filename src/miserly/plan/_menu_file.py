"""The menu file: a zip of one JSON header, the tables as raw arrays, and each plan as a plan file."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from miserly.files import whole_file
from miserly.plan._file import PlanFileError, array_of, check_sizes, entry_of, read_plan, short, write_plan

FORMAT = "miserly-menu"
VERSION = 1
TABLES = ("caps", "quality", "cost")


class _MenuHeader(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    names: list[str]
    metric: str


def save_menu(menu: Any, path: str | Path) -> None:
    """Write a menu to a file, whole or not at all."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"Cannot save the menu to '{path}': it is not a file. Name a file in a folder.")
    header = _MenuHeader(FORMAT, VERSION, list(menu.names), menu.metric)
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(entry_of("menu.json"), msgspec.json.encode(header))
        for name in [*TABLES, *(["bought"] if menu.bought is not None else [])]:
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(getattr(menu, name)), allow_pickle=False)
            archive.writestr(entry_of(f"{name}.npy"), buffer.getvalue())
        for number, plan in enumerate(menu.plans):
            buffer = io.BytesIO()
            write_plan(plan, buffer)
            archive.writestr(entry_of(f"plans/{number}.plan"), buffer.getvalue())


def read_menu(path: str | Path, kind: type[Any], file: Any = None) -> Any:
    """Read a menu file, by name or open; anything that is not a sound menu is refused."""
    try:
        with zipfile.ZipFile(path if file is None else file) as archive:
            check_sizes(archive, path)
            if "menu.json" not in archive.namelist():
                raise PlanFileError(f"'{path}' is not a menu: it has no menu.json. A single plan is read by load_plan.")
            header = msgspec.json.decode(archive.read("menu.json"), type=_MenuHeader)
            if header.format != FORMAT or header.version > VERSION:
                raise PlanFileError(f"'{path}' is not a menu of version {VERSION} or before. Upgrade Miserly.")
            tables = [array_of(archive.read(f"{name}.npy"), np.float64) for name in TABLES]
            has_shares = "bought.npy" in archive.namelist()
            bought = array_of(archive.read("bought.npy"), np.float64) if has_shares else None
            plans = [
                read_plan(io.BytesIO(archive.read(f"plans/{i}.plan")), f"{path}, plan {i}")
                for i in range(len(header.names))
            ]
    except (FileNotFoundError, IsADirectoryError, PermissionError, PlanFileError):
        raise
    except Exception as error:  # zipfile and numpy raise many kinds on damaged files
        raise PlanFileError(f"'{path}' is not a menu file, or it is damaged: {short(error)}.") from error
    try:
        return kind(tuple(plans), *tables, tuple(header.names), header.metric, bought)
    except (ValueError, TypeError) as error:
        raise PlanFileError(f"The menu file '{path}' does not fit together: {short(error)}") from error
