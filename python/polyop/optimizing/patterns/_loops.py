# SPDX-License-Identifier: Apache-2.0
"""The states that a Loop or a Scan passes from step to step, and the results of each step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import onnx_ir as ir

from polyop.optimizing.graph import is_standard, subgraphs_of


@dataclass(frozen=True)
class State:
    first: ir.Value  # before the first step
    before: ir.Value  # in the body: at the start of a step
    after: ir.Value  # in the body: at the end of a step
    last: ir.Value  # after the last step


def body_of(loop: ir.Node) -> ir.Graph:
    return loop.attributes["body"].value


def states(loop: ir.Node) -> list[State]:
    return [State(*s) for s in zip(_firsts(loop), _inputs(loop), _outputs(loop), loop.outputs, strict=False)]


def of_steps(loop: ir.Node) -> list[tuple[ir.Value, ir.Value]]:
    """Returns pairs: the result of a step in the body, and the concatenated results of all steps."""
    count = len(_firsts(loop))
    return list(zip(_outputs(loop)[count:], loop.outputs[count:], strict=True))


def scanned(loop: ir.Node) -> tuple[ir.Value, int]:
    """Returns the first tensor that a Scan slices, and the axis."""
    axes = loop.attributes.get("scan_input_axes")
    return loop.inputs[len(_firsts(loop))], axes.value[0] if axes is not None else 0


def with_inner(nodes: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """Yields the nodes and those of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attributes.values():
            for graph in subgraphs_of(attribute):
                yield from with_inner(graph)


def _firsts(loop: ir.Node) -> list[ir.Value]:
    if is_standard(loop, "Loop"):
        return list(loop.inputs[2:])
    return list(loop.inputs[: len(loop.inputs) - loop.attributes["num_scan_inputs"].value])


def _inputs(loop: ir.Node) -> list[ir.Value]:
    """Returns the inputs of the body, without a Loop's step number and condition."""
    return list(body_of(loop).inputs[2 if is_standard(loop, "Loop") else 0 :])


def _outputs(loop: ir.Node) -> list[ir.Value]:
    """Returns the outputs of the body, without a Loop's condition."""
    return list(body_of(loop).outputs[1 if is_standard(loop, "Loop") else 0 :])
