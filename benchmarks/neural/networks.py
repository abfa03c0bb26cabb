"""What both methods share: masked inputs in groups, the networks, pretraining on random masks, early stopping."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.neural.exchange import groups_of

HIDDEN, DROPOUT, BATCH, RATE, LEAST_RATE = 128, 0.3, 128, 1e-3, 1e-6
PATIENCE, FACTOR, MOST_EPOCHS, MOST_PURCHASES = 5, 0.2, 100, 35


class Inputs:
    """From a table to what networks read: standardised numbers, one column per category, marks of missing values."""

    def __init__(self, X: np.ndarray, needs: np.ndarray, categories: np.ndarray) -> None:
        self.known = [np.unique(X[~np.isnan(X[:, f]), f]) if categories[f] else None for f in range(X.shape[1])]
        self.misses = np.isnan(X).any(axis=0)
        self.mean = np.nan_to_num(np.nanmean(X, axis=0))
        spread = np.nan_to_num(np.nanstd(X, axis=0))
        self.spread = np.where(spread > 1e-3, spread, 1.0)
        self.groups = groups_of(needs)
        group = {row.tobytes(): g for g, row in enumerate(self.groups)}
        of_feature = [group.get(row.tobytes(), len(self.groups)) for row in needs]  # the last: free
        self.group_of_column = torch.tensor([of_feature[f] for f, _ in self._columns(X[:1])])

    def _columns(self, X: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        for f, values in enumerate(X.T):
            known = self.known[f]
            if known is not None:
                yield from ((f, values == v) for v in known)
            else:
                yield f, np.nan_to_num((values - self.mean[f]) / self.spread[f])
            if self.misses[f]:
                yield f, np.isnan(values)

    def read(self, X: np.ndarray) -> Tensor:
        return torch.tensor(np.stack([c for _, c in self._columns(X)], axis=1), dtype=torch.float32)


@dataclass
class Groups:
    """What is owned (rows × acquisitions), and what follows from it."""

    sets: Tensor  # groups × acquisitions
    prices: Tensor
    group_of_column: Tensor

    def known(self, owned: Tensor) -> Tensor:
        """Rows × groups: 1 where all that the group needs is owned."""
        return ((1 - owned) @ self.sets.T == 0).float()

    def price(self, owned: Tensor) -> Tensor:
        """Rows × groups: what is still to be paid."""
        return ((1 - owned) * self.prices) @ self.sets.T

    def buy(self, owned: Tensor, group: Tensor) -> Tensor:
        return torch.maximum(owned, self.sets[group])

    def masked(self, x: Tensor, known: Tensor) -> Tensor:
        """Values of known groups (softly known ones in part) and the mask; free columns are always known."""
        every = torch.cat([known, torch.ones(len(known), 1)], dim=1)
        return torch.cat([x * every[:, self.group_of_column], known], dim=1)

    def random(self, n: int) -> Tensor:
        """Owned after a uniformly random number of groups."""
        chosen = (torch.rand(n, len(self.sets)) > torch.rand(n, 1)).float()
        return (chosen @ self.sets > 0).float()


def network(n_inputs: int, n_outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(n_inputs, HIDDEN),
        nn.ReLU(),
        nn.Dropout(DROPOUT),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(),
        nn.Dropout(DROPOUT),
        nn.Linear(HIDDEN, n_outputs),
    )


def batches(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Random batches; the last, smaller one is dropped where there are others."""
    order = torch.randperm(len(x))
    for first in range(0, max(1, len(x) - BATCH + 1), BATCH):
        at = order[first : first + BATCH]
        yield x[at], y[at]


class EarlyStopping:
    """Divides the rate of learning at a plateau, keeps the best networks, and counts the plateaus."""

    def __init__(self, networks: nn.ModuleList, n_plateaus: int = 1, least_rate: float = LEAST_RATE) -> None:
        self.networks, self._left = networks, n_plateaus
        self.optimiser = torch.optim.Adam(networks.parameters(), lr=RATE, fused=True)
        self._scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimiser, factor=FACTOR, patience=PATIENCE, min_lr=least_rate
        )
        self._bad, self._best = 0, deepcopy(networks.state_dict())

    def plateau(self, loss: float) -> bool:
        """After an epoch: whether its loss has not fallen for too long; then the rate begins anew."""
        self._scheduler.step(loss)
        if loss == self._scheduler.best:
            self._bad, self._best = 0, deepcopy(self.networks.state_dict())
        else:
            self._bad += 1
        if self._bad <= PATIENCE + 1:
            return False
        self._bad, self._left = 0, self._left - 1
        for group in self.optimiser.param_groups:
            group["lr"] = RATE
        return True

    @property
    def over(self) -> bool:
        return self._left <= 0

    def restore(self) -> None:
        """The networks as they were best."""
        self.networks.load_state_dict(self._best)
        self.networks.eval()


def pretrain(predictor: nn.Module, groups: Groups, train: tuple[Tensor, Tensor], early: tuple[Tensor, Tensor]) -> None:
    """Train a predictor on uniformly random masks."""
    loss_of = nn.CrossEntropyLoss()
    stopping = EarlyStopping(nn.ModuleList([predictor]))
    x_early = groups.masked(early[0], groups.known(groups.random(len(early[0]))))
    for _ in range(MOST_EPOCHS):
        predictor.train()
        for x, y in batches(*train):
            stopping.optimiser.zero_grad()
            loss_of(predictor(groups.masked(x, groups.known(groups.random(len(x))))), y).backward()
            stopping.optimiser.step()
        predictor.eval()
        with torch.no_grad():
            loss = loss_of(predictor(x_early), early[1]).item()
        if stopping.plateau(loss):
            break
    stopping.restore()


def entropy(logits: Tensor) -> Tensor:
    log_p = torch.log_softmax(logits, dim=1)
    return -(log_p.exp() * log_p).sum(dim=1)


Choose = Callable[[Tensor, Tensor, Tensor], Tensor]  # value per price, from values, what is owned, and logits


def walk(
    predictor: nn.Module, choose: Choose, groups: Groups, x: Tensor, most: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Before each purchase and at the end: the logits, the group bought next (−1: nothing more) and its value per
    price."""
    owned = torch.zeros(len(x), len(groups.prices))
    for step in range(most + 1):
        known = groups.known(owned)
        logits = predictor(groups.masked(x, known))
        rate = choose(x, owned, logits).masked_fill(known > 0, -torch.inf)
        best, group = rate.max(dim=1)
        done = (known.sum(dim=1) == known.shape[1]) | (step == most)
        yield logits, torch.where(done, -1, group), torch.where(done, -torch.inf, best)
        owned = torch.where(done[:, None], owned, groups.buy(owned, group))
