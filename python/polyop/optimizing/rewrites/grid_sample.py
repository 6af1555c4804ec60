# SPDX-License-Identifier: Apache-2.0
"""GridSample by one Gather of the pixels around each point, and a weighted sum.

Pixels are rows of a table, whose last row is the zero outside of the image. Indices are int32, which DirectML and
WebGPU compute with.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import onnx_ir as ir

from polyop.optimizing.matching import Builder
from polyop.optimizing.rewrites import Build, Without
from polyop.optimizing.rewrites._maker import Dim, Maker, RefusedError, kind_of
from polyop.optimizing.scope import Scope

OPERATORS = ("GridSample",)

_MODES = {"bilinear": "linear", "bicubic": "cubic"}  # the names up to opset 19
_A = -0.75  # of the cubic weights
_I32, _I64, _F32, _F64 = ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT, ir.DataType.DOUBLE


def rewrite(scope: Scope, node: ir.Node, without: Without) -> Build:
    image, grid = node.inputs
    mode = node.attributes.get_string("mode", "linear")
    mode = _MODES.get(mode, mode)
    shape = scope.shape(image)
    if shape is None or len(shape) not in (4, 5):
        raise RefusedError("expected images or volumes of a known rank")
    if mode == "cubic" and len(shape) == 5:
        raise RefusedError("ONNX has no cubic samples of volumes")
    kind = _F64 if _F64 in (kind_of(image), kind_of(grid)) else _F32
    rule = _Rule(
        mode, node.attributes.get_string("padding_mode", "zeros"), bool(node.attributes.get_int("align_corners", 0)),
        kind,
    )  # fmt: skip

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        m = Maker(b)
        sizes, points = m.extents(scope, image, inputs[0]), m.extents(scope, grid, inputs[1])[1:-1]
        return [_sampled(m, rule, kind_of(image), inputs[0], sizes, _as(m, inputs[1], kind_of(grid), kind), points)]

    return build


@dataclass(frozen=True)
class _Rule:
    mode: str
    padding: str
    align: bool
    kind: ir.DataType  # of coordinates and sums

    def number(self, m: Maker, value: float) -> ir.Value:
        return m.real(value, self.kind.numpy().type)


def _as(m: Maker, x: ir.Value, given: ir.DataType, kind: ir.DataType) -> ir.Value:
    return x if given is kind else m.cast(x, kind)


def _sampled(
    m: Maker, rule: _Rule, given: ir.DataType, image: ir.Value, sizes: list[Dim], grid: ir.Value, points: list[Dim]
) -> ir.Value:
    b, (number, channels, *extents) = m.b, sizes
    axes, pixels, many = len(extents), m.product(extents), m.product(points)
    is_summed = rule.mode != "nearest"
    rows = m.transpose(image, [0, *range(2, axes + 2), 1])
    rows = m.reshape(rows, [m.product([number, pixels]), channels])
    rows = _as(m, rows, given, rule.kind) if is_summed else rows
    outside = b("Expand", _zero(m, rule.kind if is_summed else given), m.vector([1, channels]))
    table = b("Concat", rows, outside, axis=0)

    flat = m.reshape(grid, [number, many, axes])
    index: ir.Value | None = None
    inside, weights = [], []
    for k, extent in enumerate(extents):  # coordinates are in the opposite order
        at = b("Gather", flat, b.constant(axes - 1 - k), axis=2)
        place, weight = _taps(m, rule, at, extent)
        others = [axis for axis in range(2, axes + 2) if axis != 2 + k]
        last = _last(m, rule, extent)
        within = b("And", b("GreaterOrEqual", place, rule.number(m, 0)), b("LessOrEqual", place, last))
        whole = m.cast(b("Where", within, place, rule.number(m, 0)), _I32)
        whole, within = m.unsqueeze(whole, *others), m.unsqueeze(within, *others)
        index = whole if index is None else b("Add", b("Mul", index, m.scalar(extent, _I32)), whole)
        inside.append(within)
        if weight is not None:
            weights.append(m.unsqueeze(weight, *others))
    assert index is not None
    first = b("Mul", m.count(number, _I32), m.scalar(pixels, _I32))
    index = b("Add", index, m.unsqueeze(first, *range(1, axes + 2)))
    outer = m.scalar(m.product([number, pixels]), _I32)
    index = b("Where", reduce(lambda x, y: b("And", x, y), inside), index, outer)
    taps = {"nearest": 1, "linear": 2, "cubic": 4}[rule.mode] ** axes
    found = b("Gather", table, m.reshape(index, [number, many, taps]), axis=0)  # [N, P, K, C]
    if is_summed:
        weight = m.reshape(reduce(lambda x, y: b("Mul", x, y), weights), [number, many, taps, 1])
        found = m.sum(b("Mul", found, weight), 2)
    else:
        found = b("Squeeze", found, m.ints(2))
    result = m.reshape(m.transpose(found, [0, 2, 1]), [number, channels, *points])
    return _as(m, result, rule.kind, given) if is_summed else result


def _zero(m: Maker, kind: ir.DataType) -> ir.Value:
    return m.b.constant(np.zeros((1, 1), kind.numpy()), kind.numpy())


def _last(m: Maker, rule: _Rule, extent: Dim) -> ir.Value:
    """Returns the position of the last pixel."""
    if isinstance(extent, int):
        return rule.number(m, extent - 1)
    return m.b("Sub", m.scalar(extent, rule.kind), rule.number(m, 1))


def _taps(m: Maker, rule: _Rule, at: ir.Value, extent: Dim) -> tuple[ir.Value, ir.Value | None]:
    """Returns the positions of the pixels around each point [N, P, K], integers, and their weights, or None."""
    b, size, last = m.b, m.scalar(extent, rule.kind), _last(m, rule, extent)
    number = lambda value: rule.number(m, value)  # noqa: E731
    at = b("Add", at, number(1))
    if rule.align:
        at = b("Mul", b("Div", at, number(2)), last)
    else:
        at = b("Div", b("Sub", b("Mul", at, size), number(1)), number(2))
    if rule.mode == "nearest":
        at = b("Round", at)
    if rule.mode != "cubic":
        at = _padded(m, rule, at, last)
    if rule.padding == "zeros":  # far points are as far as near ones, and finite
        at = m.clip(at, number(-3), b("Add", last, number(3)))
    if rule.mode == "nearest":
        return m.unsqueeze(at, 2), None
    low = b("Floor", at)
    part = m.unsqueeze(b("Sub", at, low), 2)
    steps = [0, 1] if rule.mode == "linear" else [-1, 0, 1, 2]
    place = b("Add", m.unsqueeze(low, 2), b.constant(steps, rule.kind.numpy()))
    place = _padded(m, rule, place, last)
    rest = b("Sub", number(1), part)
    if rule.mode == "linear":
        return place, b("Concat", rest, part, axis=2)
    parts = [_far(m, rule, part), _near(m, rule, part), _near(m, rule, rest), _far(m, rule, rest)]
    return place, b("Concat", *parts, axis=2)


def _near(m: Maker, rule: _Rule, t: ir.Value) -> ir.Value:
    """Returns the cubic weight at distance t <= 1: ((a + 2) t - (a + 3)) t² + 1."""
    b = m.b
    inner = b("Sub", b("Mul", t, rule.number(m, _A + 2)), rule.number(m, _A + 3))
    return b("Add", b("Mul", b("Mul", inner, t), t), rule.number(m, 1))


def _far(m: Maker, rule: _Rule, t: ir.Value) -> ir.Value:
    """Returns the cubic weight at distance s = t + 1: ((a s - 5 a) s + 8 a) s - 4 a."""
    b = m.b
    s = b("Add", t, rule.number(m, 1))
    inner = b(
        "Add", b("Mul", b("Sub", b("Mul", s, rule.number(m, _A)), rule.number(m, 5 * _A)), s), rule.number(m, 8 * _A)
    )
    return b("Sub", b("Mul", inner, s), rule.number(m, 4 * _A))


def _padded(m: Maker, rule: _Rule, at: ir.Value, last: ir.Value) -> ir.Value:
    """Returns positions that padding has moved into the image."""
    if rule.padding == "zeros":
        return at
    zero = rule.number(m, 0)
    if rule.padding == "border":
        return m.clip(at, zero, last)
    # From the end that the point is beyond, back and forth, in the order in which ONNX Runtime rounds.
    b = m.b
    low = rule.number(m, 0 if rule.align else -0.5)
    high = last if rule.align else b("Add", last, rule.number(m, 0.5))
    span = b("Max", b("Sub", high, low), rule.number(m, 1)) if rule.align else b("Sub", high, low)
    below, above = b("Sub", low, at), b("Sub", at, high)
    beyond = b("Max", below, above)
    turns = b("Floor", b("Div", beyond, span))
    rest = b("Sub", beyond, b("Mul", turns, span))
    half = b("Div", turns, rule.number(m, 2))
    from_low = b("Xor", b("Greater", below, zero), b("Greater", half, b("Floor", half)))
    moved = b("Where", from_low, b("Add", low, rest), b("Sub", high, rest))
    return m.clip(b("Where", b("Greater", beyond, zero), moved, at), zero, last)
