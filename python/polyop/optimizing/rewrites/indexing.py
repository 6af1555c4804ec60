# SPDX-License-Identifier: Apache-2.0
"""GatherND and GatherElements by Gather, from a table of rows that one index counts.

ScatterND and ScatterElements by Gather where their indices are constants: from the data and the updates in one table.
Otherwise each becomes the other; if both are excluded, each row is compared with all indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import constant
from polyop.optimizing.matching import Builder
from polyop.optimizing.rewrites import Build, Without
from polyop.optimizing.rewrites._maker import Dim, Maker, RefusedError, kind_of
from polyop.optimizing.scope import Scope

OPERATORS = ("GatherND", "GatherElements", "ScatterND", "ScatterElements")

_I64 = ir.DataType.INT64
_MAX_PAIRS = 1 << 26  # of rows and indices that are compared


def rewrite(scope: Scope, node: ir.Node, without: Without) -> Build:
    if any(scope.shape(v) is None for v in node.inputs):
        raise RefusedError("expected known shapes of its inputs")
    kind = {"GatherND": _gather_nd, "GatherElements": _gather_elements}.get(node.op_type, _scatter)
    return kind(scope, node, without)


# ---- Gathers ----


def _gather_nd(scope: Scope, node: ir.Node, without: Without) -> Build:
    data, indices = node.inputs
    batch = node.attributes.get_int("batch_dims", 0)

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        m = Maker(b)
        dims, of_index = m.extents(scope, data, inputs[0]), m.extents(scope, indices, inputs[-1])
        depth = len(scope.shape(indices)) and scope.shape(indices)[-1]
        place = _row_of_tuples(m, inputs[-1], len(of_index), dims[batch : batch + depth])
        first = m.product(dims[batch : batch + depth])
        for axis in range(batch):  # rows of the batches before this one
            step = m.product([*dims[axis + 1 : batch], first])
            counted = m.unsqueeze(
                b("Mul", m.count(dims[axis], _I64), m.scalar(step, _I64)), *range(1, len(of_index) - 1 - axis)
            )
            place = b("Add", place, counted)
        rest = dims[batch + depth :]
        table = m.reshape(inputs[0], [m.product(dims[: batch + depth]), *rest])
        return [b("Gather", table, place, axis=0)]

    return build


def _row_of_tuples(m: Maker, indices: ir.Value, rank: int, dims: Sequence[Dim]) -> ir.Value:
    """Returns one index for the tuples in the last dimension."""
    b, place = m.b, None
    for k, dim in enumerate(dims):
        part = b("Gather", indices, b.constant(k), axis=rank - 1)
        part = m.positive(part, m.scalar(dim, _I64))
        place = part if place is None else b("Add", b("Mul", place, m.scalar(dim, _I64)), part)
    if place is None:
        raise RefusedError("expected indices of at least one dimension")
    return place


def _gather_elements(scope: Scope, node: ir.Node, without: Without) -> Build:
    data, indices = node.inputs
    axis = node.attributes.get_int("axis", 0) % max(len(scope.shape(data)), 1)

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        m = Maker(b)
        dims = m.extents(scope, data, inputs[0])
        place = _row_of_elements(m, inputs[-1], m.extents(scope, indices, inputs[-1]), dims, axis, kind_of(indices))
        return [b("Gather", m.reshape(inputs[0], [m.product(dims)]), place, axis=0)]

    return build


def _row_of_elements(
    m: Maker, indices: ir.Value, counts: Sequence[Dim], dims: Sequence[Dim], axis: int, kind: ir.DataType
) -> ir.Value:
    """Returns the position of each element in the flat data [shape of the indices]."""
    b = m.b
    indices = indices if kind is _I64 else m.cast(indices, _I64)
    place = b("Mul", m.positive(indices, m.scalar(dims[axis], _I64)), m.scalar(m.product(dims[axis + 1 :]), _I64))
    for other, count in enumerate(counts):
        if other != axis:
            step = b("Mul", m.count(count, _I64), m.scalar(m.product(dims[other + 1 :]), _I64))
            place = b("Add", place, m.unsqueeze(step, *range(1, len(counts) - other)))
    return place


# ---- Scatters ----


def _scatter(scope: Scope, node: ir.Node, without: Without) -> Build:
    data, indices, updates = node.inputs
    reduction = node.attributes.get_string("reduction", "none")
    of_tuples = node.op_type == "ScatterND"
    shape, of_index = scope.shape(data), scope.shape(indices)
    axis = node.attributes.get_int("axis", 0) % max(len(shape), 1)
    depth = of_index[-1] if of_tuples else len(shape)
    other = "ScatterElements" if of_tuples else "ScatterND"
    known = constant(indices)
    fixed = known is not None and reduction == "none" and _is_static(data, shape)
    by_comparing = not fixed and other in without
    if by_comparing:
        _check_comparing(reduction, kind_of(data), prod(shape[:depth]), prod(of_index[:-1] if of_tuples else of_index))

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        m = Maker(b)
        given = dict(zip(dict.fromkeys(node.inputs), inputs, strict=True))
        dims = m.extents(scope, data, given[data])
        rest = dims[depth:]
        table = m.reshape(given[data], [m.product(dims[:depth]), m.product(rest)])
        counts = m.extents(scope, indices, given[indices])
        number = m.product(counts[:-1] if of_tuples else counts)
        new = m.reshape(given[updates], [number, m.product(rest)])
        if fixed:
            sources = b.constant(_sources(known, shape, axis if not of_tuples else None))
            return [m.reshape(b("Gather", b("Concat", table, new, axis=0), sources, axis=0), dims)]
        if of_tuples:
            wide = given[indices] if kind_of(indices) is _I64 else m.cast(given[indices], _I64)
            place = _row_of_tuples(m, wide, len(counts), dims[:depth])
        else:
            place = _row_of_elements(m, given[indices], counts, dims, axis, kind_of(indices))
        place = m.reshape(place, [number])
        if by_comparing:
            size = m.product(dims[:depth])
            kind = kind_of(data) if reduction == "add" else None
            result = _compared(m, table, size, place, number, new, m.product(rest), kind)
        else:
            result = _by_the_other(m, of_tuples, table, place, new, [number, m.product(rest)], reduction)
        return [m.reshape(result, dims)]

    return build


def _is_static(value: ir.Value, shape: Sequence[int]) -> bool:
    return value.shape is not None and list(value.shape) == list(shape)


def _sources(indices: np.ndarray, shape: Sequence[int], axis: int | None) -> np.ndarray:
    """Returns the row of the table of data and updates that each row of the result is. The last of equal indices wins,
    which ONNX leaves open. axis: of ScatterElements; None for tuples."""
    depth = indices.shape[-1] if axis is None else len(shape)
    if axis is None:
        tuples = indices.reshape(-1, depth)
    else:
        tuples = np.stack([*np.indices(indices.shape)], -1).reshape(-1, depth)
        tuples[:, axis] = indices.reshape(-1)
    outer = np.array(shape[:depth])
    rows = np.ravel_multi_index(tuple(np.where(tuples < 0, tuples + outer, tuples).T), tuple(outer))
    sources = np.arange(prod(shape[:depth]))
    sources[rows] = len(sources) + np.arange(len(rows))
    return sources


def _by_the_other(
    m: Maker, of_tuples: bool, table: ir.Value, place: ir.Value, new: ir.Value, shape: Sequence[Dim], reduction: str
) -> ir.Value:
    b = m.b
    how = {"reduction": reduction} if reduction != "none" else {}
    if of_tuples:
        wide = b("Expand", m.unsqueeze(place, 1), m.vector(shape))
        return b("ScatterElements", table, wide, new, axis=0, **how)
    return b("ScatterND", table, m.unsqueeze(place, 1), new, **how)


def _check_comparing(reduction: str, kind: ir.DataType, rows: int, indices: int) -> None:
    if reduction not in ("none", "add"):
        raise RefusedError(f"reduction {reduction} needs ScatterND or ScatterElements")
    if reduction == "add" and kind not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        raise RefusedError(f"a sum of {kind.name.lower()} needs ScatterND or ScatterElements")
    if rows * indices > _MAX_PAIRS:
        raise RefusedError(f"comparing {rows} rows with {indices} indices would take too long")


def _compared(
    m: Maker, table: ir.Value, rows: Dim, place: ir.Value, number: Dim, new: ir.Value, width: Dim,
    summed: ir.DataType | None,
) -> ir.Value:  # fmt: skip
    """Compares each row with all indices. summed: the type of updates that are added, or None.

    A further index, which equals no row, makes the maximum of none defined.
    """
    b = m.b
    place = b("Concat", place, m.ints(-1), axis=0)
    same = b("Equal", m.unsqueeze(m.count(rows, _I64), 1), m.unsqueeze(place, 0))  # [rows, number + 1]
    if summed is not None:
        zero = b("Expand", b.constant(np.zeros((1, 1)), summed.numpy()), m.vector([1, width]))
        return b("Add", table, b("MatMul", m.cast(same, summed), b("Concat", new, zero, axis=0)))
    position = b("Add", m.count(number, _I64), m.scalar(rows, _I64))
    position = b("Concat", position, m.ints(-1), axis=0)
    last = m.largest(b("Where", same, m.unsqueeze(position, 0), b.constant(-1)), 1)
    source = b("Where", b("Less", last, b.constant(0)), m.count(rows, _I64), last)
    return b("Gather", b("Concat", table, new, axis=0), source, axis=0)
