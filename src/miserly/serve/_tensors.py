"""Tensors of the Open Inference Protocol: in JSON, or as raw bytes behind it (the extension for binary tensors)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from miserly.serve._messages import RefusedError, shorten

PROTOCOL = "https://kserve.github.io/website describes the tensors."
HEADER_LENGTH = b"inference-header-content-length"
DTYPES = {
    "BOOL": np.dtype("?"),
    **{
        f"{word}{8 * size}": np.dtype(f"<{kind}{size}")
        for word, kind in (("INT", "i"), ("UINT", "u"))
        for size in (1, 2, 4, 8)
    },
    **{f"FP{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}


class TensorParameters(msgspec.Struct, omit_defaults=True):
    """How many bytes of the body are the tensor's; whether an output is wanted as bytes."""

    binary_data_size: int | None = None
    binary_data: bool | None = None


class Tensor(msgspec.Struct, omit_defaults=True):
    """Values by name. `data` is flat, in row-major order, or nested as `shape` says; without it, the values are bytes
    behind the JSON."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any] | None = None
    parameters: TensorParameters | None = None


class TensorBody(bytes):
    """JSON, then the bytes of tensors; `json_size` says where the JSON ends."""

    json_size: int

    def __new__(cls, head: bytes, raw: Iterable[bytes]) -> TensorBody:
        body = super().__new__(cls, head + b"".join(raw))
        body.json_size = len(head)
        return body


def json_size(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> int | None:
    """Where the JSON of a body ends, if tensors follow as bytes."""
    for name, value in headers:
        if name == HEADER_LENGTH:
            if not value.isdigit() or int(value) > len(body):
                what = f"{shorten(value.decode('latin-1'))!r} is not the length of a part of the body."
                raise RefusedError(what, f"header {name.decode()}", PROTOCOL)
            return int(value)
    return None


def read_binary(tensors: Sequence[Tensor], raw: bytes) -> None:
    """Take the values of tensors from the bytes behind the JSON, in the order of the tensors."""
    at = 0
    for i, tensor in enumerate(tensors):
        size = None if tensor.parameters is None else tensor.parameters.binary_data_size
        if size is None:
            continue
        if tensor.data is not None or not 0 <= size <= len(raw) - at:
            raise RefusedError(f"Its {size} bytes are not in the body, or it has data too.", f"inputs[{i}]", PROTOCOL)
        tensor.data = _values(tensor, raw[at : at + size], f"inputs[{i}]")
        at += size
    if at < len(raw):
        raise RefusedError(f"{len(raw) - at} bytes at the end belong to no tensor.", "body", PROTOCOL)


def _values(tensor: Tensor, data: bytes, where: str) -> list[Any]:
    n = math.prod(tensor.shape)
    if tensor.datatype == "BYTES":
        return _texts(data, where)
    if tensor.datatype not in DTYPES:
        known = ", ".join((*DTYPES, "BYTES"))
        raise RefusedError(f"Unknown datatype {shorten(tensor.datatype)!r}.", where, f"There are: {known}.")
    dtype = DTYPES[tensor.datatype]
    if n * dtype.itemsize != len(data):
        raise RefusedError(f"A tensor of shape {tensor.shape[:8]} has {len(data)} bytes.", where, PROTOCOL)
    values = np.frombuffer(data, dtype)
    if dtype.kind != "f":
        return list(values.tolist())
    if np.isinf(values).any():
        raise RefusedError("A value is infinite.", where, "Send a finite number, or NaN for a missing value.")
    return [None if value != value else value for value in values.tolist()]


def _texts(data: bytes, where: str) -> list[str]:
    """Texts, each after its length in four bytes."""
    texts, at = [], 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        if at + 4 > len(data) or end > len(data):
            raise RefusedError("A text is longer than its tensor.", where, PROTOCOL)
        try:
            texts.append(data[at + 4 : end].decode())
        except UnicodeDecodeError:
            raise RefusedError("A text is not UTF-8.", where, PROTOCOL) from None
        at = end
    return texts


def as_binary(tensor: Tensor) -> tuple[Tensor, bytes]:
    """A tensor without its data, and the data as bytes."""
    if tensor.datatype == "BYTES":
        texts = [str(value).encode() for value in tensor.data or ()]
        data = b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    else:
        plain = [math.nan if value is None else value for value in tensor.data or ()]
        data = np.array(plain, DTYPES[tensor.datatype]).tobytes()
    head = Tensor(tensor.name, tensor.shape, tensor.datatype, None, TensorParameters(binary_data_size=len(data)))
    return head, data
