"""Corner pooling (Law and Deng, 2018) written out as a loop, unrolled by the exporters:

    row = x[0]; rows = [row]
    for i in 1 …: row = maximum(row, x[i]); rows.append(row)
    y = stack(rows)

along rows or columns of pictures, from the first to the last or from the last to the first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import constant, is_standard, made_by
from polyop.optimizing.matching import Builder, Match, name_of
from polyop.optimizing.scope import Scope

NAME = "corner pooling"
ORDER = 50
NODE = "mmcv::MMCVCornerPool"
_MODES = {(2, True): "bottom", (2, False): "top", (3, True): "right", (3, False): "left"}


def find(scope: Scope) -> Iterator[Match]:
    for node in scope.graph:
        if is_standard(node, "Concat") and (match := _match(scope, node)):
            yield match


def _match(scope: Scope, stacked: ir.Node) -> Match | None:
    axis, output = stacked.attributes["axis"].value, stacked.outputs[0]
    rows = [_row(v) for v in stacked.inputs]
    shape = scope.shape(output)
    if shape is None or len(shape) != 4 or len(rows) < 2 or None in rows:
        return None
    axis %= 4
    for forward in (True, False):
        x = _maximum_so_far(rows if forward else rows[::-1], axis, range(len(rows))[:: 1 if forward else -1])
        if x is None or scope.shape(x) != shape or (axis, forward) not in _MODES:
            continue
        mode = ("top", "bottom", "left", "right").index(_MODES[axis, forward])

        def build(b: Builder, inputs: list[ir.Value], mode: int = mode) -> list[ir.Value]:
            return b.node(NODE, inputs, {"mode": mode})

        return Match(name_of(stacked), [x], [output], build, float(np.prod(shape)))
    return None


def _row(value: ir.Value) -> ir.Value | None:
    """What was given the stack's dimension."""
    node = made_by(value, "Unsqueeze", "Reshape")
    return node.inputs[0] if node is not None else None


def _maximum_so_far(rows: list[ir.Value], axis: int, places: range) -> ir.Value | None:
    """x, if the first of the rows is x's at the first place, and each other the maximum of that before and x's at its."""
    x = _taken(rows[0], axis, places[0], len(rows))
    if x is None:
        return None
    for before, row, place in zip(rows, rows[1:], places[1:], strict=False):
        larger = made_by(row, "Max")
        others = [v for v in larger.inputs if v is not before] if larger is not None else []
        if len(others) != 1 or _taken(others[0], axis, place, len(rows)) is not x:
            return None
    return x


def _taken(row: ir.Value, axis: int, place: int, extent: int) -> ir.Value | None:
    """x of row = x[place] along the axis."""
    node = made_by(row, "Gather")
    index = constant(node.inputs[1]) if node is not None else None
    if index is None or index.ndim or int(index) % extent != place or node.attributes["axis"].value % 4 != axis:
        return None
    return node.inputs[0]
