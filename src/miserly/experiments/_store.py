"""What was measured is kept, point by point: a killed run goes on where it was, and figures share their points."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from miserly.files import write_whole
from miserly.plan import Plan, PlanFileError, load_plan


class ResultStore:
    """A folder of JSON records and plans, each under the digest of its key; the key stands in the record."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def record(self, key: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """The plain data kept under this key; made now, if there are none or the file is damaged."""
        path = self._path(key).with_suffix(".json")
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["key"] == json.loads(_text(key)):
                return kept["record"]
        except (OSError, ValueError, KeyError):
            pass
        record = json.loads(_text(make()))
        write_whole(path, _text({"key": key, "record": record}))
        return record

    def plan(self, key: Mapping[str, Any], make: Callable[[], Plan]) -> Plan:
        """The plan kept under this key; made now, if there is none or the file is damaged."""
        path = self._path(key).with_suffix(".plan")
        try:
            return load_plan(path)
        except (OSError, PlanFileError):
            plan = make()
            plan.save(path)
            return plan

    def _path(self, key: Mapping[str, Any]) -> Path:
        return self.folder / hashlib.sha256(_text(key).encode()).hexdigest()[:24]


def _text(content: Any) -> str:
    return json.dumps(content, sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
