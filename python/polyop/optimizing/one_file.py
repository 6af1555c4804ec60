# SPDX-License-Identifier: Apache-2.0
"""Writes a model with external tensors as one file, tensor by tensor, so that neither all tensors nor the file are in
memory at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

import onnx
import onnx_ir as ir


def write(model: ir.Model, path: Path, step: Callable[[int, int], None] = lambda done, steps: None) -> None:
    """Writes the model. Calls `step` after each tensor. Tensors of subgraphs are loaded into memory first.

    Protobuf allows the fields of a message in any order, so the graph's tensors are the last of its fields. Those of
    the model are in the order of their numbers: OpenVINO takes no file for ONNX that has functions before the graph.
    """
    outside = [v for v in model.graph.initializers.values() if isinstance(v.const_value, ir.ExternalTensor)]
    for graph in model.graphs():
        for value in graph.initializers.values() if graph is not model.graph else ():
            if isinstance(value.const_value, ir.ExternalTensor):
                value.const_value = ir.tensor(value.const_value.numpy(), name=value.name)
    proto = ir.to_proto(model)
    heads = _take_out(proto.graph, {v.name for v in outside})
    rest = proto.graph.SerializeToString()
    proto.ClearField("graph")
    # The bytes before the data of each tensor: its message as a field of the graph, and the tag of the data.
    starts = []
    for value in outside:
        head, nbytes = heads[value.name], value.const_value.nbytes
        data = _field(onnx.TensorProto.RAW_DATA_FIELD_NUMBER, nbytes)
        starts.append(_field(onnx.GraphProto.INITIALIZER_FIELD_NUMBER, len(head) + len(data) + nbytes) + head + data)
    first, last = onnx.ModelProto(), onnx.ModelProto()
    first.CopyFrom(proto)
    last.CopyFrom(proto)
    for field in proto.DESCRIPTOR.fields:
        (first if field.number > onnx.ModelProto.GRAPH_FIELD_NUMBER else last).ClearField(field.name)
    total = len(rest) + sum(len(s) + v.const_value.nbytes for s, v in zip(starts, outside, strict=True))
    with path.open("wb") as file:
        file.write(first.SerializeToString() + _field(onnx.ModelProto.GRAPH_FIELD_NUMBER, total) + rest)
        for i, (start, value) in enumerate(zip(starts, outside, strict=True)):
            file.write(start)
            _copy(cast(ir.ExternalTensor, value.const_value), file)
            step(i + 1, len(outside))
        file.write(last.SerializeToString())


def _take_out(graph: onnx.GraphProto, names: set[str]) -> dict[str, bytes]:
    """Removes tensors. Returns their messages without data, serialized, by name."""
    heads = {}
    for i in reversed(range(len(graph.initializer))):
        tensor = graph.initializer[i]
        if tensor.name in names:
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            heads[tensor.name] = tensor.SerializeToString()
            del graph.initializer[i]
    return heads


def _copy(tensor: ir.ExternalTensor, file: BinaryIO, block: int = 1 << 22) -> None:
    with Path(tensor.path).open("rb") as source:
        source.seek(tensor.offset or 0)
        left = tensor.nbytes
        while left:
            part = source.read(min(left, block))
            if not part:
                raise OSError(f"the data of tensor '{tensor.name}' ends early")
            file.write(part)
            left -= len(part)


def _field(number: int, length: int) -> bytes:
    """Returns the tag and the length that precede a field of `length` bytes."""
    return _varint(number << 3 | 2) + _varint(length)


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])
