"""`python -m examples.algorithm_selection [SCENARIO …] [--folds N]`: which solver to run, feature time included."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from examples.algorithm_selection.scenarios import folder, load
from examples.algorithm_selection.selection import evaluate

NAMES = ("asp-potassco", "bnsl-2016", "sat12-indu")


def main(arguments: Sequence[str] | None = None) -> None:
    """Cross-validate on each scenario and print a table."""
    parser = argparse.ArgumentParser(prog="python -m examples.algorithm_selection", description=__doc__)
    parser.add_argument("scenarios", nargs="*", default=NAMES, help="folders of scenarios")
    parser.add_argument("--folds", type=int, default=10, help="folds of the cross-validation")
    given = parser.parse_args(arguments)
    if not folder().is_dir():
        parser.error(f"There is no folder '{folder()}'. Set MISERLY_DATA to the folder that has aslib.")
    print(f"{'scenario':<14}{'selector':<14}{'PAR10':>9}{'features':>10}{'gap closed':>12}")
    for name in given.scenarios:
        for kind, result in evaluate(load(name), given.folds).items():
            print(f"{name:<14}{kind:<14}{result.solver:>9.1f}{result.features:>10.1f}{result.closed:>12.1%}")


if __name__ == "__main__":
    main()
