"""Miserly: machine learning under a test-time budget.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

_HOME = {
    "CostTable": "miserly.costs",
    "LinearPrice": "miserly.costs",
    "Ledger": "miserly.costs",
    "Plan": "miserly.plan",
    "load_plan": "miserly.plan",
    "Menu": "miserly.plan",
    "load_menu": "miserly.plan",
    "cascade": "miserly.plan",
    "put_in_front": "miserly.plan",
    "PlanFileError": "miserly.plan",
    "AutoMiserClassifier": "miserly.auto",
    "AutoMiserRegressor": "miserly.auto",
    "AutoMiserRanker": "miserly.auto",
    "GreedyMiserRegressor": "miserly.estimators",
    "GreedyMiserClassifier": "miserly.estimators",
    "GreedyMiserRanker": "miserly.estimators",
    "AFRClassifier": "miserly.estimators",
    "ActiveClassifier": "miserly.estimators",
    "ActiveRegressor": "miserly.estimators",
    "AnytimeMiserRegressor": "miserly.estimators",
    "AnytimeMiserClassifier": "miserly.estimators",
    "ASTCRegressor": "miserly.estimators",
    "ASTCClassifier": "miserly.estimators",
    "CSTCRegressor": "miserly.estimators",
    "CSTCClassifier": "miserly.estimators",
    "CSCCClassifier": "miserly.estimators",
    "CronusClassifier": "miserly.estimators",
    "CronusRegressor": "miserly.estimators",
    "CompressedSVC": "miserly.estimators",
    "FastFrugalTreeClassifier": "miserly.estimators",
    "tree_dictionary": "miserly.estimators",
    "PricedPipeline": "miserly.estimators",
    "BinnedDataset": "miserly.boosting",
    "import_trees": "miserly.boosting",
    "import_plan": "miserly.boosting",
    "seen_rows": "miserly.boosting",
    "SeenRowsWarning": "miserly.boosting",
    "read_table": "miserly.datasets",
    "frontier": "miserly.frontiers",
    "Frontier": "miserly.frontiers",
    "compare": "miserly.frontiers",
    "Comparison": "miserly.frontiers",
    "extractor": "miserly.runtime",
    "OnDemand": "miserly.runtime",
    "BadRow": "miserly.runtime",
    "Cache": "miserly.runtime",
    "RedisCache": "miserly.runtime",
    "SpendCap": "miserly.runtime",
    "Extractor": "miserly.runtime",
    "profile": "miserly.runtime",
    "advise": "miserly.runtime",
    "Advice": "miserly.runtime",
}
_PACKAGES = (
    "runtime",
    "baselines",
    "batch",
    "checks",
    "costs",
    "datasets",
    "distributed",
    "integrations",
    "metrics",
    "plan",
    "report",
    "serve",
)

__all__ = [*_HOME, *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _PACKAGES:
        return import_module(f"miserly.{name}")
    raise AttributeError(f"module 'miserly' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
