"""LambdaMART's gradients: pairs of one query, each weighted by what swapping it would change in NDCG."""

import math

import numpy as np
from numba import prange

from miserly.kernels.compiling import compiled


@compiled(parallel=True)
def lambda_gradients(gain, score, start, inverse_ideal, gradient, hessian):
    """Negative gradient and second derivative of Σ |ΔNDCG| log(1 + exp(s_j − s_i)) over pairs with i more relevant.

    Query q holds the rows `start[q]` to `start[q + 1]`; places are those of the present scores, ties in row order.
    """
    for q in prange(start.size - 1):
        first, last = start[q], start[q + 1]
        n = last - first
        gradient[first:last] = 0.0
        hessian[first:last] = 0.0
        place = np.empty(n, np.int64)
        place[np.argsort(-score[first:last], kind="mergesort")] = np.arange(n)
        for i in range(n):
            for j in range(n):
                worth = gain[first + i] - gain[first + j]
                if worth <= 0.0:
                    continue
                step = 1.0 / math.log2(place[i] + 2.0) - 1.0 / math.log2(place[j] + 2.0)
                change = worth * abs(step) * inverse_ideal[q]
                p = 1.0 / (1.0 + math.exp(min(score[first + i] - score[first + j], 500.0)))
                gradient[first + i] += change * p
                gradient[first + j] -= change * p
                hessian[first + i] += change * p * (1.0 - p)
                hessian[first + j] += change * p * (1.0 - p)
