"""`make bench`: every benchmark, and the table of speed written; or those named on the command line."""

import sys
from importlib import import_module

from benchmarks import table

ALL = (
    *("start", "engine", "small", "busy", "growth", "sweep", "prediction", "memory"),
    *("on_demand", "serve", "cstc", "astc", "generators"),
)

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        import_module(f"benchmarks.{name}").main()
    if not sys.argv[1:]:
        table.write()
