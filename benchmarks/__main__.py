"""`make bench`: every benchmark, or those named on the command line."""

import sys
from importlib import import_module

ALL = ("engine", "sweep", "prediction", "memory", "on_demand", "serve", "cstc", "astc", "generators")

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        import_module(f"benchmarks.{name}").main()
