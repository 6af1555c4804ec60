"""Bicubic enlarging and reducing: ONNX's Resize of pictures with mode cubic, by scales or to sizes, which may be known at run
time only. polyop's nodes take either scales, by one rule (centres of pixels at k + 0.5, a = -0.75, a border that repeats), or
sizes, by any of ONNX's rules: there the step from pixel to pixel is the ratio of the extents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import constant, is_standard
from polyop.optimizing.matching import Builder, Match, name_of
from polyop.optimizing.scope import Scope

NAME = "bicubic resize"
ORDER = 80
BY_SCALES = "custom::DynamicTRTResize"
BY_SIZES = "polyop::CubicResize"

_DEFAULTS = {"coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75, "exclude_outside": 0}
# What the node by sizes is told. The symmetric rule differs where sizes are rounded, and only there.
_TRANSFORMATIONS = {
    "half_pixel": "half_pixel", "half_pixel_symmetric": "half_pixel", "pytorch_half_pixel": "pytorch_half_pixel",
    "align_corners": "align_corners", "asymmetric": "asymmetric",
}  # fmt: skip


def find(scope: Scope) -> Iterator[Match]:
    for node in scope.graph:
        if is_standard(node, "Resize") and "mode" in node.attributes and node.attributes["mode"].value == "cubic":
            yield _match(scope, node)


def _match(scope: Scope, node: ir.Node) -> Match:
    x, output = node.inputs[0], node.outputs[0]
    given = {name: attribute.value for name, attribute in node.attributes.items()}
    meant = {name: given.get(name, value) for name, value in _DEFAULTS.items()}
    by_sizes = len(node.inputs) > 3 and node.inputs[3] is not None
    extents = node.inputs[3] if by_sizes else node.inputs[2]
    shape, result = scope.shape(x), scope.shape(output)
    refused = _refused(given, meant)
    if not refused and (shape is None or result is None or len(shape) != 4 or shape[:2] != result[:2]):
        refused = "polyop resizes the rows and columns of pictures alone"
    places = _places(given.get("axes"))
    if not refused and not {2, 3} <= set(places):
        refused = "its axes are not rows and columns"
    one_node = not by_sizes and meant == _DEFAULTS and places == [0, 1, 2, 3]
    transformation = meant["coordinate_transformation_mode"]
    if not refused and not (by_sizes or one_node or transformation == "align_corners" or _are_whole(extents)):
        refused = "its scales may give extents that are rounded, and where they do polyop knows half pixels alone"
    attributes = {**meant, "coordinate_transformation_mode": _TRANSFORMATIONS.get(transformation)}

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        if one_node:
            return b.node(BY_SCALES, inputs)
        picture, now = inputs
        now = _of_pictures(b, now, places)
        return b.node(BY_SIZES, [picture, now if by_sizes else _scaled(b, picture, now)], attributes)

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        picture, now = arrays
        if constant(extents) is None:
            scales = rng.uniform(0.4, 3, 2)
            new = np.maximum(np.array(picture.shape[2:]) * scales, 1) if by_sizes else scales
            now = now.copy()
            now[[places.index(2), places.index(3)]] = new
        return [rng.standard_normal(picture.shape).astype(picture.dtype), now]

    return Match(name_of(node), [x, extents], [output], build, float(np.prod(result or 0)), refused, feeds=feeds)


def _refused(given: dict[str, Any], meant: dict[str, Any]) -> str:
    allowed = {
        "antialias": given.get("antialias", 0) == 0,
        "keep_aspect_ratio_policy": given.get("keep_aspect_ratio_policy", "stretch") == "stretch",
        "coordinate_transformation_mode": meant["coordinate_transformation_mode"] in _TRANSFORMATIONS,
        "cubic_coeff_a": -1 <= meant["cubic_coeff_a"] <= 0,
    }
    others = [f"{name} {given[name]}" for name, is_allowed in allowed.items() if not is_allowed]
    return f"polyop has no bicubic resize with {', '.join(others)}" if others else ""


def _places(axes: list[int] | None) -> list[int]:
    """Of which dimension of a picture each scale or size is."""
    return [0, 1, 2, 3] if axes is None else [axis % 4 for axis in axes]


def _are_whole(scales: ir.Value) -> bool:
    """Whether extents times these scales are whole numbers, whatever the extents."""
    array = constant(scales)
    return array is not None and bool((array == np.floor(array)).all())


def _of_pictures(b: Builder, extents: ir.Value, places: list[int]) -> ir.Value:
    """The two that belong to rows and columns."""
    if places == [2, 3]:
        return extents
    rows, columns = places.index(2), places.index(3)
    known = constant(extents)
    if known is not None:
        return b.constant(known[[rows, columns]], known.dtype)
    return b("Gather", extents, b.constant([rows, columns]), axis=0)


def _scaled(b: Builder, picture: ir.Value, scales: ir.Value) -> ir.Value:
    """Rows and columns times the scales, rounded down."""
    old = b("Slice", b("Shape", picture), b.constant([2]), b.constant([4]))
    product = b("Mul", b("Cast", old, to=ir.DataType.FLOAT.value), scales)
    return b("Cast", product, to=ir.DataType.INT64.value)
