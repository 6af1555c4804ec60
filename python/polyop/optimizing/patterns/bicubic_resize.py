"""Bicubic enlarging and reducing by scales or to sizes that may be known at run time only, as in SRCNN: ONNX's Resize of
pictures with mode cubic, centres of pixels at k + 0.5, a = -0.75 and a border that repeats."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import constant, is_standard
from polyop.optimizing.matching import Builder, Match, name_of
from polyop.optimizing.scope import Scope

NAME = "bicubic resize"
ORDER = 80
NODE = "custom::DynamicTRTResize"

# What polyop's node computes, and what a node that does not say it means.
_MEANING = {
    "coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75, "exclude_outside": 0, "antialias": 0,
    "keep_aspect_ratio_policy": "stretch", "axes": None,
}  # fmt: skip


def find(scope: Scope) -> Iterator[Match]:
    for node in scope.graph:
        if is_standard(node, "Resize") and "mode" in node.attributes and node.attributes["mode"].value == "cubic":
            yield _match(scope, node)


def _match(scope: Scope, node: ir.Node) -> Match:
    x, output = node.inputs[0], node.outputs[0]
    shape, result = scope.shape(x), scope.shape(output)
    refused = _refused(node)
    if not refused and (shape is None or result is None or len(shape) != 4 or shape[:2] != result[:2]):
        refused = "polyop resizes the rows and columns of pictures alone"
    by_sizes = len(node.inputs) > 3 and node.inputs[3] is not None
    extents = node.inputs[3] if by_sizes else node.inputs[2]

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        return [b(NODE, inputs[0], _scales_of(b, *inputs) if by_sizes else inputs[1])]

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        picture, now = arrays
        if constant(extents) is None:
            scales = rng.uniform(0.4, 3, 2)
            new = np.maximum(np.array(picture.shape[2:]) * scales, 1) if by_sizes else scales
            now = np.concatenate([now[:2], new]).astype(now.dtype)
        return [rng.standard_normal(picture.shape).astype(picture.dtype), now]

    return Match(name_of(node), [x, extents], [output], build, float(np.prod(result or 0)), refused, feeds=feeds)


def _refused(node: ir.Node) -> str:
    given = {name: attribute.value for name, attribute in node.attributes.items()}
    others = [f"{name} {given[name]}" for name, meant in _MEANING.items() if given.get(name, meant) != meant]
    return f"polyop has no bicubic resize with {', '.join(others)}" if others else ""


def _scales_of(b: Builder, x: ir.Value, sizes: ir.Value) -> ir.Value:
    """sizes / extents of x, a little more than rounded: extents times scales are rounded down to sizes again."""
    float_type = ir.DataType.FLOAT.value
    new, old = (
        b("Cast", b("Slice", whole, b.constant([2]), b.constant([4])), to=float_type)
        for whole in (sizes, b("Shape", x))
    )
    ratio = b("Mul", b("Div", new, old), b.constant(1 + 2.0**-22, np.float32))
    return b("Concat", b.constant([1, 1], np.float32), ratio, axis=0)
