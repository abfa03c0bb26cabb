"""The user's own Python code, by name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any


def load_module(where: str) -> Any:
    """A module by name, or a Python file."""
    if not where.endswith(".py"):
        sys.path.insert(0, "")
        return importlib.import_module(where)
    path = Path(where)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file '{where}'.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    sys.path.insert(0, str(path.parent.resolve()))
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_name(where: str) -> Any:
    """Something in a module or a Python file: `module:name` or `file.py:name`."""
    module, colon, name = where.rpartition(":")
    if not colon:
        raise ValueError(f"'{where}' names no object. Write module:name, or file.py:name.")
    try:
        return getattr(load_module(module), name)
    except AttributeError:
        raise ValueError(f"'{module}' has no '{name}'. Write module:name, or file.py:name.") from None
