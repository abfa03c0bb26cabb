"""Bad partitions: a clear error, or the right result."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from problems import N_FEATURES, data, model, parted, same

from miserly.baselines import StagewiseRegressor
from miserly.boosting import SquaredLoss

NAMES = [f"x{f}" for f in range(N_FEATURES)]


def frames(X, *, change, at=1, n_parts=3):
    """A data frame whose partition `at` was changed behind the back of its description."""
    whole = pd.DataFrame(X, columns=NAMES)
    size = -(-len(whole) // n_parts)
    parts = [whole.iloc[i * size : (i + 1) * size] for i in range(n_parts)]
    parts[at] = change(parts[at])
    return dd.from_delayed([dask.delayed(part, pure=False) for part in parts], meta=whole.iloc[:0], verify_meta=False)


def column(y, n_parts=3):
    size = -(-len(y) // n_parts)
    parts = [pd.Series(y[i * size : (i + 1) * size]) for i in range(n_parts)]
    return dd.from_delayed([dask.delayed(part, pure=False) for part in parts], meta=parts[0].iloc[:0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda part: part.drop(columns="x4"), r"Partition 1 .*lacks \['x4'\]"),
        (lambda part: part.assign(more=1.0), r"Partition 1 .*\['more'\] besides"),
        (lambda part: part[NAMES[::-1]], "Partition 1 .*order"),
        (lambda part: part.assign(x2="word"), "Partition 1 .*word"),
        (lambda part: part.assign(x2=np.inf), "Partition 1 .*infinity"),
        (lambda part: part.iloc[:-1], "Partition 1 .*299 rows"),
    ],
)
def test_a_partition_unlike_the_others_is_refused(client, change, message):
    X, y, _ = data("regressor")
    with pytest.raises(ValueError, match=message):
        model("regressor").fit(frames(X, change=change), column(y))


def test_a_partition_of_another_type_of_numbers_is_right(client):
    X, y, _ = data("regressor")
    X = np.nan_to_num(X).round(1).astype(np.float32)
    mixed = frames(X, change=lambda part: part.astype(np.float64))
    here = model("regressor").fit(pd.DataFrame(X, columns=NAMES), y)
    same(model("regressor").fit(mixed, column(y)).plan_, here.plan_)


def test_empty_partitions_are_left_out(client):
    X, y, qid = data("ranker")
    sizes = ((0, 300, 0, 600, 0),)
    dX = da.from_array(X, chunks=(*sizes, N_FEATURES))
    dy, dq = (da.from_array(v, chunks=sizes) for v in (y, qid))
    same(model("ranker").fit(dX, dy, qid=dq).plan_, model("ranker").fit(X, y, qid=qid).plan_)
    with pytest.raises(ValueError, match="X has no rows"):
        model("ranker").fit(dX[:0], dy[:0], qid=dq[:0])


def test_a_query_cut_over_partitions_is_refused(client):
    X, y, qid = data("ranker")
    chunks = ((305, 595),)
    dX = da.from_array(X, chunks=(*chunks, N_FEATURES))
    dy, dq = (da.from_array(v, chunks=chunks) for v in (y, qid))
    with pytest.raises(ValueError, match="query 30 is cut over the partitions 0 and 1"):
        model("ranker").fit(dX, dy, qid=dq)
    with pytest.raises(ValueError, match="on a cluster give qid"):
        model("ranker").fit(dX, dy)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_missing_word_is_not_a_word(client, missing):
    """It was: NaN among words became the class, or the query, "nan"."""
    X, y, qid = data("ranker")
    qid = np.array([f"q{number:03d}" for number in qid], object)
    dX, dy, dq = parted(X, y, qid, 2)
    same(model("ranker").fit(dX, dy, qid=dq).plan_, model("ranker").fit(X, y, qid=qid).plan_)
    qid[5] = missing
    dq = da.from_array(qid, chunks=dy.chunks)
    with pytest.raises(ValueError, match=r"Partition 0 .*qid holds NaN"):
        model("ranker").fit(dX, dy, qid=dq)
    with pytest.raises(ValueError, match=r"Partition 0 .*y holds NaN"):
        model("classifier").fit(dX, dq)


def test_one_class_per_partition_is_right(client):
    X, y, _ = data("classifier")
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    chunks = (tuple(np.bincount(y).tolist()),)
    there = model("classifier").fit(da.from_array(X, chunks=(*chunks, N_FEATURES)), da.from_array(y, chunks=chunks))
    same(there.plan_, model("classifier").fit(X, y).plan_)
    with pytest.raises(ValueError, match="one class only"):
        model("classifier").fit(da.from_array(X, chunks=(*chunks, N_FEATURES)), da.zeros(len(y), chunks=chunks))


def test_what_cannot_be_done_is_refused(client):
    X, y, qid = data("regressor")
    dX, dy, _ = parted(X, y, qid, 2)
    with pytest.raises(ValueError, match="same partitions"):
        model("regressor").fit(dX, y)
    with pytest.raises(ValueError, match="one value per row"):
        model("regressor").fit(dX, dy[:-1])
    with pytest.raises(ValueError, match="NaN or infinity"):
        model("regressor").fit(dX, dy * np.nan)
    with pytest.raises(ValueError, match="give eval_set"):
        model("classifier", loss="squared_hinge").fit(dX, dy > 0)
    with pytest.raises(TypeError, match="SummedLoss"):
        model("regressor", loss=Own()).fit(dX, dy)
    same(
        StagewiseRegressor(model("regressor").costs, n_estimators=3).fit(dX, dy).plan_,
        StagewiseRegressor(model("regressor").costs, n_estimators=3).fit(X, y).plan_,
    )


class Own:
    """A loss with the three methods of the protocol only."""

    n_outputs = 1
    constant, gradients, value = SquaredLoss().constant, SquaredLoss().gradients, SquaredLoss().value
