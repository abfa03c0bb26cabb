"""Scenes classified with little CPU: visual descriptors from cheap to expensive, at their measured prices."""
