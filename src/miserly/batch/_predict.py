"""Predictions of a file, block by block, written as they come."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from miserly._typing import Floats
from miserly.batch._blocks import BLOCK, FileBlocks, WholeFile, read_block
from miserly.datasets import FileFormat, Roles, Scan, TableError, TableProblem, did_you_mean, safe_cells, scan_table
from miserly.files import whole_file
from miserly.plan import Menu, Plan, read_model
from miserly.schema import Schema

AHEAD = 2  # blocks for each worker that are read before they are wanted
Columns = dict[str, Any]


@dataclass
class BatchResult:
    """What was predicted.

    Parameters
    ----------
    n_rows : int, default=0
        How many rows.
    cost : float, default=0.0
        What they cost together.
    notes : tuple of str, default=()
        What was noticed in the file.

    Examples
    --------
    >>> from miserly.batch import BatchResult
    >>> BatchResult(4, 10.0).mean_cost
    2.5
    """

    n_rows: int = 0
    cost: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def mean_cost(self) -> float:
        """What a row cost in the mean."""
        return self.cost / max(1, self.n_rows)


@dataclass(frozen=True)
class FileTask:
    """What is done with each block.

    Parameters
    ----------
    model : bytes
        The file of a plan or a menu.
    roles : Roles
        Which columns are no features.
    rules : tuple, default=((), (), "value")
        Further missing marks, words that are none, and what limits such as >15 mean.
    budget : float or mapping of str to float, default=None
        The most that a row may cost, or caps by currency.
    mean_budget : float, default=None
        What rows may cost in the mean, for menus.
    proba : bool, default=False
        Whether the probability of each class is wanted.
    id_name : str, default=""
        What the column of identifiers is called.

    Examples
    --------
    >>> from miserly.batch import FileTask
    >>> from miserly.datasets import Roles
    >>> FileTask(b"", Roles()).proba
    False
    """

    model: bytes
    roles: Roles
    rules: tuple[Any, Any, Any] = ((), (), "value")
    budget: Any = None
    mean_budget: float | None = None
    proba: bool = False
    id_name: str = ""


def predict_file(
    task: FileTask,
    path: str | Path,
    write: Callable[[Sequence[str], Sequence[Any]], None],
    form: FileFormat | None = None,
    workers: int = 1,
    executor: Any = None,
    size: int = BLOCK,
) -> BatchResult:
    """Predict every row of a file and write the answers as they come, in the order of the file.

    Parameters
    ----------
    task : FileTask
        The model, and how it predicts. A plan that compares the documents of a query takes the file as a whole.
    path : str or Path
        The table.
    write : callable
        Gets the names and the columns of each block.
    form : FileFormat, default=None
        What is known about the way the file is written.
    workers : int, default=1
        Processes, 1 or more.
    executor : object, default=None
        Runs the blocks instead of processes: a client of a Dask cluster, or what else has its `submit`.
    size : int, default=4194304
        Bytes of a block of text, 1 or more.

    Returns
    -------
    BatchResult
        How many rows, and what they cost.

    Examples
    --------
    >>> from pathlib import Path
    >>> import miserly as ms
    >>> from miserly.batch import FileTask, predict_file
    >>> from miserly.datasets import Roles
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> Plan(ms.CostTable.per_feature({"age": 2.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.0]).save("age.plan")
    >>> _ = Path("rows.csv").write_text("age\\n40\\n60\\n")
    >>> predict_file(FileTask(Path("age.plan").read_bytes(), Roles()), "rows.csv", print)
    ['prediction', 'cost', 'stopped'] [array([40., 60.]), array([2., 2.]), ['answered', 'answered']]
    BatchResult(n_rows=2, cost=4.0, notes=("separator comma, decimal mark '.', encoding utf-8",))
    """
    model, form = _model(task.model), form or FileFormat()
    blocks = iter([WholeFile(str(path), form)]) if compares_documents(model) else iter(FileBlocks(path, form, size))
    result = BatchResult()
    with _running(workers, executor) as submit:
        for columns, notes in _in_order(blocks, partial(predict_block, task), submit, AHEAD * max(workers, 1)):
            write(list(columns), list(columns.values()))
            result.n_rows += len(columns["cost"])
            result.cost += float(np.sum(columns["cost"]))
            result.notes = result.notes or tuple(notes)
    return result


@contextmanager
def _running(workers: int, executor: Any) -> Iterator[Any]:
    """What starts the work on a block; None: it is done here."""
    if executor is not None:
        yield partial(executor.submit, pure=False)
    elif workers > 1:
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            try:
                yield pool.submit
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    else:
        with nullcontext():
            yield None


def _in_order(
    blocks: Iterator[Any], run: Callable[[Any], Any], submit: Any, most: int
) -> Iterator[tuple[Columns, Sequence[str]]]:
    """The results in the order of the blocks, with at most so many blocks on their way."""
    if submit is None:
        yield from map(run, blocks)
        return
    waiting: deque[Any] = deque()
    for block in blocks:
        waiting.append(submit(run, block))
        if len(waiting) >= most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@lru_cache(4)
def _model(data: bytes) -> Plan | Menu:
    return read_model(data)


def predict_block(task: FileTask, block: Any) -> tuple[Columns, Sequence[str]]:
    """The answers to the rows of a block, and what was noticed."""
    model = _model(task.model)
    plan, budget = (model, task.budget) if isinstance(model, Plan) else _chosen(model, task)
    schema = plan.schema or Schema.of_names(plan.costs.features)

    def read(path: str, form: FileFormat) -> Scan:
        return scan_table(path, task.roles, form, rules=task.rules, schema=schema)

    scan = read_block(block, read, roles=task.roles, rules=task.rules, schema=schema)
    scan.problems += absent_columns(model, scan, task.roles.id, task.roles.qid)
    if scan.problems:
        raise TableError(scan.problems)
    return answers(plan, scan.table, budget, task.proba, task.id_name), scan.table.notes


def compares_documents(model: Plan | Menu) -> bool:
    """Whether the plan, or some plan of the menu, compares the documents of a query."""
    return any(plan.by_query for plan in (model.plans if isinstance(model, Menu) else [model]))


def absent_columns(model: Plan | Menu, scan: Scan, id_name: str | None, qid: str | None) -> list[TableProblem]:
    """The columns beside the features that are wanted and that a file lacks."""
    found, columns, schema = [], scan.raw.columns, (model.plans[0] if isinstance(model, Menu) else model).schema
    if id_name is not None and scan.table.ids is None and (schema is None or id_name != schema.id):
        what = f"There is no column {id_name!r} for the id."
        found.append(TableProblem(scan.raw.path, "", what, did_you_mean(id_name, columns)))
    if compares_documents(model) and qid is None:
        what = "The model compares the documents of a query: which column names the query is not said."
        found.append(TableProblem(scan.raw.path, "", what, f"Give --qid COLUMN. It has: {', '.join([*columns][:40])}."))
    elif compares_documents(model) and qid not in columns:
        what = f"There is no column {qid!r}, which names the query that the model compares documents of."
        remedy = f"Give --qid COLUMN. {did_you_mean(str(qid), columns)}"
        found.append(TableProblem(scan.raw.path, "", what, remedy))
    return found


def _chosen(menu: Menu, task: FileTask) -> tuple[Plan, Any]:
    choice = menu.choose(task.budget, task.mean_budget)
    return choice.plan, choice.cap


def answers(plan: Plan, rows: Any, budget: Any, proba: bool, id_name: str) -> Columns:
    """The columns of the answers to some rows."""
    result = plan.run(rows.X, rows.qid, budget)
    columns: Columns = {} if rows.ids is None else {id_name: rows.ids}
    said = plan.read(result.z)
    columns |= {"prediction": said} if said.ndim == 1 else {f"prediction{k}": part for k, part in enumerate(said.T)}
    columns |= {"cost": result.cost}
    columns["stopped"] = ["budget" if b else "answered" for b in result.out_of_budget]
    if proba and plan.classes is not None:
        shares: Floats = plan.probabilities(result.z)
        columns |= {f"p({c})": p for c, p in zip(plan.classes, shares.T)}
    return columns


@contextmanager
def open_output(path: Path | None, stdout: Any) -> Iterator[Callable[[Sequence[str], Sequence[Any]], None]]:
    """Open what writes blocks of columns: to a CSV or Parquet file, whole or not at all, or to an open text file.

    Parameters
    ----------
    path : Path or None
        The file; .parquet and .pq are Parquet, others CSV.
    stdout : text file
        Where CSV goes without a path.

    Yields
    ------
    callable
        Takes names and columns.

    Examples
    --------
    >>> import sys
    >>> with open_output(None, sys.stdout) as write:
    ...     write(["prediction"], [[1.0, 2.0]])
    prediction
    1.0
    2.0
    """
    if path is not None and path.suffix in (".parquet", ".pq"):
        with whole_file(path) as file:
            yield from _to_parquet(file)
    elif path is not None:
        with whole_file(path, encoding="utf-8", newline="") as file:
            yield _to_csv(file)
    else:
        yield _to_csv(stdout)


def _to_csv(file: Any) -> Callable[[Sequence[str], Sequence[Any]], None]:
    writer = csv.writer(file, lineterminator="\n")
    is_begun: list[bool] = []

    def write(names: Sequence[str], columns: Sequence[Any]) -> None:
        if not is_begun:
            writer.writerow(safe_cells(names))
            is_begun.append(True)
        writer.writerows(zip(*map(safe_cells, columns)))

    return write


def _to_parquet(file: Any) -> Iterator[Callable[[Sequence[str], Sequence[Any]], None]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError("Writing Parquet needs pyarrow: pip install 'miserly[io]'.") from None
    writers: list[Any] = []

    def write(names: Sequence[str], columns: Sequence[Any]) -> None:
        table = pa.table(dict(zip(names, (pa.array(np.asarray(column).tolist()) for column in columns))))
        if not writers:
            writers.append(pq.ParquetWriter(file, table.schema))
        writers[0].write_table(table.cast(writers[0].schema))

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()
