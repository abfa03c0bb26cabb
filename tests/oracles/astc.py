"""ASTC by naive least squares on the data themselves, and forward selection by incremental QR."""

import itertools
import math

import numpy as np


def residual(H, y, p, columns, ridge=0.0):
    """What a weighted least squares fit with an intercept leaves: (sum of squares, predictions of all rows).

    A ridge is so many more rows for each column, which hold its unit vector and the target zero.
    """
    A = np.column_stack([np.ones(len(H)), H[:, sorted(columns)]])
    more = np.sqrt(ridge) * np.eye(A.shape[1])[1:]
    root = np.sqrt(p)[:, None]
    left = np.concatenate([A * root, more])
    right = np.concatenate([y * root, np.zeros((len(more), y.shape[1]))])
    beta = np.linalg.lstsq(left, right, rcond=None)[0]
    return float(((right - left @ beta) ** 2).sum()), A @ beta


class NaiveASTC:
    """The tree for penalty 0: what is free is always used, so a node is known by what it owns.

    A node fits what its parent leaves if there is a ridge; if not, it fits y itself, which must come to the same.
    """

    def __init__(self, H, y, needs, prices, fees, budgets, least, rule="half", temperature=None, ridge=0.0):
        self.H, self.y, self.ridge = (H - H.mean(axis=0)) / H.std(axis=0), y.reshape(len(y), -1), ridge
        self.needs, self.prices, self.fees, self.budgets = needs, prices, fees, budgets
        self.least, self.rule, self.temperature = least, rule, temperature
        self.nodes = {}
        free = frozenset(a for a, p in prices.items() if not p)
        self.grow(np.ones(len(H)), np.zeros_like(self.y), free, frozenset(), 0, 0)

    def grow(self, p, before, owned, chosen, level, number):
        before = before if self.ridge else np.zeros_like(self.y)
        chosen, owned = self.buy(p, self.y - before, owned, chosen, self.budgets[level])
        prediction = before + residual(self.H, self.y - before, p, chosen, self.ridge)[1]
        route = prediction[:, 0] / self.y.std()
        cut = self.threshold(route, p) if level + 1 < len(self.budgets) else None
        self.nodes[number] = {"owned": owned, "chosen": chosen, "prediction": prediction, "p": p, "cut": cut}
        if cut is None:
            return
        up = (route > cut) * 1.0 if self.temperature is None else 1 / (1 + np.exp(-(route - cut) / self.temperature))
        self.grow(p * up, prediction, owned, chosen, level + 1, 2 * number + 1)
        self.grow(p * (1 - up), prediction, owned, chosen, level + 1, 2 * number + 2)

    def buy(self, p, y, owned, chosen, budget):
        bought, fees = frozenset(), 0.0
        while True:
            columns = [j for j in range(self.H.shape[1]) if j not in chosen]
            free = {j for j in columns if not self.lacks(j, owned) and not self.fees[j]}
            chosen = chosen | free
            now, _ = residual(self.H, y, p, chosen, self.ridge)
            best, found = 1e-9 * now, None
            for j in columns:
                if j in free:
                    continue
                lacks = self.lacks(j, owned)
                members = {i for i in columns if self.lacks(i, owned) <= lacks and not self.fees[i]} - free
                members = {j} if self.fees[j] else members
                price = sum(self.prices[a] for a in lacks) + self.fees[j]
                whole = math.fsum([*(self.prices[a] for a in bought | lacks), fees, self.fees[j]])
                gain = now - residual(self.H, y, p, chosen | members, self.ridge)[0]
                if whole <= budget and gain > 1e-9 * now and gain / price > best:
                    best, found = gain / price, j
            if found is None:
                return chosen, owned
            bought, owned = bought | self.lacks(found, owned), owned | self.lacks(found, owned)
            if self.fees[found]:
                fees, chosen = fees + self.fees[found], chosen | {found}

    def lacks(self, j, owned):
        return frozenset(self.needs[j]) - owned

    def threshold(self, route, p):
        """Try every place between two distinct values."""
        values = np.unique(route[p > 0])
        best, found = math.inf, None
        scale = 1.0 if self.rule == "half" else (p * (route - np.average(route, weights=p)) ** 2).sum()
        for low, high in itertools.pairwise(values):
            if high - low <= 1e-9 * (values[-1] - values[0]):
                continue
            cut = (low + high) / 2
            sides = [side & (p > 0) for side in (route <= cut, route > cut)]
            if min(p[side].sum() for side in sides) < self.least:
                continue
            if self.rule == "half":
                badness = abs(p[sides[0]].sum() / p.sum() - 0.5)
            else:
                means = [np.average(route[side], weights=p[side]) for side in sides]
                badness = sum((p[side] * (route[side] - m) ** 2).sum() for side, m in zip(sides, means))
            if badness < best - 1e-9 * scale:
                best, found = badness, cut
        return found


class QRSelection:
    """Columns orthogonalised one by one against the intercept and those chosen before: equation (11) of the paper."""

    def __init__(self, H, y, p):
        root = np.sqrt(p / p.sum())
        self.A, self.r = H * root[:, None], y.reshape(len(y), -1) * root[:, None]
        self.Q = [root]
        self.r = self.r - np.outer(root, root @ self.r)
        self.chosen = []

    def orthogonal(self, j):
        q = self.A[:, j].copy()
        for _ in range(2):
            for other in self.Q:
                q -= other * (other @ q)
        return q / np.linalg.norm(q)

    def gain(self, j):
        return float(((self.orthogonal(j) @ self.r) ** 2).sum())

    def add(self, j):
        q = self.orthogonal(j)
        self.r = self.r - np.outer(q, q @ self.r)
        self.Q.append(q)
        self.chosen.append(j)
