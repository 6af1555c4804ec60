# SPDX-License-Identifier: Apache-2.0
"""Deformable convolution as deform_conv2d_onnx_exporter writes torchvision's operator, in BiRefNet among others:

    p = positions of the filter's points + offset
    samples = sum over the four corners of p: weight of the corner * GatherND or GatherElements(Pad(image), corner)
    output = Conv(samples * mask, one patch of the filter's extents for each element), strides as large as the filter

The positions are a constant [1, 1, K, 2, OH, OW], from which strides, dilations and padding are read. The image is
padded by at least a pixel of zeros, to which corners outside are clamped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import constant, is_standard, producer, trail
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope

NAME = "deformable convolution"
ORDER = 15
NODE = "polyop::DeformConv"
_MAX_NODES = 40  # between a weight and the Floor that it is computed from


@dataclass
class _Sampling:
    """pad: of the image. base: the positions' tensor [1, 1, K, 2, OH, OW]. shifts: the offset, reshaped."""

    pad: ir.Node
    base: np.ndarray
    shifts: ir.Value
    mask: ir.Value | None


@dataclass
class _Filter:
    """How the filter moves: (y, x). pads: above, left, below, right."""

    strides: list[int]
    dilations: list[int]
    pads: list[int]


def find(scope: Scope) -> Iterator[Match]:
    def match(node: ir.Node) -> Match | None:
        found = _sampling(node.inputs[0])
        return _match(scope, node, found) if found is not None else None

    yield from matches_of((n for n in scope.graph if is_standard(n, "Conv")), match)


def _sampling(patches: ir.Value | None) -> _Sampling | None:
    """Recognizes the samples that a Conv reads."""
    if patches is None:
        return None
    terms, mask = _terms(trail(patches)[-1]), None
    if not terms and (product := producer(trail(patches)[-1], "Mul")) is not None:
        for samples, other in (product.inputs, reversed(product.inputs)):
            if not terms and samples is not None:
                terms, mask = _terms(trail(samples)[-1]), other
    if len(terms) != 4:
        return None
    pads = {_pad(value) for term in terms for value in term.inputs} - {None}
    floors = {_floor(term.inputs) for term in terms} - {None}
    if len(pads) != 1 or len(floors) != 1:
        return None
    added = producer(floors.pop().inputs[0], "Add")
    for base, shifts in (added.inputs, reversed(added.inputs)) if added is not None else ():
        positions = constant(base)
        if positions is not None and positions.ndim == 6 and shifts is not None:
            return _Sampling(pads.pop(), positions, shifts, mask)
    return None


def _terms(value: ir.Value) -> list[ir.Node]:
    """Returns the products of a sum, or none."""
    node = producer(value, "Sum", "Add")
    if node is None:
        return []
    terms: list[ir.Node] = []
    for operand in node.inputs:
        product = producer(operand, "Mul")
        terms += [product] if product is not None else _terms(operand) if operand is not None else []
    return terms


def _pad(value: ir.Value | None) -> ir.Node | None:
    """Returns the Pad of the image that these samples were gathered from."""
    if value is None:
        return None
    end = trail(value)[-1]  # passes through GatherND
    gather = producer(end, "GatherElements")
    return producer(trail(gather.inputs[0])[-1] if gather is not None and gather.inputs[0] is not None else end, "Pad")


def _floor(values: Iterable[ir.Value | None]) -> ir.Node | None:
    """Returns the nearest Floor that the values are computed from, but not through what is gathered."""
    open_, seen = [v for v in values if v is not None and _pad(v) is None], 0
    while open_ and seen < _MAX_NODES:
        node = open_.pop(0).producer()
        seen += 1
        if is_standard(node, "Floor"):
            return node
        open_ += [v for v in node.inputs if v is not None] if node is not None else []
    return None


def _match(scope: Scope, conv: ir.Node, found: _Sampling) -> Match | None:
    def refused(why: str) -> Match:
        return Match(name_of(conv), [], list(conv.outputs), lambda b, i: [], 0, why)

    image, filters = found.pad.inputs[0], conv.inputs[1]
    extents, filter_extents, result = scope.shape(image), scope.shape(filters), scope.shape(conv.outputs[0])
    if extents is None or filter_extents is None or result is None or len(filter_extents) != 4:
        return refused("expected known shapes of the image and the filter")
    kernel, out = filter_extents[2:], result[2:]
    points = kernel[0] * kernel[1]
    if found.base.shape != (1, 1, points, 2, *out):
        return refused(f"expected positions [1, 1, {points}, 2, {out[0]}, {out[1]}], got {list(found.base.shape)}")
    moves = _filter(found.base, kernel, scope.numbers(found.pad.inputs[1]), extents[2:])
    if moves is None:
        return refused("expected the positions of a filter with strides, dilations and a padded image")
    batch = extents[0]
    offset = _first(scope, found.shifts, (batch, None, *out))
    channels = scope.shape(offset)[1] if offset is not None else 0
    if offset is None or channels % (2 * points) != 0:
        return refused(f"expected offsets [{batch}, G * {2 * points}, {out[0]}, {out[1]}]")
    mask = _first(scope, found.mask, (batch, channels // 2, *out)) if found.mask is not None else None
    if found.mask is not None and mask is None:
        return refused(f"expected a mask [{batch}, {channels // 2}, {out[0]}, {out[1]}]")
    read = [image, filters, offset, conv.inputs[2] if len(conv.inputs) > 2 else None, mask]
    inputs = list(dict.fromkeys(v for v in read if v is not None))
    attributes = {
        "kernel_shape": list(kernel),
        "strides": moves.strides,
        "dilations": moves.dilations,
        "pads": moves.pads,
        "group": conv.attributes["group"].value if "group" in conv.attributes else 1,
        "offset_group": channels // (2 * points),
    }

    def build(b: Builder, given: list[ir.Value]) -> list[ir.Value]:
        now = dict(zip(inputs, given, strict=True))
        operands = [now[v] if v is not None else None for v in read]
        while operands[-1] is None:
            operands.pop()
        return b.node(NODE, operands, attributes)

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Returns offsets of a few pixels, also across the border."""
        drawn = [rng.standard_normal(a.shape).astype(a.dtype) for a in arrays]
        drawn[inputs.index(offset)] *= 3
        return [a if constant(v) is not None else d for v, a, d in zip(inputs, arrays, drawn, strict=True)]

    return Match(name_of(conv), inputs, list(conv.outputs), build, 0, feeds=feeds)


def _filter(
    base: np.ndarray, kernel: tuple[int, ...], padding: np.ndarray | None, extents: tuple[int, ...]
) -> _Filter | None:
    """Returns how the filter moves, if the positions [1, 1, K, 2, OH, OW] are those of a filter."""
    if padding is None or len(padding) != 8 or padding[[0, 1, 4, 5]].any():
        return None
    positions = base.reshape(*kernel, 2, *base.shape[4:])
    moves = _Filter([], [], [0, 0, 0, 0])
    for axis in (0, 1):
        along = np.moveaxis(positions[:, :, axis], (axis, 2 + axis), (0, 1))  # [K, O] first
        line = along[:, :, 0, 0]
        first = line[0, 0]
        before, after = padding[2 + axis] - first, padding[6 + axis] - first
        # One position allows any stride: the largest gives one.
        stride = line[0, 1] - first if line.shape[1] > 1 else extents[axis] + before + after
        dilation = line[1, 0] - first if line.shape[0] > 1 else 1
        index = [np.arange(n) for n in line.shape]
        expected = first + index[0][:, None] * dilation + index[1] * stride
        if min(before, after) < 0 or min(stride, dilation) < 1 or min(padding[[2 + axis, 6 + axis]]) < 1:
            return None
        if any(v != int(v) for v in (before, after, stride, dilation)):
            return None
        if not (along == expected[:, :, None, None]).all():
            return None
        moves.strides.append(int(stride))
        moves.dilations.append(int(dilation))
        moves.pads[axis], moves.pads[2 + axis] = int(before), int(after)
    return moves


def _first(scope: Scope, value: ir.Value, shape: tuple[int | None, ...]) -> ir.Value | None:
    """Returns the first tensor of this shape that the value was moved from, or None. None fits any extent."""
    for moved in reversed(trail(value)):
        own = scope.shape(moved)
        if own is not None and len(own) == len(shape) and all(s in (None, n) for n, s in zip(own, shape, strict=True)):
            return moved
    return None
