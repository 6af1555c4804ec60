"""What patterns find, and what is put in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir


class Builder:
    """Makes the nodes of a replacement, in order; nothing is in a graph yet."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[ir.Node] = []

    def node(
        self, op: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any] | None = None, outputs: int = 1
    ) -> list[ir.Value]:
        """A node "Type" or "domain::Type"; attributes are plain values or `ir.Attr`; None stands for no attribute."""
        domain, _, op_type = op.rpartition("::")
        given = {k: v for k, v in (attributes or {}).items() if v is not None}
        kept = [v for v in given.values() if isinstance(v, ir.Attr)]
        made = ir.convenience.convert_attributes({k: v for k, v in given.items() if not isinstance(v, ir.Attr)})
        node = ir.Node(domain, op_type, inputs, [*kept, *made], num_outputs=outputs)
        self.nodes.append(node)
        return list(node.outputs)

    def __call__(self, op: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        """A node of one output."""
        return self.node(op, inputs, attributes)[0]

    def constant(self, array: Any, dtype: type | np.dtype = np.int64) -> ir.Value:
        return self("Constant", value=ir.Attr("value", ir.AttributeType.TENSOR, ir.tensor(np.asarray(array, dtype))))


@dataclass
class Match:
    """A place in a graph that polyop can compute: `build` makes nodes that compute `outputs` of `inputs`.

    inputs: every tensor that the place computes with, but for constants and sizes of tensors.
    outputs: what other nodes read of it.
    build: gets a Builder and the inputs, and returns as many values as there are outputs.
    work: how much the kernel does, in the unit of `cost.LEAST_WORK`.
    what: its name there and in the report, where it is not the pattern's.
    refused: why it cannot be replaced; then only the report has it.
    feeds: further values of inputs to compare with, by position, made from those that the model gave.
    """

    where: str
    inputs: list[ir.Value]
    outputs: list[ir.Value]
    build: Callable[[Builder, list[ir.Value]], list[ir.Value]]
    work: float
    refused: str = ""
    what: str = ""
    is_fix: bool = False  # ONNX Runtime's result is not what the standard says, and polyop's is
    feeds: Callable[[np.random.Generator, list[np.ndarray]], list[np.ndarray]] | None = None


def name_of(node: ir.Node) -> str:
    return node.name or (node.outputs[0].name or "") or node.op_type
