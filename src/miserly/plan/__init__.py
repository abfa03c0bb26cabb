"""What every model ends as: a dictionary of weak learners and a small graph of linear scorers over it."""

from miserly.plan.dictionary import Dictionary, Kernels, PolynomialKernels, RawFeatures, RBFKernels, Trees, stack_trees
from miserly.plan.file import PlanFileError, load_plan
from miserly.plan.in_turn import in_turn
from miserly.plan.node import EXIT, Gate, Node
from miserly.plan.plan import Plan
from miserly.plan.run import Run
from miserly.plan.walk import ListWalk, Walk

__all__ = [
    "EXIT",
    "Dictionary",
    "Gate",
    "Kernels",
    "ListWalk",
    "Node",
    "Plan",
    "PlanFileError",
    "PolynomialKernels",
    "RBFKernels",
    "RawFeatures",
    "Run",
    "Trees",
    "Walk",
    "in_turn",
    "load_plan",
    "stack_trees",
]
