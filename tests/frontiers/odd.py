"""Estimators of other people: they predict and tell costs, have no plan, and misbehave on request."""

import os
import signal
import time

import numba
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin


class Odd(RegressorMixin, BaseEstimator):
    """Predicts its level; what `accident` says happens at level 2, the others take a moment."""

    def __init__(self, level=0, accident=None, n_jobs=None):
        self.level = level
        self.accident = accident
        self.n_jobs = n_jobs

    def fit(self, X, y):
        if self.level == 2 and self.accident == "killed":
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        if self.level == 2 and self.accident == "mistake":
            raise ValueError("two is not possible")
        self.process_, self.threads_ = os.getpid(), numba.get_num_threads()
        return self

    def predict(self, X):
        return np.full(len(X), float(self.level))

    def predict_cost(self, X):
        return np.full(len(X), 10.0 - self.level)
