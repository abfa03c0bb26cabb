"""The page: one HTML file that works offline."""

from miserly.report.page._page import write_report

__all__ = ["write_report"]
