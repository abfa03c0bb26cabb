"""DIME: a value network regresses the drop of loss by each group, which is bounded by the entropy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.neural import networks as net

EPSILON, DECAY, N_PLATEAUS = 0.05, 0.2, 10


def fit(
    groups: net.Groups, train: tuple[Tensor, Tensor], early: tuple[Tensor, Tensor], n_classes: int, most: int
) -> tuple[nn.Module, net.Choose]:
    """The predictor, and what estimates value per price."""
    n_inputs, n_groups = train[0].shape[1] + len(groups.sets), len(groups.sets)
    predictor, value = net.network(n_inputs, n_classes), net.network(n_inputs, n_groups)
    net.pretrain(predictor, groups, train, early)

    def estimate(x: Tensor, owned: Tensor, logits: Tensor) -> Tensor:
        bound = net.entropy(logits.detach())[:, None]
        return value(groups.masked(x, groups.known(owned))).sigmoid() * bound

    def rate(x: Tensor, owned: Tensor, logits: Tensor) -> Tensor:
        return estimate(x, owned, logits) / groups.price(owned).clamp_min(1e-9)

    stopping, epsilon = net.EarlyStopping(nn.ModuleList([predictor, value]), N_PLATEAUS), EPSILON
    for _ in range(net.MOST_EPOCHS):
        stopping.networks.train()
        for x, y in net.batches(*train):
            stopping.optimiser.zero_grad()
            _backward(predictor, estimate, groups, x, y, epsilon, most)
            stopping.optimiser.step()
        stopping.networks.eval()
        with torch.no_grad():
            steps = list(net.walk(predictor, rate, groups, early[0], most))
            loss = sum(nn.functional.cross_entropy(logits, early[1]).item() for logits, _, _ in steps) / len(steps)
        if stopping.plateau(loss):
            epsilon *= DECAY
        if stopping.over:
            break
    stopping.restore()
    return predictor, rate


def _backward(
    predictor: nn.Module, estimate: net.Choose, groups: net.Groups, x: Tensor, y: Tensor, epsilon: float, most: int
) -> None:
    """The gradients of one batch over its whole way, by a policy that is greedy but for a share ε of random steps."""
    each = nn.CrossEntropyLoss(reduction="none")
    owned = torch.zeros(len(x), len(groups.prices))
    logits = predictor(groups.masked(x, groups.known(owned)))
    loss = each(logits, y)
    (loss.mean() / (most + 1)).backward()
    for _ in range(most):
        known = groups.known(owned)
        values = estimate(x, owned, logits.detach())
        with torch.no_grad():
            rates = values / groups.price(owned).clamp_min(1e-9)
            greedy = rates.masked_fill(known > 0, -torch.inf).argmax(dim=1)
            random = torch.rand_like(values).masked_fill(known > 0, -1).argmax(dim=1)
            group = torch.where(torch.rand(len(x)) > epsilon, greedy, random)
            owned = groups.buy(owned, group)
        logits = predictor(groups.masked(x, groups.known(owned)))
        after = each(logits, y)
        drop = (loss - after).detach()
        wrong = (values[torch.arange(len(x)), group] - drop).square().mean()
        ((wrong + after.mean()) / (most + 1)).backward()
        loss = after
