"""Plans in other people's systems: MLflow's model format, feature views of Feast as acquisitions."""

from miserly.integrations._feast import feast_costs, feast_extractors
from miserly.integrations._mlflow import MlflowModel, save_mlflow
from miserly.integrations._mlflow import load_pyfunc as _load_pyfunc  # the name that MLflow calls

__all__ = ["MlflowModel", "feast_costs", "feast_extractors", "save_mlflow"]
_ = _load_pyfunc
