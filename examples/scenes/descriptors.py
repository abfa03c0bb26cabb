"""Plain functions of a grey image: what it looks like, from sixteen pixels a side to words on a dense grid.

Histograms are returned as square roots of shares (Hellinger), so that plain distances suit all descriptors alike.
"""

from __future__ import annotations

import math
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray
from skimage.feature import hog, local_binary_pattern

Grey = NDArray[np.uint8]
Floats = NDArray[np.float32]

cv2.setNumThreads(1)  # what other threads compute would not be priced
TINY = 16
GREYS = 64
CELLS, ORIENTATIONS = 4, 8
LBP, LBP_WIDE = (8, 1, "nri_uniform", 59), (16, 3, "uniform", 18)  # points, radius, method, codes
HOG_COARSE, HOG_FINE = 50, 25
GIST_SIDE = 256
WAVELENGTHS_LOW, WAVELENGTHS_HIGH = (40.0, 20.0), (10.0, 5.0)
N_TEXTONS, N_WORDS = 128, 100
N_BANDS = 4
SIFT_STEP = 8
SIFT_FINE, SIFT_COARSE = 3, 6  # OpenCV looks at six times as many pixels a side
LEVELS = (1, 2, 4)


def decode(raw: bytes) -> Grey:
    """The grey image of a file."""
    grey = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_GRAYSCALE)
    if grey is None:
        raise ValueError("These bytes are no image that OpenCV can read.")
    return grey


def tiny(grey: Grey) -> Floats:
    """The image at 16 × 16, without its mean, of length one."""
    small = cv2.resize(grey, (TINY, TINY), interpolation=cv2.INTER_AREA).astype(np.float32).ravel()
    small -= small.mean()
    return small / max(float(np.linalg.norm(small)), 1e-6)


def histogram(grey: Grey) -> Floats:
    """How much there is of each of 64 greys."""
    return _shares(cv2.calcHist([grey], [0], None, [GREYS], [0, 256]).ravel())


def gradients(grey: Grey) -> Floats:
    """In 4 × 4 cells, how much the image changes in each of eight directions."""
    x, y = (cv2.Sobel(grey, cv2.CV_32F, *order) for order in ((1, 0), (0, 1)))
    length, angle = cv2.cartToPolar(x, y)
    bins = np.minimum((angle * (ORIENTATIONS / (2 * np.pi))).astype(np.intp), ORIENTATIONS - 1)
    return _by_cells(bins, ORIENTATIONS, CELLS, length)


def lbp(grey: Grey, points: int, radius: int, method: str, n_codes: int) -> Floats:
    """Local binary patterns: their shares in the whole image and in its four quarters."""
    codes = local_binary_pattern(grey, points, radius, method).astype(np.intp)
    return np.concatenate([_by_cells(codes, n_codes, n) for n in (1, 2)])


def hog_of(grey: Grey, cell: int) -> Floats:
    """Histograms of oriented gradients, nine directions, blocks of 2 × 2 cells."""
    return hog(grey, 9, (cell, cell), (2, 2), "L2-Hys").astype(np.float32)


# ---- filters ------------------------------------------------------------------------------------------------------


def spectrum(grey: Grey) -> NDArray[np.complex64]:
    """The Fourier transform of the image without its mean, mirrored at its borders."""
    fits = cv2.resize(grey, (200, 200), interpolation=cv2.INTER_AREA) if grey.shape != (200, 200) else grey
    margin = (GIST_SIDE - 200) // 2
    padded = cv2.copyMakeBorder(fits, margin, margin, margin, margin, cv2.BORDER_REFLECT).astype(np.float32)
    return np.fft.fft2(padded - padded.mean()).astype(np.complex64)


def gist(transformed: NDArray[np.complex64], wavelengths: tuple[float, ...]) -> Floats:
    """The mean strength of Gabor filters, eight directions for each wavelength, in 4 × 4 cells; of length one."""
    found = []
    for gabor in _gabor_bank(wavelengths):
        strength = np.abs(np.fft.ifft2(transformed * gabor)).astype(np.float32)
        found.append(cv2.resize(strength, (CELLS, CELLS), interpolation=cv2.INTER_AREA).ravel())
    all_of_them = np.concatenate(found)
    return all_of_them / max(float(np.linalg.norm(all_of_them)), 1e-6)


@cache
def _gabor_bank(wavelengths: tuple[float, ...]) -> list[Floats]:
    """Gaussians in the frequency plane, around each wavelength and direction."""
    across, down = np.meshgrid(np.fft.fftfreq(GIST_SIDE), np.fft.fftfreq(GIST_SIDE))
    radius, angle = np.hypot(across, down), np.arctan2(down, across)
    bank = []
    for wavelength in wavelengths:
        for k in range(ORIENTATIONS):
            turn = np.angle(np.exp(1j * (angle - k * np.pi / ORIENTATIONS)))
            log_radius = np.log(np.maximum(radius, 1e-6) * wavelength)
            bank.append(np.exp(-0.5 * ((log_radius / 0.45) ** 2 + (turn / 0.3) ** 2)).astype(np.float32))
    return bank


def responses(grey: Grey) -> Floats:
    """What edges and bars of two sizes and six directions, and four blobs, find at every second pixel: a row each."""
    filtered = [cv2.filter2D(grey, cv2.CV_32F, f)[::2, ::2].ravel() for f in _texture_bank()]
    found = np.stack(filtered, axis=1)
    found -= found.mean(axis=0)
    return found / np.maximum(found.std(axis=0), 1e-3)


@cache
def _texture_bank() -> list[Floats]:
    """Derivatives of Gaussians, stretched threefold along the edge, and Laplacians; each sums to zero."""
    down, across = np.mgrid[-12:13, -12:13].astype(float)
    bank = []
    for size in (1.5, 3.0):
        for k in range(6):
            turn = k * np.pi / 6
            u, v = across * np.cos(turn) + down * np.sin(turn), down * np.cos(turn) - across * np.sin(turn)
            bell = np.exp(-0.5 * ((u / size) ** 2 + (v / (3 * size)) ** 2))
            bank += [u * bell, (u**2 / size**2 - 1) * bell]
    for size in (1.0, 2.0, 3.0, 4.0):
        squared = (across**2 + down**2) / size**2
        bank.append((squared - 2) * np.exp(-0.5 * squared))
    centred = [f - f.mean() for f in bank]
    return [(f / np.abs(f).sum()).astype(np.float32) for f in centred]


# ---- words --------------------------------------------------------------------------------------------------------


def dense_sift(grey: Grey, size: int) -> Floats:
    """SIFT on a grid of every eighth pixel, upright, as square roots of shares: a row each, row by row."""
    _, found = _sift().compute(grey, _grid(*grey.shape, size))
    return np.sqrt(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-6))


def grid_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """How many rows and columns the grid has."""
    return len(_places(shape[0])), len(_places(shape[1]))


def _places(length: int) -> range:
    return range(SIFT_STEP, length - SIFT_STEP + 1, SIFT_STEP)


@cache
def _grid(height: int, width: int, size: int) -> list[cv2.KeyPoint]:
    return [cv2.KeyPoint(float(x), float(y), float(size), 0.0) for y in _places(height) for x in _places(width)]


@cache
def _sift() -> cv2.SIFT:
    return cv2.SIFT_create()


def nearest(rows: Floats, words: Floats) -> NDArray[np.intp]:
    """The number of the word that is nearest to each row."""
    return np.argmax(rows @ words.T - 0.5 * (words**2).sum(axis=1), axis=1)


def bag(words: NDArray[np.intp], n_words: int) -> Floats:
    """How much there is of each word, wherever it stands."""
    return _shares(np.bincount(words.ravel(), minlength=n_words))


def pyramid(words: NDArray[np.intp], n_words: int) -> Floats:
    """How much there is of each word in the whole image, its quarters and sixteenths, the smaller weighing more."""
    weights = (0.5, 0.5, math.sqrt(0.5))
    return np.concatenate([w * _by_cells(words, n_words, n) for w, n in zip(weights, LEVELS)])


def bands(words: NDArray[np.intp], n_words: int) -> Floats:
    """How much there is of each word in four bands from the sky to the ground."""
    return np.concatenate([_shares(np.bincount(b.ravel(), minlength=n_words)) for b in np.array_split(words, N_BANDS)])


def _by_cells(codes: NDArray[np.intp], n_codes: int, n_cells: int, weights: Floats | None = None) -> Floats:
    """Shares of codes in n × n cells, cell by cell."""
    rows, columns = (np.arange(n) * n_cells // n for n in codes.shape)
    cells = rows[:, None] * n_cells + columns
    counts = np.bincount(
        (cells * n_codes + codes).ravel(), None if weights is None else weights.ravel(), n_cells**2 * n_codes
    )
    return np.concatenate([_shares(of_cell) for of_cell in counts.reshape(-1, n_codes)]) / np.float32(n_cells)


def _shares(counts: NDArray) -> Floats:
    """Square roots of shares: a vector of length one, or of zeros."""
    return np.sqrt(counts / max(float(counts.sum()), 1e-6)).astype(np.float32)
