"""A plan or a menu from the bytes of its file."""

from __future__ import annotations

import io
import zipfile

from miserly.plan._file import read_plan
from miserly.plan._menu import Menu
from miserly.plan._menu_file import read_menu
from miserly.plan._plan import Plan


def read_model(data: bytes, name: str = "model") -> Plan | Menu:
    """Read a plan or a menu, whichever the bytes are.

    Parameters
    ----------
    data : bytes
        What `Plan.save` or `Menu.save` wrote.
    name : str, default="model"
        What errors call it.

    Raises
    ------
    PlanFileError
        If the bytes are neither, or are damaged.

    Examples
    --------
    >>> from miserly.plan import PlanFileError, read_model
    >>> try:
    ...     read_model(b"", "empty.plan")
    ... except PlanFileError as error:
    ...     print(str(error)[:31])
    'empty.plan' is not a plan file
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            is_menu = "menu.json" in archive.namelist()
    except zipfile.BadZipFile:
        is_menu = False
    file = io.BytesIO(data)
    if not is_menu:
        return read_plan(file, name)
    menu: Menu = read_menu(name, Menu, file)
    return menu
