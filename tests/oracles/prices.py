"""Prices that several features share."""

from miserly.costs import CostTable


def shared_prices(evaluation=0.01, last_is_free=False):
    """Seven features in groups of three, with a price for each and one for the group; the last may need nothing."""
    n = 6 if last_is_free else 7
    return CostTable(
        features=[f"x{i}" for i in range(7)],
        needs={f"x{i}": [f"own{i}", f"group{i // 3}"] if i < n else [] for i in range(7)},
        prices={**{f"own{i}": 0.3 + i for i in range(n)}, **{f"group{i}": 1.7 for i in range(-(-n // 3))}},
        evaluation=evaluation,
    )
