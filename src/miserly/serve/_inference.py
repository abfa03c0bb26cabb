"""The Open Inference Protocol, version 2: tensors in and out, as clients of KServe and Triton send them.

Tensors are JSON or, by the extension for binary tensors, raw bytes after the JSON (`_tensors`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from miserly.plan import Plan
from miserly.runtime import Answer
from miserly.serve._messages import PredictRequest, RefusedError, shorten
from miserly.serve._tensors import PROTOCOL, Tensor, TensorBody, TensorParameters, as_binary

KINDS = {"b": "BOOL", "i": "INT64", "u": "UINT64", "f": "FP64"}


class InferParameters(msgspec.Struct):
    """What a row may cost, the milliseconds for all rows, and whether outputs are raw bytes unless they say."""

    budget: float | None = None
    deadline_ms: float | None = None
    binary_data_output: bool = False


class AskedOutput(msgspec.Struct):
    """An output that the client wants."""

    name: str
    parameters: TensorParameters = msgspec.field(default_factory=TensorParameters)


class InferRequest(msgspec.Struct):
    """One tensor for each feature, of shape [n] or [n, 1]; or one of shape [n, features] in the plan's order."""

    inputs: list[Tensor]
    id: str = ""
    parameters: InferParameters = msgspec.field(default_factory=InferParameters)
    outputs: list[AskedOutput] | None = None


class InferAnswer(msgspec.Struct):
    """Tensors `prediction`, `cost` and `stopped`, with classes also `probabilities`; those that were asked for, if
    the request names some."""

    model_name: str
    model_version: str
    id: str
    outputs: list[Tensor]


def rows_of(asked: InferRequest, plan: Plan) -> PredictRequest:
    """The tensors as rows of named values."""
    if not asked.inputs:
        raise RefusedError("There are no inputs.", "inputs", PROTOCOL)
    columns = [_flat(tensor, f"inputs[{i}]") for i, tensor in enumerate(asked.inputs)]
    first, n_features = asked.inputs[0], len(plan.costs.features)
    if len(columns) == 1 and len(first.shape) == 2 and first.shape[1] == n_features:
        n = n_features
        rows = [dict(zip(plan.costs.features, columns[0][i : i + n])) for i in range(0, len(columns[0]), n)]
    else:
        n_rows = first.shape[0] if first.shape else 1
        for i, (tensor, column) in enumerate(zip(asked.inputs, columns)):
            if len(column) != n_rows:
                what = f"{shorten(tensor.name)!r} has {len(column)} values for {n_rows} rows."
                remedy = f"Send a tensor of shape [n] for each feature, or one of shape [n, {n_features}]."
                raise RefusedError(what, f"inputs[{i}]", remedy)
        names = [tensor.name for tensor in asked.inputs]
        rows = [dict(zip(names, values)) for values in zip(*columns)]
    limits = asked.parameters
    for name, limit in (("budget", limits.budget), ("deadline_ms", limits.deadline_ms)):
        if limit is not None and not limit >= 0:
            raise RefusedError(f"{limit} is not a number of zero or more.", f"parameters.{name}", "Send one.")
    return PredictRequest(rows=rows, budget=limits.budget, deadline_ms=limits.deadline_ms)


def _flat(tensor: Tensor, where: str) -> list[Any]:
    """The values of a tensor in one list; whole numbers stay whole, so that categories are found."""
    data = tensor.data or []
    while data and isinstance(data[0], list):
        if not all(isinstance(part, list) for part in data):
            raise RefusedError("The data is nested unevenly.", where, PROTOCOL)
        data = [value for part in data for value in part]
    if any(size < 0 for size in tensor.shape) or math.prod(tensor.shape) != len(data):
        raise RefusedError(f"A tensor of shape {tensor.shape[:8]} has {len(data)} values.", where, PROTOCOL)
    return data


def tensors_of(answers: Sequence[Answer], plan: Plan) -> list[Tensor]:
    """The answers as tensors."""
    n = len(answers)
    values = [a.value.tolist() if hasattr(a.value, "tolist") else a.value for a in answers]
    kind = "FP64" if plan.classes is None else KINDS.get(plan.classes.dtype.kind, "BYTES")
    shape = [n] if plan.classes is not None or plan.n_outputs == 1 else [n, plan.n_outputs]
    flat = values if len(shape) == 1 else [number for value in values for number in value]
    outputs = [
        Tensor("prediction", shape, kind, flat),
        Tensor("cost", [n], "FP64", [a.cost for a in answers]),
        Tensor("stopped", [n], "BYTES", [a.stopped for a in answers]),
    ]
    if plan.classes is not None:
        shown = [p for a in answers if a.probabilities is not None for p in a.probabilities.tolist()]
        outputs.append(Tensor("probabilities", [n, len(plan.classes)], "FP64", shown))
    return outputs


def infer_answer(asked: InferRequest, answer: InferAnswer) -> bytes:
    """The answer as it is sent: the outputs that were asked for, as JSON or as raw bytes."""
    wanted = asked.outputs or [AskedOutput(tensor.name) for tensor in answer.outputs]
    known = {tensor.name: tensor for tensor in answer.outputs}
    chosen, raw = [], []
    for i, output in enumerate(wanted):
        if output.name not in known:
            what = f"There is no output {shorten(output.name)!r}."
            raise RefusedError(what, f"outputs[{i}]", f"There are: {', '.join(known)}.")
        is_binary = output.parameters.binary_data
        if asked.parameters.binary_data_output if is_binary is None else is_binary:
            tensor, data = as_binary(known[output.name])
            chosen.append(tensor)
            raw.append(data)
        else:
            chosen.append(known[output.name])
    answer.outputs = chosen
    head = msgspec.json.encode(answer)
    return TensorBody(head, raw) if raw else head


def model_metadata(name: str, version: str, plan: Plan) -> dict[str, Any]:
    """What `GET /v2/models/{name}` shows: the features, and what comes back."""
    words = {c.name for c in plan.schema.columns if c.kind != "number"} if plan.schema is not None else set()
    features = [plan.costs.features[f] for f in plan.used_features]
    outputs = [{"name": t.name, "datatype": t.datatype, "shape": [-1, *t.shape[1:]]} for t in tensors_of([], plan)]
    return {
        "name": name,
        "versions": [version],
        "platform": "miserly",
        "inputs": [{"name": f, "datatype": "BYTES" if f in words else "FP64", "shape": [-1]} for f in features],
        "outputs": outputs,
    }
