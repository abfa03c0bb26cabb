"""Photographs of scenes, still encoded: from a folder, from a tar file, or made up by seed."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

SUFFIXES = (".jpg", ".jpeg", ".png", ".pgm")
MADE_UP = ("columns", "rows", "chequers", "blobs")
SIDE = 200


class Images(NamedTuple):
    """Files as they are, the scene that each shows, and where each was found."""

    raw: list[bytes]
    labels: NDArray[np.str_]
    names: list[str]


def read_images(place: Path) -> Images:
    """All images below a folder or in a tar file, shuffled; the folder that an image lies in names its scene."""
    in_order = sorted(_of_tar(place) if place.is_file() else _of_folder(place))
    if not in_order:
        raise FileNotFoundError(f"'{place}' has no {', '.join(SUFFIXES)} in it. Give a folder with one for each scene.")
    found = [in_order[i] for i in np.random.default_rng(0).permutation(len(in_order))]
    names = [name for name, _ in found]
    return Images([raw for _, raw in found], np.array([PurePosixPath(name).parent.name for name in names]), names)


def _of_folder(place: Path) -> Iterator[tuple[str, bytes]]:
    for path in place.rglob("*"):
        if path.suffix.lower() in SUFFIXES:
            yield path.relative_to(place).as_posix(), path.read_bytes()


def _of_tar(place: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(place) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.lower().endswith(SUFFIXES) else None
            if file is not None:
                yield member.name, file.read()


def generate(n_per_scene: int = 40, seed: int = 0) -> Images:
    """Four kinds of made-up scenes under noise, distinguished by what repeats in them and where."""
    rng = np.random.default_rng(seed)
    raw, labels = [], []
    for scene in MADE_UP:
        for _ in range(n_per_scene):
            raw.append(cv2.imencode(".png", _made_up(scene, rng))[1].tobytes())
            labels.append(scene)
    return Images(raw, np.array(labels), [f"{scene}/{i}.png" for i, scene in enumerate(labels)])


def _made_up(scene: str, rng: np.random.Generator) -> NDArray[np.uint8]:
    down, across = np.mgrid[:SIDE, :SIDE] * (2 * np.pi / rng.uniform(15, 40))
    shift = rng.uniform(0, 2 * np.pi, 2)
    if scene == "columns":
        pattern = np.sin(across + shift[0])
    elif scene == "rows":
        pattern = np.sin(down + shift[0])
    elif scene == "chequers":
        pattern = np.sin(across + shift[0]) * np.sin(down + shift[1])
    else:
        pattern = cv2.GaussianBlur(rng.normal(size=(SIDE, SIDE)), (0, 0), 8.0)
        pattern = pattern / pattern.std()
    noise = rng.normal(0.0, rng.uniform(0.2, 2.0), (SIDE, SIDE))
    return np.clip(128 + rng.uniform(-30, 30) + 40 * (pattern + noise), 0, 255).astype(np.uint8)
