"""Every compiled loop; arrays in, arrays out. Import the file that holds the loop you need."""

import os

# Idle OpenMP threads spin for milliseconds by default: on a machine with other work that made fits ten times slower.
# A short spin is as fast when alone (60 trees: 0.27 s either way), and 1.0 s instead of 1.4 to 6.6 s when crowded.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
