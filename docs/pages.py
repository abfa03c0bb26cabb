"""Runs what the pages show. Every Python block is executed, those of a page one after the other in an empty folder; the
tests do this, and `python docs/pages.py [PAGE ...]` does it and keeps the pictures that the pages draw."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    """The pages that show Python."""
    return [page for page in sorted(HERE.rglob("*.md")) if next(blocks(page), None)]


def blocks(page: Path) -> Iterator[str]:
    """The Python of a page, each block at its own line numbers so that errors tell where."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        yield "\n" * text[: found.start(1)].count("\n") + found.group(1)


def run(page: Path, folder: Path) -> dict[str, Any]:
    """Execute a page in a folder, in which it finds a folder for pictures; what it defined."""
    names: dict[str, Any] = {"__name__": page.stem}
    (folder / "pictures").mkdir(exist_ok=True)
    with chdir(folder):
        for block in blocks(page):
            exec(compile(block, str(page), "exec", dont_inherit=True), names)
    return names


if __name__ == "__main__":
    for page in [Path(name).resolve() for name in sys.argv[1:]] or pages():
        with TemporaryDirectory() as folder:
            run(page, Path(folder))
            for picture in Path(folder, "pictures").iterdir():
                shutil.copy(picture, HERE / "pictures" / picture.name)
