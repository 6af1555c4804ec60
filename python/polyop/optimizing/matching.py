# SPDX-License-Identifier: Apache-2.0
"""Matches of patterns, and the nodes that replace them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from polyop.errors import one_line


class Builder:
    """Creates the nodes of a replacement, in order. The nodes do not belong to a graph yet."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[ir.Node] = []

    def node(
        self, op: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any] | None = None, outputs: int = 1
    ) -> list[ir.Value]:
        """Creates a node "Type" or "domain::Type".

        Attributes are plain values or `ir.Attr`; None omits an attribute.
        """
        domain, _, op_type = op.rpartition("::")
        given = {k: v for k, v in (attributes or {}).items() if v is not None}
        kept = [v for v in given.values() if isinstance(v, ir.Attr)]
        result = ir.convenience.convert_attributes({k: v for k, v in given.items() if not isinstance(v, ir.Attr)})
        node = ir.Node(domain, op_type, inputs, [*kept, *result], num_outputs=outputs)
        self.nodes.append(node)
        return list(node.outputs)

    def __call__(self, op: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        """Creates a node with one output. Returns the output."""
        return self.node(op, inputs, attributes)[0]

    def constant(self, array: Any, dtype: type | np.dtype = np.int64) -> ir.Value:
        return self("Constant", value=ir.Attr("value", ir.AttributeType.TENSOR, ir.tensor(np.asarray(array, dtype))))


@dataclass
class Match:
    """A part of a graph that polyop can replace: `build` creates nodes that compute `outputs` from `inputs`.

    inputs: all tensors that the part reads, except constants and sizes of tensors.
    outputs: the tensors that other nodes read.
    build: gets a Builder and the inputs, and returns a value per output.
    work: the amount of work, in the unit of `cost.MIN_WORK`.
    what: its name there and in the report, if it differs from the pattern's.
    refused: the reason why it cannot be replaced, in a few words; such a match only appears in the report.
    details: the rest of the reason.
    min_work: the work below which it does not gain, of a pattern of the library; the others' are in `cost.MIN_WORK`.
    feeds: returns further values to compare with, by input index, derived from the model's own.
    tolerance: of real numbers, relative to the scale of each element; None: that of polyop's kernels.
    """

    where: str
    inputs: list[ir.Value]
    outputs: list[ir.Value]
    build: Callable[[Builder, list[ir.Value]], list[ir.Value]]
    work: float
    refused: str = ""
    details: str = ""
    what: str = ""
    is_fix: bool = False  # ONNX Runtime's result differs from the standard, polyop's does not
    is_rounded: bool = False  # its results are rounded to 8 bits: some may differ by one step
    min_work: float | None = None
    feeds: Callable[[np.random.Generator, list[np.ndarray]], list[np.ndarray]] | None = None
    tolerance: float | None = None


def matches_of(nodes: Iterable[ir.Node], match: Callable[[ir.Node], Match | None]) -> Iterator[Match]:
    """Yields the matches that start at these nodes.

    A node for which `match` fails becomes a refused match: models have nodes that no pattern foresees, and the others
    must still be found.
    """
    for node in nodes:
        try:
            found = match(node)
        except Exception as error:
            found = failed_match(name_of(node), error)
        if found is not None:
            yield found


def failed_match(where: str, error: BaseException) -> Match:
    """Returns a match that only appears in the report, for an error of a pattern."""
    return Match(where, [], [], lambda builder, inputs: [], 0, refused="the pattern failed", details=described(error))


def described(error: BaseException) -> str:
    """Returns the type and the text of an error that nobody expected, as one line."""
    return f"{type(error).__name__}: {one_line(error)}"


def name_of(node: ir.Node) -> str:
    return node.name or (node.outputs[0].name or "") or node.op_type
