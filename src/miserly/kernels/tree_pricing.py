"""What splits cost while a tree grows, charged to the model or to rows, and what is left of a tree that must pay."""

import numpy as np

from miserly.kernels.compiling import inner

N_PLANES = 8  # bit planes of the counter of owners: 255 rows between two readings


@inner
def price_for_model(features, needs, price, owned, repeat, prices):
    """What some features cost the model: the full price of what is not owned, a part of it for what is."""
    pointer, acquisitions = needs
    for f in features:
        total = 0.0
        for j in range(pointer[f], pointer[f + 1]):
            a = acquisitions[j]
            total += (repeat if owned[a] else 1.0) * price[a]
        prices[f] = total


@inner
def price_for_rows(lacking, weight, n_rows, needs, price, repeat, prices):
    """What each feature costs the rows of a node, per row of all rows: those that lack an acquisition pay for it."""
    pointer, acquisitions = needs
    for f in range(prices.size):
        total = 0.0
        for j in range(pointer[f], pointer[f + 1]):
            a = acquisitions[j]
            payers = float(lacking[a])
            if repeat != 0.0:
                payers += repeat * (weight - lacking[a])
            total += price[a] * (payers / n_rows)
        prices[f] = total


@inner
def divide_lacking(owners, rows, weight, lacking, part, planes):
    """Of what the rows of a node lack, what those of one child lack: counted only where some rows of the node own an
    acquisition and some do not. Owners of 64 acquisitions are added at once, in bit planes."""
    n = rows.size
    most = (1 << N_PLANES) - 1
    for word in range(owners.shape[1]):
        first = 64 * word
        last = min(first + 64, lacking.size)
        some = False
        for a in range(first, last):
            some |= 0 < lacking[a] < weight
            part[a] = 0 if lacking[a] == 0 else n
        if not some:
            continue
        for start in range(0, n, most):
            for k in range(N_PLANES):
                planes[k] = 0
            for i in range(start, min(start + most, n)):
                carry = owners[rows[i], word]
                for k in range(N_PLANES):
                    both = planes[k] & carry
                    planes[k] ^= carry
                    carry = both
            for a in range(first, last):
                if 0 < lacking[a] < weight:
                    for k in range(N_PLANES):
                        part[a] -= np.int64((planes[k] >> np.uint64(a - first)) & np.uint64(1)) << k


@inner
def buy(feature, split, by_path, lacking, n_rows, needs, owned, purchases, n_purchases):
    """Buy what a split lacks, for the model or for the rows of the node."""
    pointer, acquisitions = needs
    for j in range(pointer[feature], pointer[feature + 1]):
        a = acquisitions[j]
        if (by_path and lacking[a] > 0) or (not by_path and not owned[a]):
            bought = purchases[n_purchases]
            bought.split = split
            bought.acquisition = a
            bought.share = lacking[a] / n_rows if by_path else 1.0
            n_purchases += 1
            if by_path:
                lacking[a] = 0
            else:
                owned[a] = True
    return n_purchases


@inner
def prune(splits, n_splits, nodes, purchases, n_purchases, worth, number):
    """Take back every split that does not pay together with all below it; what stays is numbered through.

    Returns the numbers of splits and purchases left. New numbers are never above the old ones, so all is done in place.
    """
    for node in range(2 * n_splits + 1):
        worth[node] = 0.0
        number[node] = -1
    for i in range(n_splits - 1, -1, -1):
        split = splits[i]
        below = worth[split.left] + worth[split.left + 1]
        worth[split.node] = max(0.0, split.gain - split.price + below)
    number[0] = n_kept = n_read = n_bought = 0
    for i in range(n_splits):
        node = splits[i].node
        stays = number[node] >= 0 and worth[node] > 0.0
        while n_read < n_purchases and purchases[n_read].split == i:
            if stays:
                purchases[n_bought] = purchases[n_read]
                purchases[n_bought].split = n_kept
                n_bought += 1
            n_read += 1
        if stays:
            old, new = splits[i].left, 2 * n_kept + 1
            splits[n_kept] = splits[i]
            splits[n_kept].node = number[node]
            splits[n_kept].left = new
            for side in range(2):
                number[old + side] = new + side
                nodes[new + side] = nodes[old + side]
            n_kept += 1
    return n_kept, n_bought


@inner
def own(splits, nodes, purchases, rows, owners, root_lacking):
    """The rows of a node own from now on what its split bought."""
    for bought in purchases:
        node = nodes[splits[bought.split].node]
        word, bit = bought.acquisition // 64, np.uint64(1) << np.uint64(bought.acquisition % 64)
        for i in range(node.first, node.last):
            if owners[rows[i], word] & bit == 0:
                owners[rows[i], word] |= bit
                root_lacking[bought.acquisition] -= 1
