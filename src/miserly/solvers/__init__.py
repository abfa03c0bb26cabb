"""Numerical solvers behind the linear models: arrays in, coefficients out."""

__all__: list[str] = []
