# SPDX-License-Identifier: Apache-2.0
"""Bicubic resizing: ONNX's Resize of images with mode cubic, by scales or to sizes, which may be computed at run time.

polyop's nodes take either scales, with one rule (pixel centres at k + 0.5, a = -0.75, repeated border), or sizes, with
any of ONNX's rules: there the step between pixels is the ratio of the sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import constant, is_standard
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope

NAME = "bicubic resize"
ORDER = 80
BY_SCALES = "custom::DynamicTRTResize"
BY_SIZES = "polyop::CubicResize"

_DEFAULTS = {"coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75, "exclude_outside": 0}
# Attributes of the node by sizes. The symmetric rule only differs if sizes are rounded.
_TRANSFORMATIONS = {
    "half_pixel": "half_pixel",
    "half_pixel_symmetric": "half_pixel",
    "pytorch_half_pixel": "pytorch_half_pixel",
    "align_corners": "align_corners",
    "asymmetric": "asymmetric",
}


def find(scope: Scope) -> Iterator[Match]:
    resized = (
        n for n in scope.graph if is_standard(n, "Resize") and n.attributes.get_string("mode", "nearest") == "cubic"
    )
    yield from matches_of(resized, lambda node: _match(scope, node))


def _match(scope: Scope, node: ir.Node) -> Match:
    x, output = node.inputs[0], node.outputs[0]
    given = {name: attribute.value for name, attribute in node.attributes.items()}
    attributes_used = {name: given.get(name, value) for name, value in _DEFAULTS.items()}
    by_sizes = len(node.inputs) > 3 and node.inputs[3] is not None
    extents = node.inputs[3] if by_sizes else node.inputs[2]
    shape, result = scope.shape(x), scope.shape(output)
    refused = _refused(given, attributes_used)
    if not refused and (shape is None or result is None or len(shape) != 4 or shape[:2] != result[:2]):
        refused = "expected a resize of the last two dimensions of images"
    dims = _dims(given.get("axes"))
    if not refused and not {2, 3} <= set(dims):
        refused = "expected axes of rows and columns"
    one_node = not by_sizes and attributes_used == _DEFAULTS and dims == [0, 1, 2, 3]
    transformation = attributes_used["coordinate_transformation_mode"]
    if not refused and not (by_sizes or one_node or transformation == "align_corners" or _are_integers(extents)):
        refused = "its scales may give rounded sizes, for which polyop only supports half pixels"
    attributes = {**attributes_used, "coordinate_transformation_mode": _TRANSFORMATIONS.get(transformation)}

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        if one_node:
            return b.node(BY_SCALES, inputs)
        image, now = inputs
        now = _of_images(b, now, dims)
        return b.node(BY_SIZES, [image, now if by_sizes else _scaled(b, image, now)], attributes)

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        image, now = arrays
        if constant(extents) is None:
            scales = rng.uniform(0.4, 3, 2)
            new = np.maximum(np.array(image.shape[2:]) * scales, 1) if by_sizes else scales
            now = now.copy()
            now[[dims.index(2), dims.index(3)]] = new
        return [rng.standard_normal(image.shape).astype(image.dtype), now]

    return Match(name_of(node), [x, extents], [output], build, float(np.prod(result or 0)), refused, feeds=feeds)


def _refused(given: dict[str, Any], attributes_used: dict[str, Any]) -> str:
    allowed = {
        "antialias": given.get("antialias", 0) == 0,
        "keep_aspect_ratio_policy": given.get("keep_aspect_ratio_policy", "stretch") == "stretch",
        "coordinate_transformation_mode": attributes_used["coordinate_transformation_mode"] in _TRANSFORMATIONS,
        "cubic_coeff_a": -1 <= attributes_used["cubic_coeff_a"] <= 0,
    }
    others = [f"{name} {given[name]}" for name, is_allowed in allowed.items() if not is_allowed]
    return f"polyop has no bicubic resize with {', '.join(others)}" if others else ""


def _dims(axes: list[int] | None) -> list[int]:
    """Returns the dimension of an image for each scale or size."""
    return [0, 1, 2, 3] if axes is None else [axis % 4 for axis in axes]


def _are_integers(scales: ir.Value) -> bool:
    """Returns True if sizes times these scales are integers for any sizes."""
    array = constant(scales)
    return array is not None and bool((array == np.floor(array)).all())


def _of_images(b: Builder, extents: ir.Value, dims: list[int]) -> ir.Value:
    """Returns the two values for rows and columns."""
    if dims == [2, 3]:
        return extents
    rows, columns = dims.index(2), dims.index(3)
    known = constant(extents)
    if known is not None:
        return b.constant(known[[rows, columns]], known.dtype)
    return b("Gather", extents, b.constant([rows, columns]), axis=0)


def _scaled(b: Builder, image: ir.Value, scales: ir.Value) -> ir.Value:
    """Returns rows and columns times the scales, rounded down."""
    old = b("Slice", b("Shape", image), b.constant([2]), b.constant([4]))
    product = b("Mul", b("Cast", old, to=ir.DataType.FLOAT.value), scales)
    return b("Cast", product, to=ir.DataType.INT64.value)
