"""All descriptors of all images, and their prices, kept on disk: what `miserly reproduce` reads as Scene-15."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import miserly as ms
from examples.scenes import descriptors
from examples.scenes.extractors import Codebooks, all_extractors, extract, learn_codebooks
from examples.scenes.images import Images
from miserly.runtime import Extractor, profile

FOLDER = "scene15"
N_LEARNT = 8
N_PROFILED = 100
AT_ONCE = 100


def describe(
    images: Images,
    folder: Path,
    progress: Callable[[str], None] = lambda _: None,
    n_learnt: int = N_LEARNT,
    n_profiled: int = N_PROFILED,
) -> tuple[Path, list[Extractor]]:
    """Write `scene15/descriptors.npz` and `scene15/costs.toml` below a folder, unless these images are there already.

    Words are learnt from a few images of each scene (`learnt_from`), which must be training images in every split.
    """
    place = folder / FOLDER
    file = place / "descriptors.npz"
    digest = _digest(images)
    if file.exists():
        with np.load(file) as kept:
            if str(kept["digest"]) == digest:
                return place, all_extractors(Codebooks.load(place / "codebooks.npz"))
    parts = place / f"parts-{digest}"
    parts.mkdir(parents=True, exist_ok=True)
    began = process_time()
    learnt_from = _some_of_each(images.labels, n_learnt)
    progress("learning words")
    books = learn_codebooks([images.raw[i] for i in learnt_from])
    books.save(place / "codebooks.npz")
    extractors = all_extractors(books)
    progress("measuring")
    sample = np.random.default_rng(0).permutation(len(images.raw))[:n_profiled]
    with threadpool_limits(1):
        measured = profile(extractors, [images.raw[i] for i in sample])
    ms.CostTable.from_profile(measured, statistic="median").to_toml(place / "costs.toml")
    (place / "profile.txt").write_text(measured.table() + "\n", encoding="utf-8")
    X, seconds = _in_parts(images.raw, extractors, parts, progress)
    np.savez(
        file,
        X=X,
        y=images.labels,
        descriptor=[e.name for e in extractors for _ in e.yields],
        learnt_from=learnt_from,
        digest=digest,
        cpu_seconds=seconds + process_time() - began,
    )
    for part in parts.iterdir():
        part.unlink()
    parts.rmdir()
    return place, extractors


def _in_parts(
    raw: Sequence[bytes], extractors: Sequence[Extractor], parts: Path, progress: Callable[[str], None]
) -> tuple[NDArray[np.float32], float]:
    """Some images at a time, each lot a file, so that a run that was stopped goes on; and what finished lots took."""
    found, before = [], 0.0
    for first in range(0, len(raw), AT_ONCE):
        path = parts / f"{first}.npz"
        progress(f"describing {first} of {len(raw)}")
        if path.exists():
            with np.load(path) as kept:
                found.append(kept["X"])
                before += float(kept["seconds"])
            continue
        began = process_time()
        found.append(np.array([extract(extractors, one) for one in raw[first : first + AT_ONCE]]))
        np.savez(path, X=found[-1], seconds=process_time() - began)
    return np.concatenate(found), before


def _some_of_each(labels: NDArray[np.str_], n: int) -> NDArray[np.intp]:
    """The first few of each scene."""
    return np.concatenate([np.flatnonzero(labels == scene)[:n] for scene in np.unique(labels)])


def _digest(images: Images) -> str:
    """Tells other images, and other descriptors, apart."""
    content = hashlib.sha256(Path(descriptors.__file__).read_bytes())
    for name, raw in zip(images.names, images.raw):
        content.update(f"{name} {len(raw)}\n".encode())
    return content.hexdigest()[:16]
