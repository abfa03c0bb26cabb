"""Numerical solvers behind the linear models: arrays in, coefficients out."""

from miserly.solvers.discriminant import discriminant
from miserly.solvers.group_lasso import Fit, GroupLasso, least_squares
from miserly.solvers.newton_svm import newton_svm
from miserly.solvers.platt import platt
from miserly.solvers.standard import Standard, standardise

__all__ = ["Fit", "GroupLasso", "Standard", "discriminant", "least_squares", "newton_svm", "platt", "standardise"]
