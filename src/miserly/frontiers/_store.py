"""A folder that keeps every finished point of a sweep, so that a killed one goes on where it was.

`sweep.json` says what the sweep is made from; each point is a plan file and, written after it, a JSON file with what
was measured. Files are written under a name that begins with a dot and moved to their place when they are complete.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sklearn.base import clone

from miserly.files import locked, write_whole
from miserly.frontiers._fingerprint import key
from miserly.frontiers._front import Measured, Point
from miserly.frontiers._restore import fitted_state, restore, same_answers
from miserly.plan import load_plan

logger = logging.getLogger(__name__)
FORMAT = "miserly-sweep-1"
UNFINISHED = (".work-*", ".point-*", ".sweep.json.*")


class Store:
    """The points in a folder; made by `open_store`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, point: Point, X: Any) -> None:
        """Keep a finished point, if a model made from what is kept answers rows of X as it does."""
        plan = getattr(point.model, "plan_", None)
        if plan is None:
            raise ValueError(
                f"store= keeps models as plans, a fitted {type(point.model).__name__} has none (no plan_). "
                "Sweep it without a store."
            )
        state = fitted_state(point.model)
        if not same_answers(point.model, restore(point.model, plan, state), X):
            raise ValueError(
                f"store= keeps a model's plan and its plain attributes; a {type(point.model).__name__} made from these "
                "answers otherwise than the fitted one. Sweep it without a store."
            )
        path = self.folder / f"point-{key(point.params)}"
        plan.save(path.with_suffix(".plan"))
        content = {
            "params": {name: _plain(value) for name, value in point.params.items()},
            "validation": point.validation.record(),
            "test": None if point.test is None else point.test.record(),
            "seconds": point.seconds,
            "fitted": state,
            "plan": _sum(path.with_suffix(".plan").read_bytes()),
        }
        record = {"point": content, "sum": _sum(_text(content).encode())}
        write_whole(path.with_suffix(".json"), _text(record))

    def load(self, model: Any, params: Mapping[str, Any]) -> Point | None:
        """A point that was kept, its model restored; None if there is none, or if it is damaged."""
        path = self.folder / f"point-{key(params)}"
        try:
            record = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            content = record["point"]
            if record["sum"] != _sum(_text(content).encode()):
                raise ValueError("its check sum is wrong")
            if content["plan"] != _sum(path.with_suffix(".plan").read_bytes()):
                raise ValueError("its plan is damaged")
            plan = load_plan(path.with_suffix(".plan"))
            fitted = restore(clone(model).set_params(**params), plan, content["fitted"])
            parts = [None if part is None else Measured(**part) for part in (content["validation"], content["test"])]
            return Point(params, fitted, parts[0], parts[1], content["seconds"])  # type: ignore[arg-type]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("The point '%s' cannot be read and is fitted again: %s", path.with_suffix(".json"), error)
            return None


@contextmanager
def open_store(folder: str | Path, described: Mapping[str, str]) -> Iterator[Store]:
    """A store for the sweep with this description, locked while it is open; another sweep's is refused."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"The store '{folder}' is a file. Name a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    taken = f"Another sweep is at work in the store '{folder}'. Wait until it has ended, or use another folder."
    with locked(folder, taken):
        unfinished = [left for pattern in UNFINISHED for left in folder.glob(pattern)]
        _check(folder, described, unfinished)
        for left in unfinished:
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
        yield Store(folder)


def _check(folder: Path, described: Mapping[str, str], unfinished: list[Path]) -> None:
    """Refuse a folder that is no store, or that of another sweep; begin one in an empty folder."""
    path = folder / "sweep.json"
    if not path.exists():
        if set(folder.iterdir()) - set(unfinished):
            raise ValueError(f"The folder '{folder}' is neither empty nor the store of a sweep. Name another folder.")
        write_whole(path, _text({"format": FORMAT, "made_from": dict(described)}))
        return
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["format"] != FORMAT:
            raise ValueError(f"its format is {record['format']!r}, not {FORMAT!r}")
        before = dict(record["made_from"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"'{path}' is damaged: {error}. Use another folder, or delete this one.") from error
    other = [name for name in (*described, *before) if described.get(name, "none") != before.get(name, "none")]
    if other:
        lines = "; ".join(_difference(name, before, described) for name in dict.fromkeys(other))
        raise ValueError(f"The store '{folder}' holds another sweep: {lines}. Use another folder, or delete this one.")


def _difference(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> str:
    joint = "" if name.endswith("=") else " is "
    return f"{name}{joint}{before.get(name, 'none')} there, {now.get(name, 'none')} here"


def _text(content: Any) -> str:
    return json.dumps(content, indent=1, sort_keys=True)


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _sum(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
