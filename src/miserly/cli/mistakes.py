"""What mistakes cost, as an option: pairs of a true class and a prediction, each with a cost."""

from __future__ import annotations

from typing import Any

import click


class ErrorCosts(click.ParamType):
    """Costs of mistakes: `no:yes=1,yes:no=20`."""

    name = "TRUE:PREDICTED=COST,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        found: dict[tuple[str, str], float] = {}
        for part in value.split(","):
            pair, equals, cost = part.rpartition("=")
            truth, colon, predicted = pair.partition(":")
            try:
                if not (equals and colon):
                    raise ValueError
                found[truth.strip(), predicted.strip()] = float(cost)
            except ValueError:
                self.fail(f"It is TRUE:PREDICTED=COST, as in no:yes=1,yes:no=20; got {part!r}.", param, ctx)
        return found


error_costs_option = click.option(
    "--error-costs",
    type=ErrorCosts(),
    default=None,
    help="What mistakes cost, in the unit of the prices: no:yes=1,yes:no=20. Pairs left out cost nothing.",
)


def error_matrix(given: dict[tuple[str, str], float], classes: Any) -> Any:
    """True classes × predictions, in the order of the classes."""
    import numpy as np

    from miserly.plan import as_error_costs

    if classes is None:
        raise click.UsageError("--error-costs price pairs of classes; here numbers are predicted.")
    names = [str(label) for label in classes]
    matrix = np.zeros((len(names), len(names)))
    for pair, cost in given.items():
        for name in pair:
            if name not in names:
                raise click.UsageError(f"--error-costs: there is no class {name!r}. It has: {', '.join(names)}.")
        matrix[names.index(pair[0]), names.index(pair[1])] = cost
    return as_error_costs(matrix, len(names))
