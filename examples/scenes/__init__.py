"""Scenes told apart for as little CPU as possible: visual descriptors from cheap to dear, at their measured prices."""
