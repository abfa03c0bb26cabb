"""`python -m examples.algorithm_selection [SCENARIO …]`: which solver to run, feature time included."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from examples.algorithm_selection.scenarios import folder, load
from examples.algorithm_selection.selection import KINDS, evaluate

NAMES = ("asp-potassco", "bnsl-2016", "sat12-indu")


def main(arguments: Sequence[str] | None = None) -> None:
    """Cross-validate on each scenario and print a table."""
    parser = argparse.ArgumentParser(prog="python -m examples.algorithm_selection", description=__doc__)
    parser.add_argument("scenarios", nargs="*", default=NAMES, help="folders of scenarios")
    parser.add_argument("--folds", type=int, default=10, help="folds of the cross-validation")
    parser.add_argument("--seeds", type=int, default=1, help="how many times to cross-validate, on other folds")
    given = parser.parse_args(arguments)
    if not folder().is_dir():
        parser.error(f"There is no folder '{folder()}'. Set MISERLY_DATA to the folder that has aslib.")
    print(f"{'scenario':<14}{'selector':<14}{'PAR10':>9}{'features':>10}{'gap closed':>12}   row prices close more by")
    for name in given.scenarios:
        found = evaluate(load(name), given.folds, range(given.seeds))
        for kind in KINDS:
            solver, paid, closed = (
                float(values.mean()) for values in (found.solver[kind], found.features[kind], found.closed(kind))
            )
            more, seeds, rows = found.ahead("row prices", kind)
            ahead = "" if kind == "row prices" else f"   {more:+.1%} ± {seeds:.1%} (folds), ± {rows:.1%} (instances)"
            print(f"{name:<14}{kind:<14}{solver:>9.1f}{paid:>10.1f}{closed:>12.1%}{ahead}", flush=True)


if __name__ == "__main__":
    main()
