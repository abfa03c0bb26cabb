"""One boosting round in one call: every tree from its first histogram to the scores that its leaves change.

The rules are those of the split-by-split grower in `boosting`, which runs where rows are remote; both give the same
bits. Gradients are packed as in `kernels.histograms`. Nothing here starts a thread.

An open leaf has a slot: its histograms, the best split of every feature, and by path its prices. A slot is used again
as soon as its leaf is split. To keep compiling short each helper takes only the arrays that it needs.
"""

import numpy as np

from miserly.kernels.compiling import compiled, inner
from miserly.kernels.histograms import (
    AHEAD,
    BYTE,
    COUNT_MASK,
    FEW_LANES,
    LANES,
    MISSING,
    N_BINS,
    add_row,
    partition,
    prefetch,
    search_histogram,
    sum_packed,
)
from miserly.kernels.tree_pricing import buy, divide_lacking, own, price_for_model, price_for_rows, prune
from miserly.kernels.tree_values import (
    add_leaves,
    begin_tree,
    leaf_steps,
    round_to_quanta,
    squared_error,
    write_table,
)

LEAST_GAIN = 1e-12  # of a node's squared error: less is rounding, not gain
SLACK = 1.0 + 1e-9  # a bound on gains must not fall short by rounding
CLOSED = -1.0  # the bound of a node that is not split any more
OUT_OF_SLOTS = -2
NOT_KEPT = -1

NODE = np.dtype(
    [
        ("first", np.int64),  # its rows are those from place `first` to `last` in the order of partition
        ("last", np.int64),
        ("total", np.int64),  # packed sum of gradients and counts
        ("squares", np.int64),  # sum of squared quantised gradients: below 2⁶² by the choice of the quantum
        ("bound", np.float64),  # no split can gain more
        ("best", np.float64),  # best gain less price
        ("feature", np.int64),  # and its feature
        ("slot", np.int64),
        ("depth", np.int64),
    ]
)
CANDIDATE = np.dtype(
    [
        ("gain", np.float64),  # best raw gain of a feature in a leaf
        ("cut", np.int32),
        ("missing_right", np.bool_),
        ("counted", np.bool_),  # whether the slot holds the feature's histogram
    ],
    align=True,
)
SPLIT = np.dtype(
    [
        ("gain", np.float64),
        ("price", np.float64),
        ("node", np.int32),
        ("left", np.int32),
        ("feature", np.int32),
        ("cut", np.int32),
        ("missing_right", np.bool_),
    ],
    align=True,
)
PURCHASE = np.dtype([("share", np.float64), ("split", np.int32), ("acquisition", np.int32)], align=True)


@inner
def _count(words, n_bins, rows, packed, wanted, histograms, spare):
    """Histograms of the wanted features of one node; a tile of eight at once if more than three are wanted.

    A tile is counted where it stays if all of it is wanted, else beside, since features counted before must not change.
    """
    n = rows.size
    last_row = np.uint64(n - 1)
    for tile in range(words.shape[0]):
        first = tile * LANES
        last = min(first + LANES, n_bins.size)
        n_wanted = 0
        for f in range(first, last):
            n_wanted += wanted[f]
        if n_wanted == 0:
            continue
        column = words[tile]
        in_place = n_wanted == last - first
        h8 = histograms[first : first + LANES] if in_place else spare
        for f in range(first, last):
            for b in range(n_bins[f]):
                h8[f - first, b] = 0
            h8[f - first, MISSING] = 0
        if n_wanted <= FEW_LANES:
            for f in range(first, last):
                if wanted[f]:
                    shift = np.uint64(8 * (f - first))
                    h = h8[f - first]
                    for i in range(n):
                        h[(column[rows[i]] >> shift) & BYTE] += packed[i]
        elif n == column.size:
            for i in range(n):
                add_row(h8, column[i], packed[i])
        else:
            for i in range(n):
                prefetch(column, rows[min(np.uint64(i + AHEAD), last_row)])  # type: ignore[call-arg]
                add_row(h8, column[rows[i]], packed[i])
        if not in_place:
            for f in range(first, last):
                if wanted[f]:
                    for b in range(N_BINS):
                        histograms[f, b] = h8[f - first, b]


@inner
def _search(histograms, n_bins, total, min_rows, scale, work, wanted, found):
    """Best split of each feature whose histogram has just been counted."""
    for f in range(n_bins.size):
        if wanted[f]:
            gain, cut, right = search_histogram(histograms[f], n_bins[f], total, min_rows, scale, work)
            best = found[f]
            best.gain = gain
            best.cut = cut
            best.missing_right = right
            best.counted = True


@inner
def _choose(node, found, prices):
    """The node's best feature at present prices."""
    best = -np.inf
    feature = 0
    least = LEAST_GAIN * node.bound
    for f in range(found.size):
        gain = found[f].gain
        if found[f].counted and gain > least and prices[f] < node.bound and gain - prices[f] > best:
            best = gain - prices[f]
            feature = f
    node.best = best
    node.feature = feature


@inner
def _set_node(node, first, last, total, squares, depth, min_rows, scale, closed):
    """A new node; one that is not split any more has no slot."""
    node.first = first
    node.last = last
    node.total = total
    node.squares = squares
    node.depth = depth
    node.slot = -1
    node.best = -np.inf
    is_open = not closed and (total & COUNT_MASK) >= 2 * min_rows
    node.bound = scale * squared_error(total, squares) * SLACK if is_open else CLOSED


@inner
def _mark(allowed, prices, bound, found, wanted):
    """Mark the allowed features that might pay and are not counted yet."""
    n_wanted = 0
    for f in range(allowed.size):
        wanted[f] = allowed[f] and prices[f] < bound and not found[f].counted
        n_wanted += wanted[f]
    return n_wanted


@inner
def _subtract(n_bins, parent, small, wanted, large):
    for f in range(n_bins.size):
        if wanted[f]:
            for b in range(n_bins[f]):
                large[f, b] = parent[f, b] - small[f, b]
            large[f, MISSING] = parent[f, MISSING] - small[f, MISSING]


@inner
def _grow_tree(
    words, n_bins, rows, packed, spare_rows, spare_packed, limits, scale, allowed,
    by_path, repeat, needs, needed_by, price, owned, prices, lacking, owners, root_lacking,
    histograms, found, nodes, splits, purchases, free, open_nodes, masks, planes, spare, work,
):  # fmt: skip
    """Grow one tree on packed gradients; returns the numbers of splits and purchases, or `OUT_OF_SLOTS`."""
    most_leaves, max_depth, min_rows = limits
    to_count, derived = masks[0], masks[1]
    n_rows, n_slots = rows.size, histograms.shape[0]
    for i in range(n_slots):
        free[i] = n_slots - 1 - i
    n_free = n_slots - 1
    total, squares = sum_packed(packed)
    scale = scale / max(1, total & COUNT_MASK)
    root, zero = nodes[0], np.int64(0)
    _set_node(root, zero, n_rows, total, squares, zero, min_rows, scale, max_depth == 0 or most_leaves < 2)
    n_open, n_splits, n_purchases = zero, zero, zero
    if root.bound >= 0.0:
        root.slot = 0
        if by_path:
            for a in range(root_lacking.size):
                lacking[0, a] = root_lacking[a]
            price_for_rows(root_lacking, n_rows, n_rows, needs, price, repeat, prices[0])
        for f in range(allowed.size):
            found[0, f].counted = False
        _mark(allowed, prices[0], root.bound, found[0], to_count)
        _count(words, n_bins, rows, packed, to_count, histograms[0], spare)
        _search(histograms[0], n_bins, total, min_rows, scale, work, to_count, found[0])
        _choose(root, found[0], prices[0])
        open_nodes[0] = 0
        n_open += 1
    while n_splits + 1 < most_leaves:
        best, at = -np.inf if by_path else 0.0, -1
        for i in range(n_open):
            net = nodes[open_nodes[i]].best
            if net > best or (at >= 0 and net == best and open_nodes[i] < open_nodes[at]):
                best, at = net, i
        if at < 0:
            break
        number = open_nodes[at]
        n_open -= 1
        open_nodes[at] = open_nodes[n_open]
        node, split, left = nodes[number], splits[n_splits], 2 * n_splits + 1
        s, f, first, last = node.slot, node.feature, node.first, node.last
        split.node, split.left, split.feature = number, left, f
        split.cut, split.missing_right, split.gain = found[s, f].cut, found[s, f].missing_right, found[s, f].gain
        split.price = prices[s if by_path else 0, f]
        before = n_purchases
        n_purchases = buy(f, n_splits, by_path, lacking[s], n_rows, needs, owned, purchases, n_purchases)
        n_left, total, squares = partition(
            words[f // LANES], f % LANES, rows[first:last], packed[first:last], split.cut, split.missing_right,
            spare_rows, spare_packed,
        )  # fmt: skip
        n_splits += 1
        is_last = n_splits + 1 >= most_leaves
        closed, middle, rest = is_last or node.depth + 1 == max_depth, first + n_left, node.total - total
        depth = node.depth + 1
        _set_node(nodes[left], first, middle, total, squares, depth, min_rows, scale, closed)
        _set_node(nodes[left + 1], middle, last, rest, node.squares - squares, depth, min_rows, scale, closed)
        if not by_path and n_purchases > before:
            for k in range(before, n_purchases):
                a = purchases[k].acquisition
                shared = needed_by[1][needed_by[0][a] : needed_by[0][a + 1]]
                price_for_model(shared, needs, price, owned, repeat, prices[0])
            for i in range(0 if is_last else n_open):
                other = nodes[open_nodes[i]]
                o = other.slot
                if _mark(allowed, prices[0], other.bound, found[o], to_count) > 0:
                    span = slice(other.first, other.last)
                    _count(words, n_bins, rows[span], packed[span], to_count, histograms[o], spare)
                    _search(histograms[o], n_bins, other.total, min_rows, scale, work, to_count, found[o])
                _choose(other, found[o], prices[0])
        swap = (rest & COUNT_MASK) < (total & COUNT_MASK)
        small, large = nodes[left + swap], nodes[left + 1 - swap]
        if large.bound < 0.0:
            free[n_free] = s
            n_free += 1
            continue
        if n_free == 0:
            return OUT_OF_SLOTS, n_purchases
        n_free -= 1
        t = free[n_free]
        small.slot, large.slot = t, s
        of_small, of_large = (t, s) if by_path else (0, 0)
        in_small, in_large = slice(small.first, small.last), slice(large.first, large.last)
        if by_path:
            n_small, n_large = small.last - small.first, large.last - large.first
            divide_lacking(owners, rows[in_small], n_small + n_large, lacking[s], lacking[t], planes)
            for a in range(root_lacking.size):
                lacking[s, a] -= lacking[t, a]
            price_for_rows(lacking[t], n_small, n_rows, needs, price, repeat, prices[t])
            price_for_rows(lacking[s], n_large, n_rows, needs, price, repeat, prices[s])
        for f in range(allowed.size):
            found[t, f].counted = False
            derived[f] = found[s, f].counted and allowed[f] and prices[of_large, f] < large.bound
            to_count[f] = derived[f] or (allowed[f] and prices[of_small, f] < small.bound)
            found[s, f].counted = derived[f]
        _count(words, n_bins, rows[in_small], packed[in_small], to_count, histograms[t], spare)
        if small.bound >= 0.0:
            _search(histograms[t], n_bins, small.total, min_rows, scale, work, to_count, found[t])
            _choose(small, found[t], prices[of_small])
            open_nodes[n_open] = left + swap
            n_open += 1
        else:
            free[n_free] = t
            n_free += 1
        _subtract(n_bins, histograms[s], histograms[t], derived, histograms[s])
        _search(histograms[s], n_bins, large.total, min_rows, scale, work, derived, found[s])
        if _mark(allowed, prices[of_large], large.bound, found[s], to_count) > 0:
            _count(words, n_bins, rows[in_large], packed[in_large], to_count, histograms[s], spare)
            _search(histograms[s], n_bins, large.total, min_rows, scale, work, to_count, found[s])
        _choose(large, found[s], prices[of_large])
        open_nodes[n_open] = left + 1 - swap
        n_open += 1
    return n_splits, n_purchases


@compiled(error_model="numpy")
def grow_round(
    outputs, words, n_bins, thresholds, y, scores, gradients, hessians, absent, flags, settings, limits, order,
    by_path, repeat, needs, needed_by, price, owned, prices, lacking, owners, root_lacking, allowed,
    histograms, found, nodes, splits, purchases, tables, counts, scales, lists, scratch,
):  # fmt: skip
    """Grow a tree for each output, keep it if it pays for its evaluation, and add its leaves to the scores.

    Returns how many outputs were done: fewer than asked for if more slots are needed. `counts` has for each output the
    numbers of splits (-1: the tree was not kept) and purchases, the number of splits before pruning, whether its values
    are whole quanta, and whether its gradients are exact differences.
    """
    steady, rounds_values, only_grow, row_bits = flags
    rate, l2, evaluation = settings
    rows, packed, spare_rows, spare_packed = order
    free, open_nodes, masks, number = lists
    planes, spare, work, worth = scratch
    feature, threshold, left, missing_right, value = tables
    for k in range(outputs.size):
        output, count = outputs[k], counts[k]
        scale, exact = begin_tree(y, scores[0], gradients[output], absent, steady, row_bits, rows, packed)
        scales[k] = scale
        quantum = 1.0 / scale
        n_splits, n_purchases = _grow_tree(
            words, n_bins, rows, packed, spare_rows, spare_packed, limits, 0.5 * quantum * quantum, allowed[k],
            by_path, repeat, needs, needed_by, price, owned, prices, lacking, owners, root_lacking,
            histograms, found, nodes[k], splits[k], purchases[k], free, open_nodes, masks, planes, spare, work,
        )  # fmt: skip
        count[2] = n_splits
        if by_path and n_splits != OUT_OF_SLOTS:
            n_splits, n_purchases = prune(
                splits[k], n_splits, nodes[k], purchases[k], n_purchases, worth, number
            )  # fmt: skip
        score = 0.0
        for i in range(n_splits):
            score += splits[k, i].gain - splits[k, i].price
        kept = only_grow or score > evaluation
        if n_splits == OUT_OF_SLOTS or not kept:
            if not by_path:
                for bought in purchases[k, :n_purchases]:
                    owned[bought.acquisition] = False
                for bought in purchases[k, :n_purchases]:
                    a = bought.acquisition
                    shared = needed_by[1][needed_by[0][a] : needed_by[0][a + 1]]
                    price_for_model(shared, needs, price, owned, repeat, prices[0])
            if n_splits == OUT_OF_SLOTS:
                return k
            count[0] = NOT_KEPT
            continue
        count[0], count[1], count[3], count[4] = n_splits, n_purchases, 0, exact
        if by_path:
            own(splits[k], nodes[k], purchases[k, :n_purchases], rows, owners, root_lacking)
        if only_grow:
            continue
        write_table(splits[k, :n_splits], thresholds, feature[k], threshold[k], left[k], missing_right[k], value[k])
        leaves = left[k, : 2 * n_splits + 1]
        gradient, hessian = gradients[output], hessians[output]
        leaf_steps(leaves, nodes[k], rows, packed, gradient, hessian, row_bits, rate, l2, value[k])
        if rounds_values:
            count[3] = round_to_quanta(leaves, scale, value[k], worth)
        add_leaves(leaves, nodes[k], rows, value[k], scores[output])
    return outputs.size
