# SPDX-License-Identifier: Apache-2.0
"""Writes nodes of ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

_AXES_ARE_INPUTS = 18  # of ReduceMax, from this opset on


class Nodes:
    """Nodes in the order of their creation, whose names begin with `prefix`. Values are names."""

    def __init__(self, opset: int, prefix: str) -> None:
        self.opset = opset
        self.prefix = prefix
        self.nodes: list[onnx.NodeProto] = []

    def several(self, op: str, inputs: Sequence[str], outputs: int, **attributes: Any) -> list[str]:
        """Creates a node "Type" or "domain::Type". Returns its outputs."""
        domain, _, op_type = op.rpartition("::")
        name = f"{self.prefix}/{len(self.nodes)}_{op_type}"
        names = [f"{name}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, name, domain=domain, **attributes))
        return names

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Creates a node with one output. Returns the output."""
        return self.several(op, inputs, 1, **attributes)[0]

    def constant(self, value: Any, dtype: type = np.int64) -> str:
        return self("Constant", value=numpy_helper.from_array(np.asarray(value, dtype)))

    def real(self, value: Any) -> str:
        return self.constant(value, np.float32)

    def cast(self, value: str, to: int) -> str:
        return self("Cast", value, to=to)

    def columns(self, value: str, start: int, end: int, axis: int = -1) -> str:
        """Returns the elements from `start` to `end` of an axis, the last one by default."""
        return self("Slice", value, self.constant([start]), self.constant([end]), self.constant([axis]))

    def concat(self, *values: str, axis: int = -1) -> str:
        return self("Concat", *values, axis=axis)

    def extents(self, value: str, start: int, end: int) -> str:
        """Returns dimensions `start` to `end` of a value."""
        return self.columns(self("Shape", value), start, end, axis=0)

    def extreme(self, op: str, value: str, axis: int, keepdims: bool = True) -> str:
        """Creates ReduceMax or ReduceMin."""
        if self.opset >= _AXES_ARE_INPUTS:
            return self(op, value, self.constant([axis]), keepdims=int(keepdims))
        return self(op, value, axes=[axis], keepdims=int(keepdims))

    def rename(self, value: str, name: str) -> None:
        """Gives a value that one of the nodes computes another name. An Identity would leave two names, of which
        OpenVINO reports either."""
        for node in self.nodes:
            for names in (node.input, node.output):
                names[:] = [name if old == value else old for old in names]

    def rows(self, table: str, numbers: str) -> str:
        """Returns rows [N, K, ...] of a table [N, B, ...] by their numbers [N, K]."""
        indices = self("Unsqueeze", self.cast(numbers, onnx.TensorProto.INT64), self.constant([-1]))
        return self("GatherND", table, indices, batch_dims=1)
