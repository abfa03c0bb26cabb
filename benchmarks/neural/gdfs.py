"""GDFS: a selector whose relaxed choice of the next group is trained by the loss of the prediction after it."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.neural import networks as net

TEMPERATURES, LEAST_RATE, MOST_EPOCHS = np.geomspace(1.0, 0.1, 5), 1e-5, 250


def fit(
    groups: net.Groups, train: tuple[Tensor, Tensor], early: tuple[Tensor, Tensor], n_classes: int, most: int
) -> tuple[nn.Module, net.Choose]:
    """The predictor, and the probability of each choice."""
    n_inputs, n_groups = train[0].shape[1] + len(groups.sets), len(groups.sets)
    predictor, selector = net.network(n_inputs, n_classes), net.network(n_inputs, n_groups)
    net.pretrain(predictor, groups, train, early)

    def choose(x: Tensor, owned: Tensor, logits: Tensor) -> Tensor:
        return selector(groups.masked(x, groups.known(owned)))

    both = nn.ModuleList([predictor, selector])
    least, best = np.inf, deepcopy(both.state_dict())
    for temperature in TEMPERATURES:
        stopping = net.EarlyStopping(both, least_rate=LEAST_RATE)
        for _ in range(MOST_EPOCHS):
            both.train()
            for x, y in net.batches(*train):
                stopping.optimiser.zero_grad()
                for loss in _losses(predictor, choose, groups, x, y, temperature, most):
                    (loss / most).backward()
                stopping.optimiser.step()
            both.eval()
            with torch.no_grad():
                soft = [loss.item() for loss in _losses(predictor, choose, groups, *early, temperature, most)]
                steps = list(net.walk(predictor, choose, groups, early[0], most))[1:]
                hard = sum(nn.functional.cross_entropy(logits, early[1]).item() for logits, _, _ in steps)
            if hard < least:
                least, best = hard, deepcopy(both.state_dict())
            if stopping.plateau(sum(soft)):
                break
        stopping.restore()
    both.load_state_dict(best)
    both.eval()
    return predictor, choose


def _losses(
    predictor: nn.Module, choose: net.Choose, groups: net.Groups, x: Tensor, y: Tensor, temperature: float, most: int
) -> Iterator[Tensor]:
    """The loss after each relaxed choice; the choice itself is then made, at random, among what is not known."""
    owned = torch.zeros(len(x), len(groups.prices))
    for _ in range(most):
        known = groups.known(owned)
        noise = -torch.empty(len(x), known.shape[1]).exponential_().log()
        logits = choose(x, owned, x).masked_fill(known > 0, -1e6)
        soft = torch.softmax((logits + noise) / temperature, dim=1)
        yield nn.functional.cross_entropy(predictor(groups.masked(x, torch.maximum(known, soft))), y)
        owned = groups.buy(owned, (logits + noise).detach().argmax(dim=1))
