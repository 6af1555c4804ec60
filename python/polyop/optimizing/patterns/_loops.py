"""What a Loop or a Scan hands from step to step, and what comes of each step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import onnx_ir as ir

from polyop.optimizing.graph import is_standard, subgraphs_of


@dataclass(frozen=True)
class State:
    first: ir.Value  # before the first step
    before: ir.Value  # in the body: what a step begins with
    after: ir.Value  # and what it ends with
    last: ir.Value  # behind the last step


def body_of(loop: ir.Node) -> ir.Graph:
    return loop.attributes["body"].value


def states(loop: ir.Node) -> list[State]:
    return [State(*s) for s in zip(_firsts(loop), _inputs(loop), _outputs(loop), loop.outputs, strict=False)]


def of_steps(loop: ir.Node) -> list[tuple[ir.Value, ir.Value]]:
    """What comes of each step: in the body, and of all steps together."""
    count = len(_firsts(loop))
    return list(zip(_outputs(loop)[count:], loop.outputs[count:], strict=True))


def scanned(loop: ir.Node) -> tuple[ir.Value, int]:
    """The first tensor of which a Scan takes a slice in each step, and along which axis."""
    axes = loop.attributes.get("scan_input_axes")
    return loop.inputs[len(_firsts(loop))], axes.value[0] if axes is not None else 0


def with_inner(nodes: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """The nodes, and those of their subgraphs."""
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
    """Of the body, without a Loop's number of the step and its condition."""
    return list(body_of(loop).inputs[2 if is_standard(loop, "Loop") else 0 :])


def _outputs(loop: ir.Node) -> list[ir.Value]:
    """Of the body, without a Loop's condition."""
    return list(body_of(loop).outputs[1 if is_standard(loop, "Loop") else 0 :])
