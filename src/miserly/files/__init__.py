"""Files that are written whole or not at all, and places that one process at a time works in."""

from miserly.files._lock import locked
from miserly.files._packed import check_zip, is_gzip, open_gzip
from miserly.files._whole import whole_file, write_whole, writing

__all__ = ["check_zip", "is_gzip", "locked", "open_gzip", "whole_file", "write_whole", "writing"]
