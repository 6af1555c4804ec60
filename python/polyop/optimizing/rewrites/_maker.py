# SPDX-License-Identifier: Apache-2.0
"""Nodes that compute with sizes, which are integers where the file states them, and scalars of the graph otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from polyop.optimizing.matching import Builder
from polyop.optimizing.scope import Scope

Dim = int | ir.Value
"""A size: a number, or a scalar int64."""

MIN_OPSET = 13
"""The first one in which the axes of Unsqueeze, Squeeze and ReduceSum are inputs."""


class RefusedError(ValueError):
    """A node has a form that other nodes do not express; the message says which."""


class Maker:
    def __init__(self, b: Builder) -> None:
        self.b = b

    # ---- Constants ----

    def ints(self, *values: int) -> ir.Value:
        return self.b.constant(list(values))

    def int32(self, value: int) -> ir.Value:
        return self.b.constant(value, np.int32)

    def real(self, value: float, dtype: type = np.float32) -> ir.Value:
        return self.b.constant(value, dtype)

    # ---- Sizes ----

    def extents(self, scope: Scope, like: ir.Value, value: ir.Value) -> list[Dim]:
        """Returns the sizes of `value`, which replaces `like` or is the same."""
        shape = scope.shape(like)
        if shape is None:
            raise RefusedError(f"expected a known shape of '{like.name}'")
        stated = list(like.shape) if like.shape is not None and len(like.shape) == len(shape) else [None] * len(shape)
        known = [dim if isinstance(dim, int) and dim == seen else None for dim, seen in zip(stated, shape, strict=True)]
        if None not in known:
            return [dim for dim in known if dim is not None]
        sizes = self.b("Shape", value)
        return [
            self.b("Gather", sizes, self.b.constant(axis), axis=0) if dim is None else dim
            for axis, dim in enumerate(known)
        ]

    def product(self, dims: Sequence[Dim]) -> Dim:
        known, result = prod(d for d in dims if isinstance(d, int)), None
        for dim in dims:
            if not isinstance(dim, int):
                result = dim if result is None else self.b("Mul", result, dim)
        if result is None:
            return known
        return result if known == 1 else self.b("Mul", result, self.b.constant(known))

    def scalar(self, dim: Dim, kind: ir.DataType) -> ir.Value:
        """Returns a size as a number of this type."""
        if isinstance(dim, int):
            return self.b.constant(dim, kind.numpy())
        return dim if kind is ir.DataType.INT64 else self.cast(dim, kind)

    def vector(self, dims: Sequence[Dim]) -> ir.Value:
        if all(isinstance(dim, int) for dim in dims):
            return self.b.constant([int(dim) for dim in dims if isinstance(dim, int)])
        parts = [self.ints(d) if isinstance(d, int) else self.b("Unsqueeze", d, self.ints(0)) for d in dims]
        return self.b("Concat", *parts, axis=0)

    # ---- Nodes ----

    def cast(self, x: ir.Value, kind: ir.DataType) -> ir.Value:
        return self.b("Cast", x, to=kind.value)

    def unsqueeze(self, x: ir.Value, *axes: int) -> ir.Value:
        return self.b("Unsqueeze", x, self.ints(*axes)) if axes else x

    def reshape(self, x: ir.Value, dims: Sequence[Dim]) -> ir.Value:
        exact = self.b.opset >= 14 and any(dim == 0 or not isinstance(dim, int) for dim in dims)
        return self.b("Reshape", x, self.vector(dims), allowzero=1 if exact else None)

    def transpose(self, x: ir.Value, order: Sequence[int]) -> ir.Value:
        return x if list(order) == list(range(len(order))) else self.b("Transpose", x, perm=list(order))

    def count(self, n: Dim, kind: ir.DataType) -> ir.Value:
        """Returns 0, 1, …, n - 1."""
        if isinstance(n, int):
            return self.b.constant(np.arange(n), kind.numpy())
        zero, one = (self.b.constant(i, kind.numpy()) for i in (0, 1))
        return self.b("Range", zero, self.scalar(n, kind), one)

    def clip(self, x: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
        return self.b("Min", self.b("Max", x, low), high)

    def sum(self, x: ir.Value, *axes: int) -> ir.Value:
        return self.b("ReduceSum", x, self.ints(*axes), keepdims=0) if axes else x

    def largest(self, x: ir.Value, axis: int) -> ir.Value:
        if self.b.opset >= 18:
            return self.b("ReduceMax", x, self.ints(axis), keepdims=0)
        return self.b("ReduceMax", x, axes=[axis], keepdims=0)

    def positive(self, index: ir.Value, extent: ir.Value) -> ir.Value:
        """Returns indices of which negative ones counted from the end."""
        zero = self.b.constant(0, (index.dtype or ir.DataType.INT64).numpy())
        return self.b("Where", self.b("Less", index, zero), self.b("Add", index, extent), index)


def kind_of(value: ir.Value | None) -> ir.DataType:
    if value is None or value.dtype is None:
        raise RefusedError(f"expected a known type of '{value.name if value is not None else ''}'")
    return value.dtype
