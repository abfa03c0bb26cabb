"""What every model ends as: a dictionary of weak learners and a small graph of linear scorers over it."""

from miserly.plan._cascade import cascade, put_in_front
from miserly.plan._cascade import joined as joined
from miserly.plan._certificate import Certificate
from miserly.plan._contributions import Contribution, Contributions
from miserly.plan._dictionary import (
    Chi2Kernels,
    Dictionary,
    Kernels,
    PolynomialKernels,
    RawFeatures,
    RBFKernels,
    Trees,
    stack_trees,
)
from miserly.plan._file import PlanFileError, load_plan
from miserly.plan._information import gains_of_unknowns as gains_of_unknowns
from miserly.plan._lazy import LazyPlan
from miserly.plan._lazy_rule import Lazy
from miserly.plan._links import labels as labels
from miserly.plan._links import probabilities as probabilities
from miserly.plan._links import sigmoid as sigmoid
from miserly.plan._measured import measured_prices as measured_prices
from miserly.plan._menu import Choice as Choice
from miserly.plan._menu import Menu, load_menu
from miserly.plan._mistakes import as_error_costs as as_error_costs
from miserly.plan._mistakes import least_expected as least_expected
from miserly.plan._mistakes import mistakes_of as mistakes_of
from miserly.plan._node import EXIT, Gate, Node
from miserly.plan._pictures import draw as draw
from miserly.plan._plan import Budget as Budget
from miserly.plan._plan import Charge as Charge
from miserly.plan._plan import Plan
from miserly.plan._policy import PolicyPlan
from miserly.plan._policy_arrays import Policy
from miserly.plan._policy_walk import Offer as Offer
from miserly.plan._policy_walk import PolicyWalk as PolicyWalk
from miserly.plan._profile import Histogram as Histogram
from miserly.plan._profile import Promise as Promise
from miserly.plan._profile import TrainingProfile as TrainingProfile
from miserly.plan._profile import predictions_and_scores as predictions_and_scores
from miserly.plan._profile import quality_of as quality_of
from miserly.plan._read import read_model as read_model
from miserly.plan._reprice import Repricing
from miserly.plan._rule import confidence_columns as confidence_columns
from miserly.plan._rule import rule_value as rule_value
from miserly.plan._run import Run
from miserly.plan._validation import as_matrix as as_matrix
from miserly.plan._validation import missing as missing
from miserly.plan._validation import refuse_missing as refuse_missing
from miserly.plan._version import content_hash as content_hash
from miserly.plan._walk import ListWalk, Walk

__all__ = [
    "EXIT",
    "Certificate",
    "Chi2Kernels",
    "Contribution",
    "Contributions",
    "Dictionary",
    "Gate",
    "Kernels",
    "Lazy",
    "LazyPlan",
    "ListWalk",
    "Menu",
    "Node",
    "Plan",
    "PlanFileError",
    "Policy",
    "PolicyPlan",
    "PolynomialKernels",
    "RBFKernels",
    "RawFeatures",
    "Repricing",
    "Run",
    "Trees",
    "Walk",
    "cascade",
    "load_menu",
    "load_plan",
    "put_in_front",
    "stack_trees",
]
