"""The plan file: a zip of one JSON header and raw arrays. Data only: no pickle, no code.

Everything is checked on load, so that a damaged or foreign file gives an error that says what is wrong; a file is
written beside its place and moved there when it is complete.
"""

from __future__ import annotations

import io
import math
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from miserly.costs import CostTable
from miserly.files import whole_file
from miserly.plan._certificate import Certificate
from miserly.plan._dictionary import KINDS, Trees
from miserly.plan._file_checks import check_header, check_numbers, size_error
from miserly.plan._lazy_rule import read_lazy, write_lazy
from miserly.plan._node import Gate, Node
from miserly.plan._policy_arrays import POLICY_TYPES, Policy, read_policy, write_policy
from miserly.plan._profile import Promise, TrainingProfile
from miserly.schema import Schema

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

FORMAT = "miserly-plan"
# 2: means, unavailable features, learned gates; 3: certificates and costs of mistakes; 4: profiles; 5: lazy, more links
# 6: prices by row and in currencies
VERSION = 6
PLAIN_VERSION = 5  # of plans whose prices are one number each
RULE_TYPES = Trees.array_types
NODE_PARTS = ("learners", "weights", "bias", "scale", "offset", "routing")


class PlanFileError(ValueError):
    """A file that is not a plan, or is damaged, or is from a newer version."""


class _NodeHeader(msgspec.Struct, forbid_unknown_fields=True):
    n_learners: int
    outputs: list[int]
    combine: str
    activation: str
    scaled: bool
    offset: bool
    routed: bool
    gate: str
    direction: int
    k: int
    passed: int
    failed: int
    tier: int
    n_rule_trees: int = 0
    n_rule_places: int = 0


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    costs: dict[str, Any]
    dictionary: str
    nodes: list[_NodeHeader]
    link: str
    has_classes: bool
    roots: list[int]
    charge: str
    notes: dict[str, Any]
    policy: dict[str, float | None] | None = None
    schema: dict[str, Any] | None = None
    has_means: bool = False
    has_shares: bool = False
    unavailable: list[str] = []
    error_costs: list[list[float]] | None = None
    certificate: dict[str, Any] | None = None
    profile: dict[str, Any] | None = None
    promise: dict[str, Any] | None = None
    lazy: dict[str, Any] | None = None


def save_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan to a file, whole or not at all."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"Cannot save the plan to '{path}': it is not a file. Name a file in a folder.")
    with whole_file(path) as file:
        write_plan(plan, file)


def load_plan(path: str | Path) -> Plan:
    """Read a plan file.

    Parameters
    ----------
    path : str or Path
        The file that `Plan.save` wrote, of this version or an older one.

    Returns
    -------
    Plan

    Raises
    ------
    PlanFileError
        If the file is not a plan, is damaged, or is of a newer version. Everything is checked: a file that loads is
        sound.

    Examples
    --------
    >>> plan = load_plan("triage.plan")  # doctest: +SKIP
    """
    if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
        raise PlanFileError(f"'{path}' is not a regular file.")  # opening a pipe would wait for a writer
    return read_plan(path, str(path))


def read_plan(file: Any, path: str) -> Plan:
    """The plan in a file, by name or open; `path` is what errors call it."""
    from miserly.plan._lazy import LazyPlan
    from miserly.plan._plan import Plan
    from miserly.plan._policy import PolicyPlan

    try:
        with zipfile.ZipFile(file) as archive:
            check_sizes(archive, path)
            header = _read_header(archive, path)
            arrays = {name: _read_array(archive, path, name, dtype) for name, dtype in _types(header, path).items()}
    except (FileNotFoundError, IsADirectoryError, PermissionError, PlanFileError):
        raise
    except Exception as error:  # zipfile raises many kinds on damaged files, some of which it does not tell
        raise PlanFileError(f"'{path}' is not a plan file, or it is damaged: {short(error)}.") from error
    try:
        check_header(header.costs, header.roots)
        check_numbers(arrays)
        kind: Any = Plan
        more: dict[str, Any] = {}
        if header.policy is not None:
            kind, more = PolicyPlan, {"policy": read_policy(header.policy, arrays)}
        elif header.lazy is not None:
            kind, more = LazyPlan, {"laziness": read_lazy(header.lazy)}
        plan: Plan = kind(
            costs=CostTable(**header.costs),
            dictionary=_dictionary(header, arrays),
            nodes=_nodes(header, arrays),
            prior=arrays["prior"],
            link=header.link,
            classes=arrays["classes"] if header.has_classes else None,
            roots=tuple(header.roots),
            charge=header.charge,
            notes=header.notes,
            **more,
            schema=None if header.schema is None else Schema.from_dict(header.schema),
            means=arrays["means"] if header.has_means else None,
            unavailable=tuple(header.unavailable),
            shares=arrays["shares"] if header.has_shares else None,
            error_costs=header.error_costs,
            certificate=None if header.certificate is None else msgspec.convert(header.certificate, Certificate),
            profile=None if header.profile is None else msgspec.convert(header.profile, TrainingProfile),
            promise=None if header.promise is None else msgspec.convert(header.promise, Promise),
        )
        return plan
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise PlanFileError(f"The plan file '{path}' does not fit together: {short(error)}") from error


def write_plan(plan: Plan, file: Any) -> None:
    """Write a plan to an open file."""
    nodes = plan.nodes
    header = _Header(
        format=FORMAT,
        version=VERSION if plan.costs.row_prices or plan.costs.exchange or plan.costs.upper else PLAIN_VERSION,
        costs=plan.costs.to_dict(),
        dictionary=plan.dictionary.kind,
        nodes=[_node_header(node) for node in nodes],
        link=plan.link,
        has_classes=plan.classes is not None,
        roots=list(plan.roots),
        charge=plan.charge,
        notes=dict(plan.notes),
        schema=None if plan.schema is None else plan.schema.to_dict(),
        has_means=plan.means is not None,
        has_shares=plan.shares is not None,
        unavailable=list(plan.unavailable),
        error_costs=None if plan.error_costs is None else plan.error_costs.tolist(),
        certificate=None if plan.certificate is None else asdict(plan.certificate),
        profile=None if plan.profile is None else asdict(plan.profile),
        promise=None if plan.promise is None else asdict(plan.promise),
    )
    arrays: dict[str, NDArray[Any]] = {f"dictionary.{k}": v for k, v in plan.dictionary.arrays().items()}
    arrays["prior"] = plan.prior
    if plan.means is not None:
        arrays["means"] = plan.means
    if plan.shares is not None:
        arrays["shares"] = plan.shares
    if plan.classes is not None:
        arrays["classes"] = plan.classes
    arrays["node.learners"] = _joined([n.learners for n in nodes], np.int32)
    arrays["node.weights"] = _joined([n.weights.ravel() for n in nodes], np.float64)
    arrays["node.bias"] = _joined([n.bias for n in nodes], np.float64)
    arrays["node.scale"] = _joined([n.scale for n in nodes if n.scale is not None], np.float64)
    arrays["node.offset"] = _joined([n.offset for n in nodes if n.offset is not None], np.float64)
    arrays["node.routing"] = _joined([n.routing for n in nodes if n.routing is not None], np.float64)
    rules = [n.rule for n in nodes if n.rule is not None]
    arrays |= {f"rule.{k}": _joined([getattr(r, k) for r in rules], t) for k, t in RULE_TYPES.items() if rules}
    arrays["node.numbers"] = np.array([(n.routing_bias, n.gate.value, n.gain) for n in nodes]).reshape(-1, 3)
    if isinstance(getattr(plan, "policy", None), Policy):
        header.policy = write_policy(plan.policy, arrays)  # type: ignore[attr-defined]
    if getattr(plan, "laziness", None) is not None:
        header.lazy = write_lazy(plan.laziness)  # type: ignore[attr-defined]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(entry_of("plan.json"), msgspec.json.encode(header))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array, order="C"), allow_pickle=False)
            archive.writestr(entry_of(f"arrays/{name}.npy"), buffer.getvalue())


def entry_of(name: str) -> zipfile.ZipInfo:
    """A zip entry without the time of day, so that equal plans are equal files."""
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _node_header(node: Node) -> _NodeHeader:
    return _NodeHeader(
        n_learners=len(node.learners),
        outputs=list(node.outputs),
        combine=node.combine,
        activation=node.activation,
        scaled=node.scale is not None,
        offset=node.offset is not None,
        routed=node.routing is not None,
        gate=node.gate.kind,
        direction=node.gate.direction,
        k=node.gate.k,
        passed=node.passed,
        failed=node.failed,
        tier=node.tier,
        n_rule_trees=0 if node.rule is None else len(node.rule),
        n_rule_places=0 if node.rule is None else len(node.rule.left),
    )


def _joined(parts: list[Any], dtype: Any) -> NDArray[Any]:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)


def check_sizes(archive: zipfile.ZipFile, path: str | Path) -> None:
    """Refuse entries that would take more memory than they could hold, before they are read."""
    wrong = size_error(archive)
    if wrong is not None:
        raise PlanFileError(f"'{path}' {wrong}.")


def _read_header(archive: zipfile.ZipFile, path: str | Path) -> _Header:
    if "plan.json" not in archive.namelist():
        raise PlanFileError(f"'{path}' is a zip file, but not a plan: it has no plan.json.")
    text = archive.read("plan.json")
    try:
        kind = msgspec.json.decode(text)
        if not isinstance(kind, dict) or kind.get("format") != FORMAT:
            raise PlanFileError(f"'{path}' is not a Miserly plan.")
        version = kind.get("version")
        if not isinstance(version, int) or version > VERSION:
            raise PlanFileError(
                f"'{path}' is of plan version {short(version)}, this Miserly reads up to {VERSION}. Upgrade it."
            )
        return msgspec.json.decode(text, type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PlanFileError(f"The header of '{path}' is damaged: {short(error)}.") from error


def short(message: object, most: int = 300) -> str:
    """The beginning of a message about a damaged file, which may hold much of the file."""
    text = str(message)
    return text if len(text) <= most else f"{text[:most]} …"


def _types(header: _Header, path: str | Path) -> dict[str, Any]:
    """The arrays of a plan with such a header, and their types; classes may be of any."""
    if header.dictionary not in KINDS:
        raise PlanFileError(f"The plan file '{path}' has an unknown kind of dictionary, {short(header.dictionary)}.")
    types = {f"dictionary.{name}": dtype for name, dtype in KINDS[header.dictionary].array_types.items()}
    numbers = dict.fromkeys(("prior", *(f"node.{part}" for part in (*NODE_PARTS, "numbers"))), np.float64)
    if any(h.n_rule_trees for h in header.nodes):
        types |= {f"rule.{name}": dtype for name, dtype in RULE_TYPES.items()}
    types |= {} if header.policy is None else {f"policy.{name}": dtype for name, dtype in POLICY_TYPES.items()}
    optional: dict[str, Any] = {"classes": None} if header.has_classes else {}
    optional |= {"means": np.float64} if header.has_means else {}
    optional |= {"shares": np.float64} if header.has_shares else {}
    return {**types, **numbers, "node.learners": np.int32, **optional}


def _read_array(archive: zipfile.ZipFile, path: str | Path, name: str, dtype: Any) -> NDArray[Any]:
    try:
        return array_of(archive.read(f"arrays/{name}.npy"), dtype)
    except Exception as error:  # numpy reads the header with Python's parser, which raises what it likes
        raise PlanFileError(f"The array {name}.npy of the plan file '{path}' is damaged: {short(error)}.") from error


def array_of(data: bytes, dtype: Any = None) -> NDArray[Any]:
    """The array of an npy file, in the memory of its bytes: what a header only claims takes none."""
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("its format is unknown")
    shape, by_column, found = np.lib.format.read_array_header_1_0(file)
    if found.hasobject or (dtype is not None and found != dtype):
        raise ValueError(f"its type is {found}")
    if math.prod(shape) * found.itemsize != len(data) - file.tell():
        raise ValueError(f"it is not of the size {shape}")
    array: NDArray[Any] = np.ndarray(shape, found, data, file.tell(), order="F" if by_column else "C")
    return np.ascontiguousarray(array) if by_column else array  # compiled code is for one order only


def _dictionary(header: _Header, arrays: dict[str, NDArray[Any]]) -> Any:
    kind = KINDS[header.dictionary]
    return kind(**{name: arrays[f"dictionary.{name}"] for name in kind.array_types})


def _nodes(header: _Header, arrays: dict[str, NDArray[Any]]) -> tuple[Node, ...]:
    readers = [_Reader(arrays[f"node.{part}"]) for part in NODE_PARTS]
    learners, weights, bias, scale, offset, routing = readers
    rules = {name: _Reader(arrays.get(f"rule.{name}", np.zeros(0, dtype))) for name, dtype in RULE_TYPES.items()}
    numbers = arrays["node.numbers"]
    if numbers.shape != (len(header.nodes), 3):
        raise ValueError("the table of node numbers has the wrong size")
    nodes = []
    for h, (routing_bias, value, gain) in zip(header.nodes, numbers.tolist()):
        n_outputs = len(h.outputs)
        nodes.append(
            Node(
                learners=learners.take(h.n_learners),
                weights=weights.take(h.n_learners * n_outputs).reshape(h.n_learners, n_outputs),
                bias=bias.take(n_outputs),
                outputs=tuple(h.outputs),
                combine=h.combine,  # type: ignore[arg-type]
                activation=h.activation,  # type: ignore[arg-type]
                scale=scale.take(n_outputs) if h.scaled else None,
                offset=offset.take(n_outputs) if h.offset else None,
                routing=routing.take(h.n_learners) if h.routed else None,
                routing_bias=routing_bias,
                gate=Gate(h.gate, value, h.direction, h.k),  # type: ignore[arg-type]
                passed=h.passed,
                failed=h.failed,
                tier=h.tier,
                gain=gain,
                rule=_rule(h, rules) if h.n_rule_trees else None,
            )
        )
    if any(reader.at < len(reader.array) for reader in [*readers, *rules.values()]):
        raise ValueError("an array of the nodes is too long")
    return tuple(nodes)


def _rule(header: _NodeHeader, readers: dict[str, _Reader]) -> Trees:
    sizes = dict.fromkeys(RULE_TYPES, header.n_rule_places) | {"start": header.n_rule_trees + 1}
    return Trees(**{name: reader.take(sizes[name]) for name, reader in readers.items()})


class _Reader:
    """Takes a joined array apart again."""

    def __init__(self, array: NDArray[Any]) -> None:
        if array.ndim != 1:
            raise ValueError("an array of the nodes is not a list")
        self.array, self.at = array, 0

    def take(self, n: int) -> NDArray[Any]:
        if n < 0 or self.at + n > len(self.array):
            raise ValueError("an array of the nodes is too short")
        self.at += n
        return self.array[self.at - n : self.at]
