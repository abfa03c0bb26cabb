"""What the pictures share: `frame` and `plot`, colours for the colour-blind, shapes that differ without any colour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from miserly.files import whole_file

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vP*X"
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)), (0, (8, 3)))
HATCHES = ("", "////", "....", "xxxx", "----", "oooo", "++++", "****")
INK, FAINT = "#222222", "#8a8a8a"


class Picture:
    """Something that can be drawn: `frame` gives the figures as records, `plot` draws them on an axis."""

    size = (7.5, 4.8)

    def frame(self) -> list[dict[str, Any]]:
        """The figures that are drawn, as records."""
        raise NotImplementedError

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on an axis, on a new one if none is given."""
        ax = self.axes() if ax is None else ax
        self.draw(ax)
        return ax

    def draw(self, ax: Axes) -> None:
        """Put everything on the axis."""
        raise NotImplementedError

    def axes(self) -> Axes:
        """A new axis of the usual size."""
        return Figure(figsize=self.size, layout="constrained").subplots()

    def save(self, path: str | Path) -> None:
        """Draw and write a file: .png, .svg, .pdf."""
        drawn(self, path)


def drawn(picture: Picture, path: str | Path | None = None, ax: Axes | None = None) -> Figure:
    """Draw a picture, and write it if there is a path."""
    figure = figure_of(picture.plot(ax))
    if path is not None:
        write_figure(figure, path, 150)
    return figure


def write_figure(figure: Figure, path: str | Path, dpi: int) -> None:
    """Write a picture, whole or not at all; the end of its name says how (.png unless it has one)."""
    path = Path(path) if Path(path).suffix else Path(f"{path}.png")
    with whole_file(path) as file:
        figure.savefig(file, dpi=dpi, format=path.suffix[1:])


def figure_of(ax: Axes) -> Figure:
    """The figure that an axis stands in."""
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    return figure


def series(i: int) -> dict[str, Any]:
    """Colour, marker and line of the i-th of several series."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": LINES[i % len(LINES)],
    }


def patch(i: int) -> dict[str, Any]:
    """Colour and hatching of the i-th of several kinds of bars."""
    return {"color": COLOURS[i % len(COLOURS)], "hatch": HATCHES[i % len(HATCHES)], "edgecolor": "white"}
