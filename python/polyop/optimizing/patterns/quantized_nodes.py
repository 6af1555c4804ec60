# SPDX-License-Identifier: Apache-2.0
"""Nodes between DequantizeLinear and QuantizeLinear, as quantizers write them around nodes without 8-bit kernels:

    y = QuantizeLinear(node(DequantizeLinear(x), …))

become one node that reads and writes 8 bits: RoIAlign, grid sampling, cubic resizing, deformable
convolution with weights of 8 bits, and deformable attention. Scales and zero points are constants of one element,
except those of the weights, which may differ by filter; the zero points of the weights are 0.

A result that is a tie within rounding may be rounded the other way, so it may differ by one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import constant, producer
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "quantized nodes"
ORDER = 92
TARGETS = (Target.ONNXRUNTIME,)

Feeds = Callable[[np.random.Generator, list[np.ndarray]], list[np.ndarray]]


@dataclass
class _Quantized:
    """A node that replaces three.

    read: the inputs after the image, None where one is omitted.
    build: gets the Builder, the image of 8 bits and those inputs, and returns the new node's inputs.
    """

    node: str
    attributes: dict[str, Any]
    read: list[ir.Value | None]
    build: Callable[[Builder, ir.Value, list[ir.Value | None]], list[ir.Value | None]]
    vary: Feeds
    shape: ir.Value | None = None  # to which the image is reshaped before


def find(scope: Scope) -> Iterator[Match]:
    yield from matches_of(scope.graph, lambda node: _match(scope, node) if node.op_type == "QuantizeLinear" else None)


def _match(scope: Scope, last: ir.Node) -> Match | None:
    node = last.inputs[0].producer() if last.inputs[0] is not None and last.domain in ("", "ai.onnx") else None
    describe = _KINDS.get((node.domain.replace("ai.onnx", ""), node.op_type)) if node is not None else None
    if describe is None or len(node.outputs) != 1 or node.inputs[0] is None:
        return None
    reshape = producer(node.inputs[0], "Reshape") if describe is _attention else None
    first = producer(reshape.inputs[0] if reshape is not None else node.inputs[0], "DequantizeLinear")
    before, after = _scale_of(first), _scale_of(last)
    if before is None or after is None or before.dtype != after.dtype or len(list(last.inputs[0].uses())) != 1:
        return None
    found = describe(scope, node)
    if found is None:
        return None
    if reshape is not None:
        found.shape = reshape.inputs[1]
    scales = {
        "input_scale": before.scale,
        "input_zero_point": before.zero,
        "output_scale": after.scale,
        "output_zero_point": after.zero,
    }
    image = first.inputs[0]
    separate = [v for v in dict.fromkeys([*found.read, found.shape]) if v is not None]

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        now = dict(zip([image, *separate], inputs, strict=True))
        x, others = now[image], [now[v] if v is not None else None for v in found.read]
        if found.shape is not None:
            x = b("Reshape", x, now[found.shape], allowzero=reshape.attributes.get("allowzero"))
        return b.node(found.node, found.build(b, x, others), {**found.attributes, **scales})

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        codes = rng.integers(0, 256, arrays[0].shape).astype(np.uint8).view(arrays[0].dtype)
        drawn = dict(zip(separate, arrays[1:], strict=True))
        real = [v for v in found.read if v in drawn]
        varied = dict(zip(real, found.vary(rng, [drawn[v] for v in real]), strict=True))
        return [codes, *(varied.get(v, drawn[v]) for v in separate)]

    work = float(np.prod(scope.shape(last.outputs[0]) or 0))
    match = Match(name_of(node), [image, *separate], [last.outputs[0]], build, work, feeds=feeds)
    match.is_rounded = True
    return match


@dataclass(frozen=True)
class _Scale:
    scale: float
    zero: int
    dtype: np.dtype = field(default_factory=lambda: np.dtype(np.uint8))


def _scale_of(node: ir.Node | None) -> _Scale | None:
    """Returns the scale of a node that quantizes a whole tensor to 8 bits, or the reverse."""
    if node is None or len(node.inputs) < 3:
        return None
    scale, zero = constant(node.inputs[1]), constant(node.inputs[2])
    if scale is None or zero is None or scale.size != 1 or zero.size != 1:
        return None
    if scale.dtype != np.float32 or zero.dtype not in (np.int8, np.uint8) or not scale.item() > 0:
        return None
    return _Scale(scale.item(), int(zero.item()), zero.dtype)


def _given(node: ir.Node) -> dict[str, Any]:
    return {name: attribute.value for name, attribute in node.attributes.items()}


def _input(node: ir.Node, i: int) -> ir.Value | None:
    return node.inputs[i] if i < len(node.inputs) else None


def _as_they_are(b: Builder, x: ir.Value, others: list[ir.Value | None]) -> list[ir.Value | None]:
    return [x, *others]


# ---- Grid sampling ----


def _grid_sample(scope: Scope, node: ir.Node) -> _Quantized | None:
    given = _given(node)
    attributes = {
        "mode": given.get("mode", given.get("interpolation_mode", "linear")),
        "padding_mode": given.get("padding_mode", "zeros"),
        "align_corners": given.get("align_corners", 0),
    }
    if node.domain == "" and (attributes["mode"], attributes["padding_mode"]) == ("nearest", "reflection"):
        return None  # ONNX rounds a coordinate before reflecting it

    def vary(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [rng.uniform(-1.3, 1.3, a.shape).astype(a.dtype) for a in arrays]

    return _Quantized("polyop::QuantizedGridSample", attributes, [node.inputs[1]], _as_they_are, vary)


# ---- RoIAlign ----


def _vary_rois(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
    def moved(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind != "f":
            return array
        finite = np.where(np.isfinite(array), array, 0)
        result = finite + rng.uniform(-1, 1, array.shape) * (1 + np.abs(finite) / 4)
        if array.shape[-1] == 5:
            result[:, 0] = array[:, 0]  # indices of images
        return result.astype(array.dtype)

    return [moved(a) for a in arrays]


def _roi_align(scope: Scope, node: ir.Node) -> _Quantized | None:
    attributes = _given(node)
    if node.domain == "":
        if attributes.get("mode", "avg") != "avg":
            return None  # ONNX Runtime's maximum is that of the weighted corners
        if scope.opset < 16:
            attributes["coordinate_transformation_mode"] = "output_half_pixel"
    return _Quantized("polyop::QuantizedRoiAlign", attributes, list(node.inputs[1:3]), _as_they_are, _vary_rois)


def _mmcv_roi_align(scope: Scope, node: ir.Node) -> _Quantized | None:
    given = _given(node)

    def get(*names: str, default: Any) -> Any:
        return next((given[name] for name in names if name in given), default)

    attributes = {
        "output_height": get("output_height", "aligned_height", "pooled_height", default=1),
        "output_width": get("output_width", "aligned_width", "pooled_width", default=1),
        "sampling_ratio": get("sampling_ratio", default=0),
        "spatial_scale": get("spatial_scale", default=1.0),
        "mode": get("mode", "pool_mode", default="avg"),
        "coordinate_transformation_mode": "half_pixel" if get("aligned", default=1) else "output_half_pixel",
    }

    def build(b: Builder, x: ir.Value, others: list[ir.Value | None]) -> list[ir.Value | None]:
        (rois,) = others
        one = b.constant([1])
        images = b("Squeeze", b("Slice", rois, b.constant([0]), one, one), one)
        return [x, b("Slice", rois, one, b.constant([5]), one), b("Cast", images, to=ir.DataType.INT64.value)]

    return _Quantized("polyop::QuantizedRoiAlign", attributes, [node.inputs[1]], build, _vary_rois)


# ---- Cubic resizing ----


def _cubic_resize(scope: Scope, node: ir.Node) -> _Quantized | None:
    return _Quantized(
        "polyop::QuantizedCubicResize", _given(node), [node.inputs[1]], _as_they_are, lambda rng, arrays: arrays
    )


def _scaled_resize(scope: Scope, node: ir.Node) -> _Quantized | None:
    """By scales. With integers, the step between pixels is the ratio of the sizes."""
    scales = constant(node.inputs[1])
    if scales is None or scales.size != 4 or (scales != np.floor(scales)).any() or (scales[:2] != 1).any():
        return None

    def build(b: Builder, x: ir.Value, others: list[ir.Value | None]) -> list[ir.Value | None]:
        old = b("Slice", b("Shape", x), b.constant([2]), b.constant([4]))
        return [x, b("Mul", old, b.constant(scales[2:].astype(np.int64)))]

    return _Quantized("polyop::QuantizedCubicResize", {}, [], build, lambda rng, arrays: arrays)


# ---- Deformable convolution ----


def _vary_offsets(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
    return [(rng.permutation(a.reshape(-1)).reshape(a.shape)).astype(a.dtype) for a in arrays]


def _deform_conv(scope: Scope, node: ir.Node) -> _Quantized | None:
    weight, offset, bias, mask = (_input(node, i) for i in (1, 2, 3, 4))
    return _convolution(_given(node), weight, offset, bias, mask)


def _mmcv_deform_conv(scope: Scope, node: ir.Node) -> _Quantized | None:
    given = _given(node)

    def pair(*names: str, default: int) -> list[int]:
        value = next((given[name] for name in names if name in given), default)
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        return values if len(values) == 2 else values[:1] * 2

    pads = pair("padding", default=0)
    groups = ("deform_groups", "deformable_groups", "deformable_group", "deform_group")
    attributes = {
        "strides": pair("stride", default=1),
        "pads": [*pads, *pads],
        "dilations": pair("dilation", default=1),
        "group": next((given[name] for name in ("groups", "group") if name in given), 1),
        "offset_group": next((given[name] for name in groups if name in given), 1),
    }
    offset, mask, weight, bias = (_input(node, i) for i in (1, 2, 3, 4))
    return _convolution(attributes, weight, offset, bias, mask)


def _convolution(
    attributes: dict[str, Any],
    weight: ir.Value | None,
    offset: ir.Value | None,
    bias: ir.Value | None,
    mask: ir.Value | None,
) -> _Quantized | None:
    filters = _filters(weight)
    shift = _numbers(bias)
    if filters is None or (bias is not None and shift is None):
        return None
    codes, scales = filters

    def build(b: Builder, x: ir.Value, others: list[ir.Value | None]) -> list[ir.Value | None]:
        offset, mask = others
        b_shift = b.constant(shift, np.float32) if shift is not None else None
        inputs = [x, b.constant(codes, np.int8), b.constant(scales, np.float32), offset, b_shift, mask]
        while inputs[-1] is None:
            inputs.pop()
        return inputs

    return _Quantized("polyop::QuantizedDeformConv", attributes, [offset, mask], build, _vary_offsets)


def _filters(weight: ir.Value | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns constant weights of 8 bits and the scale of each filter."""
    node = producer(weight, "DequantizeLinear")
    if node is None:
        return None
    codes, scale = constant(node.inputs[0]), constant(node.inputs[1])
    zero = constant(node.inputs[2]) if len(node.inputs) > 2 else np.zeros(1, np.int8)
    if codes is None or scale is None or zero is None or codes.dtype != np.int8 or codes.ndim != 4 or zero.any():
        return None
    if scale.size not in (1, codes.shape[0]) or (scale.size > 1 and node.attributes.get_int("axis", 1) % 4 != 0):
        return None
    return codes, np.broadcast_to(scale.reshape(-1), codes.shape[:1]).astype(np.float32)


def _numbers(value: ir.Value | None) -> np.ndarray | None:
    """Returns the real numbers of a constant, which may be quantized."""
    node = producer(value, "DequantizeLinear")
    if node is None:
        return constant(value)
    codes, scale = constant(node.inputs[0]), constant(node.inputs[1])
    zero = constant(node.inputs[2]) if len(node.inputs) > 2 else np.zeros(1, np.int32)
    if codes is None or scale is None or zero is None or zero.any():
        return None
    return (codes.astype(np.float32) * scale).astype(np.float32)


# ---- Deformable attention ----


def _attention(scope: Scope, node: ir.Node) -> _Quantized | None:
    def build(b: Builder, x: ir.Value, others: list[ir.Value | None]) -> list[ir.Value | None]:
        shapes, starts, locations, weights = others
        wide = [b("Cast", v, to=ir.DataType.INT64.value) for v in (shapes, starts)]
        return [x, *wide, locations, weights]

    def vary(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [
            rng.uniform(-0.1, 1.1, a.shape).astype(a.dtype)
            if a.ndim == 6
            else rng.permutation(a.reshape(-1)).reshape(a.shape)
            if a.ndim == 5
            else a
            for a in arrays
        ]

    return _Quantized("polyop::QuantizedMultiScaleDeformableAttention", {}, list(node.inputs[1:5]), build, vary)


_KINDS: dict[tuple[str, str], Callable[[Scope, ir.Node], _Quantized | None]] = {
    ("", "GridSample"): _grid_sample,
    ("polyop", "GridSample"): _grid_sample,
    ("mmcv", "grid_sampler"): _grid_sample,
    ("mmdeploy", "grid_sampler"): _grid_sample,
    ("", "RoiAlign"): _roi_align,
    ("polyop", "RoiAlign"): _roi_align,
    ("mmcv", "MMCVRoiAlign"): _mmcv_roi_align,
    ("mmdeploy", "MMCVRoiAlign"): _mmcv_roi_align,
    ("polyop", "CubicResize"): _cubic_resize,
    ("custom", "DynamicTRTResize"): _scaled_resize,
    ("", "DeformConv"): _deform_conv,
    ("polyop", "DeformConv"): _deform_conv,
    ("mmcv", "MMCVModulatedDeformConv2d"): _mmcv_deform_conv,
    ("mmdeploy", "MMCVModulatedDeformConv2d"): _mmcv_deform_conv,
    ("mmcv", "MMCVMultiScaleDeformableAttention"): _attention,
    ("mmdeploy", "MMCVMultiScaleDeformableAttention"): _attention,
}
