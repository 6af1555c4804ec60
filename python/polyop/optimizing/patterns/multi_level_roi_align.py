# SPDX-License-Identifier: Apache-2.0
"""RoIAlign over a feature pyramid as torchvision's MultiScaleRoIAlign writes it (Lin et al., 2017):

    levels = clip(floor(canonical_level + log2(sqrt(area of the boxes) / canonical_scale) + 1e-6), first, last) - first
    for each level: result[levels == level] = roi_align(features of the level, boxes[levels == level])

polyop's node uses floor(log2(sqrt(area) / finest + 1e-6)), finest = canonical_scale / 2^(canonical_level - first). This
is equal except within a millionth of a level's limit, where the result depends on rounding in torch and ONNX Runtime,
too. A box of negative area, or with NaN, has no level and a result of 0: it is moved out of the image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import is_standard, producer, trail
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope

NAME = "multi-level RoIAlign"
ORDER = 20
NODE = "mmdeploy::MMCVMultiLevelRoiAlign"


@dataclass
class _Pooling:
    """The nodes of a multi-level RoIAlign."""

    last: ir.Node  # of the chain that merges the levels
    poolers: list[ir.Node]  # a RoiAlign for each level, in the order of the chain
    levels: list[ir.Node]  # Equal(levels of the boxes, a level) for each of them


def find(scope: Scope) -> Iterator[Match]:
    def match(node: ir.Node) -> Match | None:
        return _match(scope, found) if (found := _recognise(node)) else None

    yield from matches_of((n for n in scope.graph if is_standard(n, "ScatterElements")), match)


# ---- The nodes ----


def _recognise(node: ir.Node) -> _Pooling | None:
    """Recognizes the chain of nodes that scatter the levels' results; `node` is the last."""
    if any(_scatters(user) and i == 0 for user, i in node.outputs[0].uses()):
        return None
    poolers: list[ir.Node] = []
    levels: list[ir.Node] = []
    step = node
    while _scatters(step):
        base, index, updates = step.inputs
        pooler, level = producer(_uncast(updates), "RoiAlign"), _chosen(index)
        if pooler is None or level is None:
            return None
        poolers.insert(0, pooler)
        levels.insert(0, level)
        step = base.producer()
    return _Pooling(node, poolers, levels) if len(poolers) > 1 else None


def _scatters(node: ir.Node | None) -> bool:
    if not is_standard(node, "ScatterElements"):
        return False
    given = {name: attribute.value for name, attribute in node.attributes.items()}
    return given.get("axis", 0) == 0 and given.get("reduction", "none") == "none"


def _uncast(value: ir.Value) -> ir.Value:
    while (node := producer(value, "Cast", "Identity")) is not None:
        value = node.inputs[0]
    return value


def _chosen(index: ir.Value) -> ir.Node | None:
    """Returns the Equal of index = Expand(Reshape(NonZero(Equal(levels, level))), …), or None."""
    value = index
    for _ in range(12):
        node = producer(value, "Expand", "NonZero", "Cast") or producer(trail(value)[-1], "Expand", "NonZero", "Cast")
        if node is None:
            return None
        value = node.inputs[0]
        if node.op_type == "NonZero":
            return producer(_uncast(value), "Equal")
    return None


# ---- The match ----


def _match(scope: Scope, found: _Pooling) -> Match:
    output = found.last.outputs[0]
    where = name_of(found.last)

    def refused(why: str) -> Match:
        return Match(where, [], [output], lambda b, i: [], 0, why)

    features = [pooler.inputs[0] for pooler in found.poolers]
    if [_level(scope, equal) for equal in found.levels] != list(range(len(features))):
        return refused("expected levels in ascending order")
    boxes = _images_boxes(scope, found.poolers[0])
    if boxes is None:
        return refused("expected a tensor [boxes, 4] per image")
    shapes = [scope.shape(v) for v in [*boxes, *features, output]]
    if None in shapes:
        return refused("expected known shapes of its tensors")
    if shapes[-1][0] == 0:
        return refused("there were no boxes in the run of the model, so that nothing can be compared")
    finest = _finest(scope, found.levels[0], len(features))
    if finest is None:
        return refused("its choice of levels is not recognized")
    poolings = [_attributes(scope, pooler) for pooler in found.poolers]
    scales = [pooling.pop("spatial_scale") for pooling in poolings]
    if any(pooling != poolings[0] for pooling in poolings):
        return refused("expected the same pooling for all levels")
    attributes = {**poolings[0], "featmap_strides": [1 / scale for scale in scales], "finest_scale": finest}

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        lists, maps = inputs[: len(boxes)], inputs[len(boxes) :]
        rois = [
            b("Pad", of_image, b.constant([0, 1, 0, 0]), b.constant(i, np.float32)) for i, of_image in enumerate(lists)
        ]
        table = b("Concat", *rois, axis=0) if len(rois) > 1 else rois[0]
        return b.node(NODE, [_without_negative(b, table), *maps], attributes)

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        lists, maps = arrays[: len(boxes)], arrays[len(boxes) :]
        extent = max(maps[0].shape[2:]) / scales[0]
        drawn = [_boxes(rng, len(of_image), extent, finest, len(features)) for of_image in lists]
        return [
            *(d.astype(a.dtype) for d, a in zip(drawn, lists, strict=True)),
            *(rng.standard_normal(m.shape).astype(m.dtype) for m in maps),
        ]

    pyramid = sum(np.prod(shape) for shape in shapes[len(boxes) : -1])
    share = float(np.prod(shapes[-1]) / max(pyramid, 1))
    return Match(where, [*boxes, *features], [output], build, share, feeds=feeds)


def _level(scope: Scope, equal: ir.Node) -> int | None:
    number = scope.fixed(equal.inputs[1])
    return int(number.item()) if number is not None and number.size == 1 else None


def _images_boxes(scope: Scope, pooler: ir.Node) -> list[ir.Value] | None:
    """Returns the boxes [R, 4] of each image that the pooler's rows (image, box) are selected from, or None."""
    rows = producer(trail(pooler.inputs[1])[-1], "Concat")
    if rows is None or len(rows.inputs) != 2 or rows.attributes.get_int("axis", 0) not in (1, -1):
        return None
    joined = producer(rows.inputs[1], "Concat")
    boxes = list(joined.inputs) if joined else [rows.inputs[1]]
    fit = all((shape := scope.shape(v)) is not None and len(shape) == 2 and shape[1] == 4 for v in boxes)
    return boxes if fit else None


def _finest(scope: Scope, equal: ir.Node, number: int) -> int | None:
    """Returns canonical_scale / 2^(canonical_level - first), or None."""
    limits, value = [], _uncast(equal.inputs[0])
    while (node := producer(value, "Sub", "Cast", "Clip", "Min", "Max")) is not None:
        if node.op_type in ("Clip", "Min", "Max"):
            limits += [limit for v in node.inputs[1:] if (limit := _number(scope, v)) is not None]
        value = node.inputs[0]
    rounded = producer(value, "Floor")
    if rounded is None or len(limits) != 2 or max(limits) - min(limits) != number - 1:
        return None
    canonical_level, value = 0.0, rounded.inputs[0]
    while (node := producer(value, "Add")) is not None:
        numbers = [_number(scope, v) for v in node.inputs]
        if (numbers[0] is None) == (numbers[1] is None):
            return None
        canonical_level += numbers[0] or numbers[1] or 0.0
        value = node.inputs[numbers.index(None)]
    to_base_2 = producer(value, "Div", "Mul")
    logarithm = producer(to_base_2.inputs[0], "Log") if to_base_2 is not None else None
    quotient = producer(logarithm.inputs[0], "Div") if logarithm is not None else None
    canonical_scale = _number(scope, quotient.inputs[1]) if quotient is not None else None
    if canonical_scale is None or producer(quotient.inputs[0], "Sqrt") is None:
        return None
    finest = canonical_scale / 2 ** (round(canonical_level) - min(limits))
    return int(finest) if finest == int(finest) > 0 else None


def _number(scope: Scope, value: ir.Value | None) -> float | None:
    array = scope.fixed(value)
    return float(array.item()) if array is not None and array.size == 1 else None


def _attributes(scope: Scope, pooler: ir.Node) -> dict[str, Any]:
    """Returns the attributes of polyop's node; spatial_scale is the inverse of the stride."""
    given = {name: attribute.value for name, attribute in pooler.attributes.items()}
    transformation = given.get("coordinate_transformation_mode", "half_pixel" if scope.opset >= 16 else "")
    return {
        "output_height": given.get("output_height", 1),
        "output_width": given.get("output_width", 1),
        "sampling_ratio": given.get("sampling_ratio", 0),
        "pool_mode": ("max", "avg").index(given.get("mode", "avg")),
        "aligned": int(transformation == "half_pixel"),
        "spatial_scale": given.get("spatial_scale", 1.0),
    }


def _without_negative(b: Builder, rois: ir.Value) -> ir.Value:
    """Returns rows (image, x1, y1, x2, y2). Moves boxes of negative or NaN area far outside the image."""
    columns = [b("Slice", rois, b.constant([i]), b.constant([i + 1]), b.constant([1])) for i in range(1, 5)]
    area = b("Mul", b("Sub", columns[2], columns[0]), b("Sub", columns[3], columns[1]))
    zero = b.constant(0, np.float32)
    real = b("Or", b("Greater", area, zero), b("Equal", area, zero))
    return b("Where", real, rois, b.constant([0, -1e6, -1e6, -1e6, -1e6], np.float32))


# ---- Values to compare with ----


def _boxes(rng: np.random.Generator, count: int, extent: float, finest: int, levels: int) -> np.ndarray:
    """Returns boxes for all levels: some exactly at a level's limit, some of zero or negative area, some outside the
    image."""
    sizes = finest * 2.0 ** rng.uniform(-1, levels + 1, (count, 1)) * 2.0 ** rng.uniform(-1, 1, (count, 2))
    exact = np.broadcast_to(finest * 2.0 ** rng.integers(0, levels + 1, (count, 1)), sizes.shape)
    sizes = np.where(rng.random((count, 1)) < 0.2, exact, sizes)
    sizes = sizes * np.where(rng.random((count, 2)) < 0.1, rng.choice([0.0, -1.0], (count, 2)), 1.0)
    corner = np.floor(rng.uniform(-0.1, 1, (count, 2)) * extent)
    return np.concatenate([corner, corner + sizes], 1)
