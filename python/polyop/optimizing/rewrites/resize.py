# SPDX-License-Identifier: Apache-2.0
"""Resize of modes cubic and linear by products with matrices of weights, and CumSum by one with a triangular matrix."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import constant
from polyop.optimizing.matching import Builder
from polyop.optimizing.rewrites import Build, Without
from polyop.optimizing.rewrites._maker import Dim, Maker, RefusedError, kind_of
from polyop.optimizing.scope import Scope

OPERATORS = ("Resize", "CumSum")

_F32 = ir.DataType.FLOAT
_TRANSFORMATIONS = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
_REAL = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)


def rewrite(scope: Scope, node: ir.Node, without: Without) -> Build:
    return _cumulative_sum(scope, node) if node.op_type == "CumSum" else _resize(scope, node)


def _resize(scope: Scope, node: ir.Node) -> Build:
    x, output = node.inputs[0], node.outputs[0]
    text, number = node.attributes.get_string, node.attributes.get_int
    mode, where = text("mode", "nearest"), text("coordinate_transformation_mode", "half_pixel")
    shape, result = scope.shape(x), scope.shape(output)
    if shape is None or result is None:
        raise RefusedError("expected known shapes")
    if mode == "nearest":
        raise RefusedError("mode nearest has no other nodes here; modes linear and cubic have")
    if where not in _TRANSFORMATIONS:
        raise RefusedError(f"coordinate_transformation_mode {where} is not supported")
    if number("antialias", 0) or text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise RefusedError("antialias and keep_aspect_ratio_policy are not supported")
    if kind_of(x) not in _REAL:
        raise RefusedError(f"expected real numbers, got {kind_of(x).name.lower()}")
    given = node.attributes.get_ints("axes", range(len(shape)))
    axes = [axis % len(shape) for axis in given]
    by_sizes = len(node.inputs) > 3 and node.inputs[3] is not None
    extents = node.inputs[3] if by_sizes else node.inputs[2]
    resized = [axis for axis in axes if not _stays(scope, x, output, extents, axes, axis)]
    rule = _Rule(mode, where, node.attributes.get_float("cubic_coeff_a", -0.75), bool(number("exclude_outside", 0)))
    kind = kind_of(x)

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        m = Maker(b)
        now = dict(zip(dict.fromkeys(v for v in node.inputs if v is not None), inputs, strict=True))
        image = now[x] if kind is _F32 else m.cast(now[x], _F32)
        dims = m.extents(scope, x, now[x])
        for axis in resized:
            value = b("Gather", now[extents], b.constant(axes.index(axis)), axis=0)
            old = m.scalar(dims[axis], _F32)
            size = value if by_sizes else m.cast(b("Floor", b("Mul", old, value)), ir.DataType.INT64)
            scale = b("Div", m.cast(size, _F32), old) if by_sizes else value
            weights = rule.weights(m, dims[axis], size, scale)
            image = _times(m, image, weights, axis, len(dims))
        return [image if kind is _F32 else m.cast(image, kind)]

    return build


def _stays(scope: Scope, x: ir.Value, output: ir.Value, extents: ir.Value, axes: list[int], axis: int) -> bool:
    """Returns True for an axis that is not resized."""
    known = constant(extents)
    if known is not None and known.dtype.kind == "f":
        return bool(known[axes.index(axis)] == 1)
    if axis > 1:
        return False
    return all(a is not None and o is not None and a[axis] == o[axis] for a, o in scope.shapes(x, output))


def _times(m: Maker, image: ir.Value, weights: ir.Value, axis: int, rank: int) -> ir.Value:
    """Returns the image with weights [new, old] applied to an axis."""
    if axis == rank - 2:
        return m.b("MatMul", weights, image)
    order = [i for i in range(rank) if i != axis] + [axis]
    moved = m.b("MatMul", m.transpose(image, order), m.transpose(weights, [1, 0]))
    return m.transpose(moved, [order.index(i) for i in range(rank)])


class _Rule:
    def __init__(self, mode: str, where: str, a: float, exclude_outside: bool) -> None:
        self.mode, self.where, self.a, self.exclude_outside = mode, where, a, exclude_outside

    def weights(self, m: Maker, old: Dim, size: ir.Value, scale: ir.Value) -> ir.Value:
        """Returns the weights [size, old] of the old pixels in each new one."""
        b, real = m.b, m.real
        last = b("Sub", m.scalar(old, _F32), real(1))
        at = self._coordinates(m, m.cast(m.count(size, ir.DataType.INT64), _F32), size, scale, last)
        steps = [0, 1] if self.mode == "linear" else [-1, 0, 1, 2]
        low = b("Floor", at)
        pixels = b("Add", m.unsqueeze(low, 1), b.constant(steps, np.float32))
        weights = self._at(m, b("Abs", b("Sub", m.unsqueeze(at, 1), pixels)))
        if self.exclude_outside and self.mode == "cubic":
            inside = b("And", b("GreaterOrEqual", pixels, real(0)), b("LessOrEqual", pixels, last))
            weights = b("Where", inside, weights, real(0))
            weights = b("Div", weights, m.unsqueeze(m.sum(weights, 1), 1))
        pixels = m.unsqueeze(m.clip(pixels, real(0), last), 2)
        same = b(
            "Equal",
            m.cast(pixels, ir.DataType.INT32),
            m.count(old, ir.DataType.INT32)
            if isinstance(old, int)
            else m.cast(m.count(old, ir.DataType.INT64), ir.DataType.INT32),
        )
        return m.sum(b("Where", same, m.unsqueeze(weights, 2), real(0)), 1)

    def _coordinates(self, m: Maker, at: ir.Value, size: ir.Value, scale: ir.Value, last: ir.Value) -> ir.Value:
        b, real = m.b, m.real
        if self.where == "asymmetric":
            return b("Div", at, scale)
        if self.where == "align_corners":
            steps = b("Max", b("Sub", m.cast(size, _F32), real(1)), real(1))
            return b("Div", b("Mul", at, last), steps)
        moved = b("Sub", b("Div", b("Add", at, real(0.5)), scale), real(0.5))
        if self.where == "half_pixel":
            return moved
        return b("Where", b("Greater", size, b.constant(1)), moved, real(0))

    def _at(self, m: Maker, d: ir.Value) -> ir.Value:
        """Returns the weight at a distance."""
        b, real, a = m.b, m.real, self.a
        if self.mode == "linear":
            return b("Sub", real(1), d)
        near = b("Add", b("Mul", b("Mul", b("Sub", b("Mul", d, real(a + 2)), real(a + 3)), d), d), real(1))
        inner = b("Add", b("Mul", b("Sub", b("Mul", d, real(a)), real(5 * a)), d), real(8 * a))
        far = b("Sub", b("Mul", inner, d), real(4 * a))
        return b("Where", b("LessOrEqual", d, real(1)), near, far)


def _cumulative_sum(scope: Scope, node: ir.Node) -> Build:
    x, axis_value = node.inputs
    shape, known = scope.shape(x), constant(axis_value)
    if shape is None or known is None:
        raise RefusedError("expected a known shape and a constant axis")
    if kind_of(x) not in (*_REAL, ir.DataType.INT32, ir.DataType.INT64):
        raise RefusedError(f"expected numbers, got {kind_of(x).name.lower()}")
    axis, kind = int(known.item()) % len(shape), kind_of(x)
    exclusive, reverse = (node.attributes.get_int(name, 0) for name in ("exclusive", "reverse"))

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        m = Maker(b)
        count = m.count(m.extents(scope, x, inputs[0])[axis], ir.DataType.INT64)
        new, old = m.unsqueeze(count, 1), m.unsqueeze(count, 0)
        low, high = (new, old) if reverse else (old, new)
        counted = b("Less" if exclusive else "LessOrEqual", low, high)
        return [_times(m, inputs[0], m.cast(counted, kind), axis, len(shape))]

    return build
