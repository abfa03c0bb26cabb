"""Every compiled loop; arrays in, arrays out. Import the file that holds the loop you need."""

import os
import sys

# Idle OpenMP threads spin for milliseconds by default: on a machine with other work that made fits ten times slower.
# A short spin is as fast when alone (60 trees: 0.27 s either way), and 1.0 s instead of 1.4 to 6.6 s when crowded.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

# numba, when it is loaded, looks at scipy's version and at nothing else of it. Who only runs plans need not load scipy.
if "scipy" not in sys.modules:
    sys.modules["scipy"] = None  # type: ignore[assignment]
    try:
        import numba  # noqa: F401
    finally:
        del sys.modules["scipy"]
