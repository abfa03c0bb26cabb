"""Debian's chromium, driven from disk with the network off; axe-core from npm."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from contextlib import contextmanager
from pathlib import Path

import pytest

BUILD = Path(__file__).parents[2] / "build"
NAMES = ("chromium", "chromium-browser", "google-chrome")


def missing(what):
    """Skip, unless whoever runs the tests has promised that everything is there."""
    if os.environ.get("MISERLY_NO_SKIP"):
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def chromium():
    """A browser; one at a time in a process, since Playwright's loop would be in the way of other tests' loops."""
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        missing("chromium is not installed")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


def axe_source():
    """The text of axe-core, which npm fetches once into build/."""
    kept = BUILD / "axe.min.js"
    if not kept.exists():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed, which fetches axe-core")
        BUILD.mkdir(exist_ok=True)
        done = subprocess.run(
            ["npm", "pack", "--silent", "axe-core@4"], cwd=BUILD, capture_output=True, text=True, timeout=120
        )
        if done.returncode != 0:
            missing(f"npm could not fetch axe-core: {done.stderr.strip()[-300:]}")
        packed = BUILD / done.stdout.split()[-1]
        with tarfile.open(packed) as archive:
            text = archive.extractfile("package/axe.min.js").read()
        kept.write_bytes(text)
        packed.unlink()
    return kept.read_text(encoding="utf-8")


def screenshot(page, name):
    """Keep what the page looks like, for people to look at."""
    folder = BUILD / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png", full_page=True)
