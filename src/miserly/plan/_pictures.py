"""Delegates of `plot` methods: pictures live on a higher floor and are loaded only when one is drawn."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def draw(kind: str, thing: Any, **options: Any) -> Any:
    """Have `miserly.report` draw something."""
    try:
        report = import_module("miserly.report")
    except ImportError as error:
        raise ImportError(f"Pictures need the extra 'report': pip install 'miserly[report]' ({error}).") from error
    return getattr(report, f"plot_{kind}")(thing, **options)
