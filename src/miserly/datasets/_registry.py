"""Data sets by name, for the command line."""

from collections.abc import Callable

from miserly.datasets._dataset import Dataset
from miserly.datasets._synthetic import circle, four_quadrants, noisy_xor
from miserly.datasets._triage import triage_like
from miserly.datasets._yahoo import yahoo_like

_MAKERS: dict[str, tuple[Callable[[int, int], Dataset], int]] = {
    "four_quadrants": (four_quadrants, 1000),
    "noisy_xor": (noisy_xor, 1000),
    "circle": (circle, 600),
    "yahoo_like": (yahoo_like, 1000),
    "triage_like": (triage_like, 1000),
}
NAMES = tuple(_MAKERS)


def load(name: str, n: int | None = None, seed: int = 0) -> Dataset:
    """Draw a built-in data set by name.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    n : int, default=None
        Rows (queries for `yahoo_like`), 1 or more; None takes a usual size.
    seed : int, default=0
        Seed of the generator.

    Returns
    -------
    Dataset
        Rows, targets and prices.

    Examples
    --------
    >>> load("circle", n=50).name
    'circle'
    """
    if name not in _MAKERS:
        raise ValueError(f"There is no data set {name!r}. Use one of {', '.join(_MAKERS)}.")
    make, usual = _MAKERS[name]
    return make(usual if n is None else n, seed)
