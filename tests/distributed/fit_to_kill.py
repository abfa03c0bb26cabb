"""A fit on a cluster of its own that a test starts and kills: `python fit_to_kill.py CHECKPOINT`."""

import sys

from problems import data, model, parted


def main(path):
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": None}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster):
        X, y, _ = parted(*data("classifier"), 2)
        model("classifier", n_estimators=25).fit(X, y, checkpoint=path)


if __name__ == "__main__":
    main(sys.argv[1])
