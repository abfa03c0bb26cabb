"""Walks of a policy: what a row is worth as it is known, what each candidate would add per price, and what is bought.

One function looks at one row; the batch calls the same function for every row, so both give the same bits.

The arguments come as four tuples (made by `plan.Policy`):
- predictor: tree table, learners, pointer, output, weight, keep, prior, then level by number of known features, scale
  and offset by level and output, radius by level, and the link (0 identity, 1 logistic, 2 softmax);
- values: tree table, where the trees of each candidate begin (gain of one purchase, gain of two, price of the second),
  the constants of the same, and whether a candidate has the last two;
- offers: acquisitions of each candidate (pointer, numbers), its own features (pointer, places), acquisitions of each
  used feature (pointer, numbers), the prices;
- columns: the used features, and which of all features were missing in training.
"""

import math

import numpy as np

from miserly.kernels.compiling import compiled
from miserly.kernels.links import _sigmoid
from miserly.kernels.trees import _leaf, add_trees_to_row

BOUGHT_BUT_MISSING = -np.inf  # a value that was bought and is missing; NaN is one that was not bought
IDENTITY, LOGISTIC, SOFTMAX = 0, 1, 2


@compiled
def score_row(x, n_known, predictor, score, z):
    """Raw and calibrated scores of a row from what is known."""
    trees, learners, pointer, output, weight, keep, prior, level, scale, offset, radius, _ = predictor
    score[:] = prior
    nothing = np.empty(0), np.empty(0, np.bool_)
    add_trees_to_row(x, trees, learners, pointer, output, weight, keep, nothing[0], nothing[1], score)
    at = level[n_known]
    distance = 0.0
    for k in range(prior.size):
        distance = max(distance, abs(score[k] - prior[k]))
    for k in range(prior.size):
        z[k] = score[k]
        if distance < radius[at]:
            z[k] = prior[k] + (score[k] - prior[k]) * (distance / radius[at]) ** 2
        z[k] = z[k] * scale[at, k] + offset[at, k]


@compiled
def append_scores(x, first, link, z):
    """Write what the value trees read besides the features: probabilities and their entropy, or the number predicted.

    Returns the expected log-loss (the entropy), infinite for numbers: no purchase can save more."""
    if link == IDENTITY:
        for k in range(z.size):
            x[first + k] = z[k]
        return np.inf
    n = 1 if link == LOGISTIC else z.size
    if link == LOGISTIC:
        x[first] = _sigmoid(z[0])
    else:
        top = z[0]
        for k in range(1, n):
            top = max(top, z[k])
        total = 0.0
        for k in range(n):
            x[first + k] = math.exp(z[k] - top)
            total += x[first + k]
        for k in range(n):
            x[first + k] /= total
    entropy = 0.0
    for k in range(n):
        p = x[first + k]
        if p > 0.0:
            entropy -= p * math.log(p)
    if link == LOGISTIC and x[first] < 1.0:
        entropy -= (1.0 - x[first]) * math.log(1.0 - x[first])
    x[first + n] = entropy
    return entropy


@compiled(inline="always")
def _value(x, values, line):
    """The sum of one candidate's trees."""
    trees, first, bias, _ = values
    start, depth, feature, _, threshold, left, missing_right, value = trees
    total = bias[line]
    for t in range(first[line], first[line + 1]):
        total += value[_leaf(x, start[t], depth[t], feature, threshold, left, missing_right)]
    return total


@compiled
def rate_candidates(x, known, owned, barred, most, values, offers, gain, price, rate):
    """The expected drop of loss by each candidate, its price now, and the drop per price (-1: not on offer).

    A candidate is on offer if it gives a used feature that is not known and needs nothing that is barred. Where two
    purchases together have a better rate than the first alone, theirs counts.
    """
    n = rate.size
    acquisition_of, acquisition, feature_of, feature, _, _, prices = offers
    for c in range(n):
        gain[c], price[c], rate[c] = 0.0, 0.0, -1.0
        is_new, is_possible = False, True
        for j in range(feature_of[c], feature_of[c + 1]):
            is_new |= not known[feature[j]]
        for j in range(acquisition_of[c], acquisition_of[c + 1]):
            a = acquisition[j]
            if not owned[a]:
                price[c] += prices[a]
                is_possible &= not barred[a]
        if not (is_new and is_possible):
            continue
        gain[c] = min(most, max(0.0, _value(x, values, c)))
        rate[c] = gain[c] / price[c] if price[c] > 0.0 else np.inf
        if values[3][c] and price[c] > 0.0:
            both = min(most, max(0.0, _value(x, values, n + c)))
            rate[c] = max(rate[c], both / (price[c] + max(0.0, _value(x, values, 2 * n + c))))


@compiled
def choose(rate, owned, had, offers, tradeoff, budget, paid):
    """The candidate with the best rate of those that reach the trade-off and fit the budget, or -1; and whether one
    that reaches it did not fit. What the row `had` at the start is not paid, evaluation costs `paid`. Totals are summed
    in twice the precision, as the ledger's are exact."""
    acquisition_of, acquisition, _, _, _, _, prices = offers
    high, low = paid, 0.0
    if budget < np.inf:
        for a in range(prices.size):
            if owned[a] and not had[a]:
                high, low = _add_exactly(high, low, prices[a])
    best, blocked = -1, False
    for c in range(rate.size):
        if rate[c] < tradeoff:
            continue
        if budget < np.inf:
            h, e = high, low
            for j in range(acquisition_of[c], acquisition_of[c + 1]):
                if not owned[acquisition[j]]:
                    h, e = _add_exactly(h, e, prices[acquisition[j]])
            if h + e > budget:
                blocked = True
                continue
        if best < 0 or rate[c] > rate[best]:
            best = c
    return best, blocked


@compiled(inline="always")
def _add_exactly(high, low, term):
    total = high + term
    part = total - high
    return total, low + ((high - (total - part)) + (term - part))


@compiled
def reveal(values, x, known, owned, offers, columns):
    """Write the used features that are owned and not known yet; returns how many are known now."""
    _, _, _, _, needs_of, needs, _ = offers
    used, misses = columns
    n_known = 0
    for s in range(used.size):
        if not known[s]:
            arrives = True
            for j in range(needs_of[s], needs_of[s + 1]):
                arrives &= owned[needs[j]]
            if arrives:
                known[s] = True
                v = values[used[s]]
                x[used[s]] = BOUGHT_BUT_MISSING if v != v and misses[used[s]] else v
        n_known += known[s]
    return n_known


@compiled
def is_confident(x, first, link, z, confidence):
    """Whether the most probable class has this probability or more."""
    if link == IDENTITY:
        return False
    if link == LOGISTIC:
        return max(x[first], 1.0 - x[first]) >= confidence
    top = 0.0
    for k in range(z.size):
        top = max(top, x[first + k])
    return top >= confidence


@compiled
def walk_rows(X, first, end, model, limits, most_steps, barred, had, known, owned, score, z, blocked):
    """Walk some rows, each from what it owns and knows, until nothing pays, or for `most_steps` purchases; in place."""
    predictor, values, offers, columns = model
    tradeoff, confidence, budget, paid = limits
    link, n_features, n_outputs = predictor[11], X.shape[1], z.shape[1]
    n_candidates = values[3].size
    used, misses = columns
    gain, price, rate = np.empty(n_candidates), np.empty(n_candidates), np.empty(n_candidates)
    for i in range(first, end):
        x = np.full(n_features + n_outputs + 1, np.nan)
        for s in range(used.size):
            if known[i, s]:
                v = X[i, used[s]]
                x[used[s]] = BOUGHT_BUT_MISSING if v != v and misses[used[s]] else v
        step = 0
        while True:
            n_known = reveal(X[i], x, known[i], owned[i], offers, columns)
            score_row(x, n_known, predictor, score[i], z[i])
            if step == most_steps[i]:
                break
            most = append_scores(x, n_features, link, z[i])
            if is_confident(x, n_features, link, z[i], confidence):
                break
            rate_candidates(x, known[i], owned[i], barred, most, values, offers, gain, price, rate)
            c, is_blocked = choose(rate, owned[i], had[i], offers, tradeoff, budget, paid)
            if c < 0:
                blocked[i] = is_blocked
                break
            for j in range(offers[0][c], offers[0][c + 1]):
                owned[i, offers[1][j]] = True
            step += 1
