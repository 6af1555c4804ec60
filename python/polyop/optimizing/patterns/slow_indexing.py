# SPDX-License-Identifier: Apache-2.0
"""Operators of indices and integers that ONNX Runtime computes one element at a time on one thread: ScatterElements
with a reduction, NonZero, Unique of integers, and TopK of all elements of a row, which polyop sorts by their digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import is_read, is_standard
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "reduced scatters, indices and orders"
ORDER = 88
TARGETS = (Target.ONNXRUNTIME,)
_SCATTERED = frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64))
_INTEGERS = frozenset((ir.DataType.INT32, ir.DataType.INT64))
_SORTED = frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)) | _INTEGERS
_FOUND = frozenset((ir.DataType.BOOL, ir.DataType.UINT8, ir.DataType.FLOAT)) | _INTEGERS


def find(scope: Scope) -> Iterator[Match]:
    for op_type, match in (
        ("ScatterElements", _scatter),
        ("TopK", _argsort),
        ("Unique", _unique),
        ("NonZero", _nonzero),
    ):
        nodes = (n for n in scope.graph if is_standard(n, op_type))
        yield from matches_of(nodes, partial(match, scope))


def _scatter(scope: Scope, node: ir.Node) -> Match | None:
    data, indices, updates = node.inputs
    reduction, axis = node.attributes.get_string("reduction", "none"), node.attributes.get_int("axis", 0)
    shape = scope.shape(updates)
    if reduction == "none" or not shape or data.dtype not in _SCATTERED:
        return None

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        return b.node("polyop::ScatterReduce", inputs, {"axis": axis, "reduction": reduction})

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        numbers, at, added = arrays
        drawn = [rng.standard_normal(x.shape) * 3 for x in (numbers, added)]
        return [drawn[0].astype(numbers.dtype), rng.permuted(at, axis=axis), drawn[1].astype(added.dtype)]

    match = Match(name_of(node), [data, indices, updates], [node.outputs[0]], build, float(prod(shape)))
    match.what, match.feeds = "reduced scatter", feeds
    return match


def _argsort(scope: Scope, node: ir.Node) -> Match | None:
    x, k = node.inputs
    shape, count = scope.shape(x), scope.fixed(k)
    if not shape or count is None or count.tolist() != [shape[-1]] or x.dtype not in _SORTED:
        return None
    axis, descending = node.attributes.get_int("axis", -1), node.attributes.get_int("largest", 1)
    if axis not in (-1, len(shape) - 1) or node.attributes.get_int("sorted", 1) != 1:
        return None
    used = [is_read(value) for value in node.outputs]

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        order = b("polyop::Argsort", inputs[0], descending=descending)
        values = [b("GatherElements", inputs[0], order, axis=-1)] if used[0] else []
        return values + ([order] if used[1] else [])

    outputs = [value for value, is_used in zip(node.outputs, used, strict=True) if is_used]
    match = Match(name_of(node), [x], outputs, build, float(prod(shape)))
    match.what = "order of rows"
    return match


def _unique(scope: Scope, node: ir.Node) -> Match | None:
    x, shape = node.inputs[0], scope.shape(node.inputs[0])
    if shape is None or len(shape) != 1 or x.dtype not in _INTEGERS or node.attributes.get_int("sorted", 1) != 1:
        return None
    used = [is_read(value) for value in node.outputs]
    if "axis" in node.attributes or (len(used) > 1 and used[1]):  # the first index of each
        return None

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        unique, inverse, counts, _ = b.node("polyop::CustomUnique", inputs, outputs=4)
        return [value for value, is_used in zip((unique, unique, inverse, counts), used, strict=False) if is_used]

    outputs = [value for value, is_used in zip(node.outputs, used, strict=True) if is_used]
    match = Match(name_of(node), [x], outputs, build, float(shape[0]))
    match.what = "distinct integers"
    return match


def _nonzero(scope: Scope, node: ir.Node) -> Match | None:
    x, found, shape = node.inputs[0], node.outputs[0], scope.shape(node.inputs[0])
    if not shape or x is None or x.dtype not in _FOUND:
        return None
    readers = [user for user, _ in found.uses()]
    transposed = len(readers) == 1 and not found.is_graph_output() and is_standard(readers[0], "Transpose")
    output = readers[0].outputs[0] if transposed else found

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        rows = b("polyop::NonZero", inputs[0], dimensions=len(shape))
        return [rows if transposed else b("Transpose", rows, perm=[1, 0])]

    match = Match(name_of(node), [x], [output], build, float(prod(shape)))
    match.what = "indices of elements"
    return match
