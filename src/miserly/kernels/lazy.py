"""Sums of trees that stop buying once the answer is certain.

Of each tree a row knows between which values it must fall (`low`, `high`), whatever the values that are not bought turn
out to be, and what it is on average (`mean`: where a split is not known, both sides by their share of training rows).
All three come from the row's own values, so a tree whose splits are all known is exact.

The arguments come as tuples (made by `plan.LazyPlan`):
- trees: start (with the end), feature, threshold, left, missing_right, value, shares;
- edges: learners, pointer, output, weight, the constant of each output;
- offers: the group of each feature (features that need the same; -1: nothing), acquisitions of each group (pointer,
  numbers), prices;
- reading: how answers are decided, scale and offset of each output, and whether the next purchase is chosen by how much
  it may narrow the answer per price, or by the order of the trees.
"""

import math

import numpy as np

from miserly.kernels.compiling import compiled, inner
from miserly.kernels.links import _sigmoid
from miserly.kernels.policy import _add_exactly
from miserly.kernels.trees import _right

SIGN, LARGEST, ORDER = 0, 1, 2  # the sign of one score decides, the largest of several, or the order of rows
LOGISTIC, SOFTMAX, SHARES = 0, 1, 2  # how confidence is read
ROUNDING = 2.5e-16  # of one addition, and a margin


@inner
def _bound_tree(x, known, t, trees, low, high, mean, below, above, middle):
    """Between which values a tree falls, and its mean: from the leaves to the root, since children come later."""
    start, feature, threshold, left, missing_right, value, shares = trees
    first = start[t]
    for at in range(start[t + 1] - 1, first - 1, -1):
        i, a = at - first, left[at]
        if a == at:
            below[i] = above[i] = middle[i] = value[at]
            continue
        f, j = feature[at], a - first
        if known[f]:
            j += np.int64(_right(x[f], threshold[at], missing_right[at]))
            below[i], above[i], middle[i] = below[j], above[j], middle[j]
        else:
            below[i], above[i] = min(below[j], below[j + 1]), max(above[j], above[j + 1])
            m = shares[at] * middle[j] + (1.0 - shares[at]) * middle[j + 1]
            middle[i] = min(max(m, below[i]), above[i])
    low[t], high[t], mean[t] = below[0], above[0], middle[0]


@compiled
def look(x, known, trees, edges, low, high, mean, sums):
    """Bound the trees that are open still. `sums` is, for each output, the least, the largest and the mean score; the
    last line's first number is how much of it may be rounding. Returns the number of trees that are open."""
    start = trees[0]
    learners, pointer, output, weight, constant = edges
    longest = 0
    for t in range(start.size - 1):
        longest = max(longest, start[t + 1] - start[t])
    below, above, middle = np.empty(longest), np.empty(longest), np.empty(longest)
    for k in range(constant.size):
        sums[0, k] = sums[1, k] = sums[2, k] = constant[k]
    size, n_open = np.max(np.abs(constant)), 0
    for e in range(learners.size):
        t = learners[e]
        if low[t] < high[t]:
            _bound_tree(x, known, t, trees, low, high, mean, below, above, middle)
            n_open += 1 if low[t] < high[t] else 0
        for j in range(pointer[e], pointer[e + 1]):
            k, w = output[j], weight[j]
            sums[0, k] += w * (low[t] if w > 0 else high[t])
            sums[1, k] += w * (high[t] if w > 0 else low[t])
            sums[2, k] += w * mean[t]
            size += abs(w) * max(abs(low[t]), abs(high[t]))
    sums[3, 0] = size * (learners.size + 8) * ROUNDING
    return n_open


@compiled
def contends(sums, reading, contending):
    """Mark the outputs that may still win; returns whether the answer is certain."""
    kind, scale, offset = reading[0], reading[1], reading[2]
    slack, n = sums[3, 0], scale.size
    contending[:] = True
    if kind == ORDER:
        return False
    if kind == SIGN:
        border = -offset[0] / scale[0]
        slack += abs(border) * 4.0 * ROUNDING
        return sums[0, 0] > border + slack or sums[1, 0] < border - slack
    top, shift = 0, 0.0
    for k in range(n):
        shift = max(shift, abs(offset[k]))
        if scale[k] * sums[2, k] + offset[k] > scale[top] * sums[2, top] + offset[top]:
            top = k
    least, certain = scale[top] * sums[0, top] + offset[top], True
    for k in range(n):
        margin = (scale[k] + scale[top]) * slack + 8.0 * ROUNDING * shift
        contending[k] = k == top or scale[k] * sums[1, k] + offset[k] + margin >= least
        certain = certain and (k == top or not contending[k])
    return certain


@compiled
def is_sure(sums, reading, link, confidence):
    """Whether the most probable class has this probability, by the mean score."""
    if confidence > 1.0:
        return False
    scale, offset, n = reading[1], reading[2], reading[1].size
    if link == LOGISTIC:
        p = _sigmoid(scale[0] * sums[2, 0] + offset[0])
        return max(p, 1.0 - p) >= confidence
    top, total = -np.inf, 0.0
    for k in range(n):
        top = max(top, scale[k] * sums[2, k] + offset[k])
    if link == SHARES:
        return top >= confidence
    for k in range(n):
        total += math.exp(scale[k] * sums[2, k] + offset[k] - top)
    return 1.0 / total >= confidence


@inner
def _wanted(x, known, closed, t, trees, groups):
    """The group of the first split on a row's way that is not known and can be bought, or -1. Beyond what cannot be
    bought the row goes where most training rows went."""
    start, feature, threshold, left, missing_right, _, shares = trees
    at = start[t]
    while left[at] != at:
        f = feature[at]
        if known[f]:
            at = left[at] + np.int64(_right(x[f], threshold[at], missing_right[at]))
        elif closed[f]:
            at = left[at] + np.int64(shares[at] < 0.5)
        else:
            return groups[f]
    return -1


@compiled
def choose(x, known, closed, owned, had, low, high, contending, model, budget, paid):
    """The group to buy next, or -1; and whether one that was wanted did not fit the budget. Such groups are closed:
    what is bought meanwhile can only raise the total. What the row `had` at the start is not paid, evaluation costs
    `paid`."""
    trees, edges, offers, reading = model
    learners, pointer, output, weight, _ = edges
    groups, group_of, acquisition, prices = offers
    worth, blocked = np.zeros(group_of.size - 1), False
    spent, rest = paid, 0.0
    for a in range(prices.size):
        if owned[a] and not had[a]:
            spent, rest = _add_exactly(spent, rest, prices[a])
    while True:
        worth[:] = 0.0
        best = -1
        for e in range(learners.size):
            t = learners[e]
            if not low[t] < high[t]:
                continue
            width = 0.0
            for j in range(pointer[e], pointer[e + 1]):
                if contending[output[j]]:
                    width += abs(weight[j]) * (high[t] - low[t])
            if width > 0.0:
                g = _wanted(x, known, closed, t, trees, groups)
                if g >= 0:
                    worth[g] += width
                    if not reading[3]:
                        best = g
                        break
        if best < 0:
            most = -1.0
            for g in range(worth.size):
                if worth[g] > 0.0:
                    price = 0.0
                    for j in range(group_of[g], group_of[g + 1]):
                        price += 0.0 if owned[acquisition[j]] else prices[acquisition[j]]
                    rate = worth[g] / price if price > 0.0 else np.inf
                    if rate > most:
                        best, most = g, rate
        if best < 0:
            return -1, blocked
        h, r = spent, rest
        for j in range(group_of[best], group_of[best + 1]):
            if not owned[acquisition[j]]:
                h, r = _add_exactly(h, r, prices[acquisition[j]])
        if h + r <= budget:
            return best, blocked
        blocked = True
        for f in range(groups.size):
            closed[f] |= groups[f] == best


@compiled
def buy(group, known, closed, owned, offers, away):
    """Own what a group needs, and know the features that need no more. Features that are `away` stay unknown."""
    _, group_of, acquisition, _ = offers
    for j in range(group_of[group], group_of[group + 1]):
        owned[acquisition[j]] = True
    reveal(known, closed, owned, offers, away)


@compiled
def reveal(known, closed, owned, offers, away):
    """Know the features all of whose acquisitions are owned."""
    groups, group_of, acquisition, _ = offers
    arrives = np.ones(group_of.size - 1, np.bool_)
    for g in range(arrives.size):
        for j in range(group_of[g], group_of[g + 1]):
            arrives[g] &= owned[acquisition[j]]
    for f in range(groups.size):
        if not away[f] and not known[f] and groups[f] >= 0 and arrives[groups[f]]:
            known[f] = True


@compiled
def run_rows(X, first, end, model, limits, known_first, away, most_steps, owned, score, blocked, n_open):
    """Each row on its own, until its answer is certain or it cannot buy any more, or for `most_steps` purchases."""
    trees, edges, offers, reading = model
    budget, paid, confidence, link = limits
    n_trees, n_outputs = trees[0].size - 1, edges[4].size
    low, high, mean = np.empty(n_trees), np.empty(n_trees), np.empty(n_trees)
    sums, contending = np.empty((4, n_outputs)), np.empty(n_outputs, np.bool_)
    had = np.zeros(owned.shape[1], np.bool_)
    for i in range(first, end):
        low[:], high[:] = -np.inf, np.inf
        known, closed, step = known_first.copy(), away.copy(), 0
        while True:
            n_open[i] = look(X[i], known, trees, edges, low, high, mean, sums)
            certain = contends(sums, reading, contending)
            if certain or n_open[i] == 0 or step == most_steps or is_sure(sums, reading, link, confidence):
                break
            group, did_not_fit = choose(X[i], known, closed, owned[i], had, low, high, contending, model, budget, paid)
            blocked[i] |= did_not_fit
            if group < 0:
                break
            buy(group, known, closed, owned[i], offers, away)
            step += 1
        score[i] = sums[2]


@compiled
def undecided(least, most, slack, k, is_open):
    """Mark the rows whose place may matter still: those that may be among the first k, and whose score may be on either
    side of another's of these."""
    n = least.size
    for i in range(n):
        above = 0
        for j in range(n):
            above += 1 if least[j] - slack[j] > most[i] + slack[i] else 0
        is_open[i] = above < k
    inside = is_open.copy()
    for i in range(n):
        if inside[i]:
            is_open[i] = False
            for j in range(n):
                if j != i and inside[j]:
                    apart = least[j] - slack[j] > most[i] + slack[i] or least[i] - slack[i] > most[j] + slack[j]
                    is_open[i] |= not apart


@compiled
def run_list(X, rows, model, limits, k, known_first, away, most_steps, owned, score, blocked, n_open):
    """The rows of one query together: in each turn those whose place is undecided buy once."""
    trees, edges, offers, _ = model
    budget, paid = limits[0], limits[1]
    n, n_trees, n_outputs = rows.size, trees[0].size - 1, edges[4].size
    low, high, mean = np.full((n, n_trees), -np.inf), np.full((n, n_trees), np.inf), np.empty((n, n_trees))
    sums, contending = np.empty((n, 4, n_outputs)), np.ones(n_outputs, np.bool_)
    had = np.zeros(owned.shape[1], np.bool_)
    known, closed = np.empty((n, known_first.size), np.bool_), np.empty((n, known_first.size), np.bool_)
    is_open, is_stuck, is_new = np.ones(n, np.bool_), np.zeros(n, np.bool_), np.ones(n, np.bool_)
    for i in range(n):
        known[i], closed[i] = known_first, away
    step = 0
    while True:
        for i in range(n):
            if is_new[i]:
                n_open[rows[i]] = look(X[rows[i]], known[i], trees, edges, low[i], high[i], mean[i], sums[i])
        if step == most_steps:
            break
        undecided(sums[:, 0, 0], sums[:, 1, 0], sums[:, 3, 0], k, is_open)
        is_new[:] = False
        for i in range(n):
            if is_open[i] and not is_stuck[i] and n_open[rows[i]] > 0:
                r = rows[i]
                group, did_not_fit = choose(
                    X[r], known[i], closed[i], owned[r], had, low[i], high[i], contending, model, budget, paid
                )
                blocked[r] |= did_not_fit
                is_stuck[i] = group < 0
                if group >= 0:
                    buy(group, known[i], closed[i], owned[r], offers, away)
                    is_new[i] = True
        if not is_new.any():
            break
        step += 1
    for i in range(n):
        score[rows[i]] = sums[i, 2]
