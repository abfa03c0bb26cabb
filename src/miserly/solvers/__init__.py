"""Numerical solvers behind the linear models: arrays in, coefficients out."""

from miserly.solvers.design import Design, RawDesign, TreeDesign, raw_weights
from miserly.solvers.discriminant import discriminant
from miserly.solvers.group_lasso import Fit, GroupLasso, least_squares
from miserly.solvers.newton_svm import newton_svm
from miserly.solvers.platt import platt
from miserly.solvers.standard import Standard, standardise

__all__ = [
    "Design",
    "Fit",
    "GroupLasso",
    "RawDesign",
    "Standard",
    "TreeDesign",
    "discriminant",
    "least_squares",
    "newton_svm",
    "platt",
    "raw_weights",
    "standardise",
]
