"""The extractors of an image: fifteen descriptors, and the shared work that some of them need.

All need the decoded image; two need its spectrum; histograms of textons the filter responses; bags and pyramids of
words the dense SIFT pass. Each of these is paid once, whoever needs it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import MiniBatchKMeans

import miserly as ms
from examples.scenes import descriptors
from examples.scenes.descriptors import CELLS, LBP, LBP_WIDE, LEVELS, N_BANDS, N_TEXTONS, N_WORDS, ORIENTATIONS, Floats
from miserly.runtime import Extractor

N_GIST = 2 * ORIENTATIONS * CELLS**2
N_PYRAMID = N_WORDS * sum(n**2 for n in LEVELS)
ROWS_PER_IMAGE = 200


def columns(descriptor: str, n: int) -> list[str]:
    """The names of a descriptor's features."""
    return [f"{descriptor}_{i}" for i in range(n)]


@ms.extractor("image")
def image(raw: bytes) -> Any:
    """The decoded image: all others wait for it."""
    return descriptors.decode(raw)


@ms.extractor("tiny", yields=columns("tiny", descriptors.TINY**2), needs=image)
def tiny(raw: bytes, grey: Any) -> Floats:
    """Sixteen pixels a side."""
    return descriptors.tiny(grey)


@ms.extractor("histogram", yields=columns("histogram", descriptors.GREYS), needs=image)
def histogram(raw: bytes, grey: Any) -> Floats:
    """Its greys."""
    return descriptors.histogram(grey)


@ms.extractor("gradients", yields=columns("gradients", ORIENTATIONS * CELLS**2), needs=image)
def gradients(raw: bytes, grey: Any) -> Floats:
    """Directions of change in sixteen cells."""
    return descriptors.gradients(grey)


@ms.extractor("lbp", yields=columns("lbp", 5 * LBP[-1]), needs=image)
def lbp(raw: bytes, grey: Any) -> Floats:
    """Patterns of the eight neighbours."""
    return descriptors.lbp(grey, *LBP)


@ms.extractor("lbp_wide", yields=columns("lbp_wide", 5 * LBP_WIDE[-1]), needs=image)
def lbp_wide(raw: bytes, grey: Any) -> Floats:
    """Patterns of sixteen pixels around, wherever they begin."""
    return descriptors.lbp(grey, *LBP_WIDE)


@ms.extractor("hog_coarse", yields=columns("hog_coarse", 3 * 3 * 36), needs=image)
def hog_coarse(raw: bytes, grey: Any) -> Floats:
    """Oriented gradients in cells of 50 pixels."""
    return descriptors.hog_of(grey, descriptors.HOG_COARSE)


@ms.extractor("hog_fine", yields=columns("hog_fine", 7 * 7 * 36), needs=image)
def hog_fine(raw: bytes, grey: Any) -> Floats:
    """Oriented gradients in cells of 25 pixels."""
    return descriptors.hog_of(grey, descriptors.HOG_FINE)


@ms.extractor("spectrum", needs=image)
def spectrum(raw: bytes, grey: Any) -> Any:
    """The Fourier transform, for both kinds of GIST."""
    return descriptors.spectrum(grey)


@ms.extractor("gist_low", yields=columns("gist_low", N_GIST), needs=spectrum)
def gist_low(raw: bytes, transformed: Any) -> Floats:
    """Gabor filters of long waves."""
    return descriptors.gist(transformed, descriptors.WAVELENGTHS_LOW)


@ms.extractor("gist_high", yields=columns("gist_high", N_GIST), needs=spectrum)
def gist_high(raw: bytes, transformed: Any) -> Floats:
    """Gabor filters of short waves."""
    return descriptors.gist(transformed, descriptors.WAVELENGTHS_HIGH)


FIXED = (image, tiny, histogram, gradients, lbp, lbp_wide, hog_coarse, hog_fine, spectrum, gist_low, gist_high)


# ---- words, which are learnt --------------------------------------------------------------------------------------


class Codebooks(NamedTuple):
    """The centres to which responses and SIFT rows are rounded."""

    textons: Floats
    fine: Floats
    coarse: Floats

    def save(self, path: Path) -> None:
        """Keep them."""
        np.savez(path, **self._asdict())

    @classmethod
    def load(cls, path: Path) -> Codebooks:
        """Read what `save` wrote."""
        with np.load(path) as kept:
            return cls(**{name: kept[name] for name in cls._fields})


def learn_codebooks(raws: Iterable[bytes], seed: int = 0) -> Codebooks:
    """Cluster rows of some images; labels are not looked at."""
    rng = np.random.default_rng(seed)
    found: list[list[Floats]] = [[], [], []]
    for raw in raws:
        grey = descriptors.decode(raw)
        rows_of_all = (
            descriptors.responses(grey),
            descriptors.dense_sift(grey, descriptors.SIFT_FINE),
            descriptors.dense_sift(grey, descriptors.SIFT_COARSE),
        )
        for kept, rows in zip(found, rows_of_all):
            kept.append(rows[rng.choice(len(rows), min(ROWS_PER_IMAGE, len(rows)), replace=False)])
    sizes = (N_TEXTONS, N_WORDS, N_WORDS)
    return Codebooks(*(_centres(np.concatenate(rows), n, seed) for rows, n in zip(found, sizes)))


def _centres(rows: Floats, n: int, seed: int) -> Floats:
    clusters = MiniBatchKMeans(n, batch_size=4096, n_init=1, random_state=seed).fit(rows)
    return clusters.cluster_centers_.astype(np.float32)


def learnt_extractors(books: Codebooks) -> list[Extractor]:
    """Textons and words, and what is counted of them."""

    @ms.extractor("textons", needs=image)
    def textons(raw: bytes, grey: Any) -> Any:
        half = tuple(-(-n // 2) for n in grey.shape)
        return descriptors.nearest(descriptors.responses(grey), books.textons).reshape(half)

    @ms.extractor("texton_histogram", yields=columns("texton_histogram", N_TEXTONS), needs=textons)
    def texton_histogram(raw: bytes, words: Any) -> Floats:
        return descriptors.bag(words, N_TEXTONS)

    @ms.extractor("texton_bands", yields=columns("texton_bands", N_BANDS * N_TEXTONS), needs=textons)
    def texton_bands(raw: bytes, words: Any) -> Floats:
        return descriptors.bands(words, N_TEXTONS)

    made = [textons, texton_histogram, texton_bands]
    for scale, size, centres in (
        ("fine", descriptors.SIFT_FINE, books.fine),
        ("coarse", descriptors.SIFT_COARSE, books.coarse),
    ):
        made += _word_extractors(scale, size, centres)
    return made


def _word_extractors(scale: str, size: int, centres: Floats) -> list[Extractor]:
    @ms.extractor(f"sift_{scale}", needs=image)
    def sift(raw: bytes, grey: Any) -> Any:
        words = descriptors.nearest(descriptors.dense_sift(grey, size), centres)
        return words.reshape(descriptors.grid_shape(grey.shape))

    @ms.extractor(f"bag_{scale}", yields=columns(f"bag_{scale}", N_WORDS), needs=sift)
    def bag(raw: bytes, words: Any) -> Floats:
        return descriptors.bag(words, N_WORDS)

    @ms.extractor(f"pyramid_{scale}", yields=columns(f"pyramid_{scale}", N_PYRAMID), needs=sift)
    def pyramid(raw: bytes, words: Any) -> Floats:
        return descriptors.pyramid(words, N_WORDS)

    return [sift, bag, pyramid]


def all_extractors(books: Codebooks) -> list[Extractor]:
    """Everything that can be had from an image; the order of the columns."""
    return [*FIXED, *learnt_extractors(books)]


def extract(extractors: Sequence[Extractor], raw: bytes) -> Floats:
    """All features of an image, in the order of the extractors."""
    results: dict[str, Any] = {}
    for e in extractors:
        results[e.name] = e.function(raw, *[results[name] for name in e.needs])
    return np.concatenate([results[e.name] for e in extractors if e.yields])
