"""Pictures of frontiers, and the page that holds them."""

from miserly.report.frontier import plot_frontier
from miserly.report.page import write_page

__all__ = ["plot_frontier", "write_page"]
