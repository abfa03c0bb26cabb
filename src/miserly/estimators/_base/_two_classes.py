"""Classifiers that know two classes only, the second of which is to be found."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from miserly.estimators._base._base import PlanClassifier


class TwoClasses(PlanClassifier):
    """A classifier for two classes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _find_classes(self, y: np.ndarray) -> np.ndarray:
        classes = super()._find_classes(y)
        if len(classes) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}. "
                f"{type(self).__name__} tells one class from another; for several, use CSTCClassifier."
            )
        return classes
