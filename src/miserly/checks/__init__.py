"""The cost battery: what every plan and every cost-aware estimator must pass, ours and others'."""

from miserly.checks._estimators import ESTIMATOR_CHECKS, check_estimator_costs
from miserly.checks._plans import PLAN_CHECKS, check_plan

__all__ = ["ESTIMATOR_CHECKS", "PLAN_CHECKS", "check_estimator_costs", "check_plan"]
