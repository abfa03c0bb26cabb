"""`python -m examples.paid_services [--rows N] [--target SHARE]`: agree with the best service, and spend less."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

import numpy as np

import miserly as ms
from examples.paid_services.services import answers
from miserly.runtime import readers

BEST = "google_label"
SECONDS = 30.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Learn when the best service need not be asked, certify it, and run it under a spending cap."""
    parser = argparse.ArgumentParser(prog="python -m examples.paid_services", description=__doc__)
    parser.add_argument("--rows", type=int, default=8000, help="texts to use")
    parser.add_argument("--target", type=float, default=0.95, help="share of texts with the best service's label")
    given = parser.parse_args(arguments)
    X, costs, source = answers(given.rows)
    said = X[:, costs.features.index(BEST)].astype(int)
    train, calibrate, new = np.split(np.arange(len(X)), [int(0.3 * len(X)), int(0.7 * len(X))])
    best = costs.price([BEST])
    print(f"{len(X)} texts ({source}); the best service costs {1e4 * best:.2f} {costs.unit} for 10,000 calls.\n")

    model = ms.AutoMiserClassifier(costs, time_limit=SECONDS, metric="accuracy").fit(X[train], said[train])
    menu = model.menu_.certified(X[calibrate], said[calibrate], target=given.target, of="accuracy", delta=0.05)
    plan = min(menu.plans, key=lambda p: p.certificate.cost)
    print(plan.certificate.describe())
    agreement, cost = np.mean(plan.predict(X[new]) == said[new]), plan.predict_cost(X[new]).mean()
    print(f"on {len(new)} new texts: agreement {agreement:.4f}, {1e4 * cost:.3f} {costs.unit} for 10,000 texts\n")

    cap = f"{0.5 * cost * len(new):.6f}{costs.unit}/day"  # half of what they would cost
    with ms.OnDemand(plan, readers(costs), spend_cap=cap) as runner:
        got = [runner.predict(dict(zip(costs.features, X[i]))) for i in new]
        spent = runner.spend_cap.status()[0]
    reasons = Counter(answer.stopped.partition(":")[0] for answer in got)
    print(f"with a cap of {spent.amount:g} {costs.unit} a day: spent {spent.spent:.6f}, {dict(reasons)}")
    right = np.array([answer.value for answer in got]) == said[new]
    capped = np.array([answer.stopped.startswith("spend-cap") for answer in got])
    print(f"agreement {right[~capped].mean():.4f} while there was money, {right[capped].mean():.4f} after it")


if __name__ == "__main__":
    main()
