# SPDX-License-Identifier: Apache-2.0
"""Linear equations and matrix functions, by polyop's nodes for inverses and for equations."""

from __future__ import annotations

import functools
import string
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop._aten.real_forms import adjoint, complex_columns, index_of_pair, joined, real_columns, real_form
from polyop._aten.shapes import example
from polyop._aten.table import REFUSED, SLOW, decomposes

_INVERTED = frozenset((torch.float32, torch.float16, torch.bfloat16))


def _inverse(a: Tensor, *, raises: bool) -> Tensor:
    """Returns the inverse. A singular matrix gives NaN, or an error of the file's node."""
    if a.dtype in _INVERTED:
        return torch.ops.polyop.inverse.default(a, check_errors=int(raises))
    unit = unit_matrix(a.shape[-1], a.shape[-1], a)
    return solved(a, unit.expand(a.shape), raises="inv" if raises else "nothing")


def unit_matrix(rows: Any, columns: Any, like: Tensor) -> Tensor:
    unit = torch.eye(rows, columns, dtype=like.dtype.to_real(), device=like.device)
    return joined(unit, torch.zeros_like(unit)) if like.dtype.is_complex else unit


def in_node_type(x: Tensor) -> Tensor:
    """Returns `x` in a type that polyop's nodes of matrices have."""
    return x if x.dtype in (torch.float32, torch.float64) else x.to(torch.float32)


def _with_batch(x: Tensor, batch: Any) -> Tensor:
    return x if tuple(x.shape[:-2]) == tuple(batch) else x.expand(*batch, *x.shape[-2:])


def solved_with_info(
    a: Tensor,
    b: Tensor,
    method: str = "general",
    *,
    transpose: bool = False,
    unit: bool = False,
    pivots: Tensor | None = None,
    raises: str = "nothing",
) -> tuple[Tensor, Tensor]:
    """Returns the solution of a @ x = b by a method of polyop's matrix_solve, and which pivots are 0."""
    if a.dtype.is_complex:
        return _complex_solution(a, b, method, transpose, unit, pivots, raises)
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if pivots is not None:
        pivots = pivots.expand(*batch, pivots.shape[-1])
    x, info = torch.ops.polyop.matrix_solve.default(
        in_node_type(_with_batch(a, batch)), in_node_type(_with_batch(b, batch)), pivots,
        method=method, transpose=int(transpose), unit=int(unit), raises=raises,
    )  # fmt: skip
    return x.to(a.dtype), info


def _complex_solution(
    a: Tensor, b: Tensor, method: str, transpose: bool, unit: bool, pivots: Tensor | None, raises: str
) -> tuple[Tensor, Tensor]:
    if method == "cholesky":
        return solved_with_info(adjoint(a), solved(a, b, "lower"), "upper")
    if method == "lu":
        assert pivots is not None
        order = permutation(pivots, a)
        if transpose:
            half = solved(a, b, "upper", transpose=True)
            x, info = solved_with_info(a, half, "lower", transpose=True, unit=True)
            return torch.matmul(order, x), info
        half = solved(a, torch.matmul(order.mT, b), "lower", unit=True)
        return solved_with_info(a, half, "upper")
    if method != "general":
        a = a.tril(-int(unit)) if method == "lower" else a.triu(int(unit))
    if unit:
        a = a + unit_matrix(a.shape[-1], a.shape[-1], a)
    x, info = solved_with_info(real_form(a.mT if transpose else a), real_columns(b), raises=raises)
    return complex_columns(x, a), index_of_pair(info)


def permutation(pivots: Tensor, factors: Tensor) -> Tensor:
    """Returns the permutation matrix P of factors P L U."""
    rows = factors.shape[-2]
    unit = torch.eye(rows, device=factors.device).expand(*factors.shape[:-2], rows, rows)
    p = solved(unit, unit, method="lu", transpose=True, pivots=pivots)
    return joined(p, torch.zeros_like(p)).to(factors.dtype) if factors.dtype.is_complex else p.to(factors.dtype)


def solved(a: Tensor, b: Tensor, method: str = "general", **options: Any) -> Tensor:
    return solved_with_info(a, b, method, **options)[0]


@decomposes("aten::linalg_inv_ex", nodes=("inverse", "matrix_factors", "matrix_solve"))
def linalg_inv_ex(a: Tensor, *, check_errors: bool = False) -> Any:
    form = real_form(a) if a.dtype.is_complex else in_node_type(a)
    info = torch.ops.polyop.matrix_factors.default(form, method="lu")[3]
    info = index_of_pair(info) if a.dtype.is_complex else info
    return _inverse(a, raises=check_errors), info


def _solution(a: Tensor, b: Tensor, left: bool, raises: bool) -> tuple[Tensor, Tensor]:
    """Returns the solution, and which pivots are 0."""
    vector = b.dim() == 1 or (a.dim() - 1 == b.dim() and tuple(b.shape) == tuple(a.shape[:-1]))
    right = b.unsqueeze(-1) if vector else b
    error = "solve" if raises else "nothing"
    if left or vector:
        result, info = solved_with_info(a, right, raises=error)
    else:
        result, info = solved_with_info(a, right.mT, transpose=True, raises=error)
        result = result.mT
    return result.squeeze(-1) if vector else result, info


@decomposes("aten::_linalg_solve_ex", nodes=("matrix_solve",))
def linalg_solve_ex(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    result, info = _solution(a, b, left, check_errors)
    pivots = torch.zeros(a.shape[:-1], dtype=torch.int32, device=a.device)
    # Only torch.linalg.solve and solve_ex call this operator; neither returns the factors.
    return result, torch.zeros_like(a), pivots, info


# Without these, PyTorch's own decomposition adds a check for errors, which has no ONNX form.
@decomposes("aten::linalg_inv", "aten::inverse", nodes=("inverse", "matrix_solve"))
def linalg_inv(a: Tensor) -> Any:
    return _inverse(a, raises=True)


@decomposes("aten::linalg_solve", nodes=("matrix_solve",))
def linalg_solve(a: Tensor, b: Tensor, *, left: bool = True) -> Any:
    return _solution(a, b, left, True)[0]


@decomposes("aten::linalg_tensorinv", nodes=("inverse", "matrix_solve"))
def linalg_tensorinv(self: Tensor, ind: int = 2) -> Any:
    rows = 1
    for size in self.shape[:ind]:
        rows = rows * size
    return _inverse(self.reshape(rows, -1), raises=True).reshape([*self.shape[ind:], *self.shape[:ind]])


@decomposes("aten::linalg_solve_triangular", nodes=("matrix_solve",))
def linalg_solve_triangular(
    self: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    triangle = "upper" if upper else "lower"
    if left:
        return solved(self, b, triangle, unit=unitriangular)
    return solved(self, b.mT, triangle, transpose=True, unit=unitriangular).mT


@decomposes("aten::triangular_solve", nodes=("matrix_solve",))
def triangular_solve(
    self: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    triangle = "upper" if upper else "lower"
    return solved(a, self, triangle, transpose=transpose, unit=unitriangular), a.clone()


@decomposes("aten::cholesky_solve", nodes=("matrix_solve",))
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Any:
    return solved(adjoint(input2) if upper else input2, self, "cholesky")


@decomposes("aten::cholesky_inverse", nodes=("matrix_solve",))
def cholesky_inverse(self: Tensor, upper: bool = False) -> Any:
    unit = unit_matrix(self.shape[-1], self.shape[-1], self).expand(self.shape)
    return torch.ops.aten.cholesky_solve(unit, self, upper)


_HALVINGS = 12
_TAYLOR_TERMS = 8


@decomposes("aten::linalg_matrix_exp")
def linalg_matrix_exp(self: Tensor) -> Any:
    scaled = self.to(torch.complex128 if self.dtype.is_complex else torch.float64) / 2**_HALVINGS
    unit = unit_matrix(self.shape[-1], self.shape[-1], scaled)
    result = unit
    for k in range(_TAYLOR_TERMS, 0, -1):
        result = unit + torch.matmul(scaled, result) / k
    for _ in range(_HALVINGS):
        result = torch.matmul(result, result)
    return result.expand(self.shape).to(self.dtype)


@decomposes("aten::einsum", without=REFUSED, when="several types; dots, and sizes that are not constant")
def einsum(equation: str, tensors: Sequence[Tensor], *, path: Any = None) -> Any:
    """Converts the tensors to one type, as Einsum requires. Writes letters for the dots: ONNX Runtime takes sizes that
    it does not know for different ones."""
    dtype = functools.reduce(torch.promote_types, (x.dtype for x in tensors))
    if any(x.dtype != dtype for x in tensors):
        return torch.einsum(equation, *(x.to(dtype) for x in tensors))
    if "." not in equation or all(isinstance(size, int) for x in tensors for size in x.shape):
        return NotImplemented
    inputs, arrow, output = equation.replace(" ", "").replace("...", ".").partition("->")
    terms = inputs.split(",")
    counts = [x.dim() - len(term) + 1 if "." in term else 0 for x, term in zip(tensors, terms, strict=True)]
    starts = [term.partition(".")[0] for term in terms]
    batch = torch.broadcast_shapes(
        *(x.shape[len(a) : len(a) + n] for x, a, n in zip(tensors, starts, counts, strict=True))
    )
    spare = [c for c in string.ascii_letters if c not in equation][: len(batch)]
    if not arrow:
        output = "." + "".join(sorted(c for c in set(inputs) - {",", "."} if inputs.count(c) == 1))
    expanded = []
    for x, term, start, count in zip(tensors, terms, starts, counts, strict=True):
        if "." in term:
            first, rest = x.shape[: len(start)], x.shape[len(start) + count :]
            middle = [1] * (len(batch) - count) + list(x.shape[len(start) : len(start) + count])
            x = x.reshape([*first, *middle, *rest]).expand([*first, *batch, *rest])
        expanded.append(x)
    letters = "".join(spare)
    return torch.einsum(f"{','.join(terms)}->{output}".replace(".", letters), *expanded)


def multi_dot(tensors: Sequence[Tensor], **given: Any) -> Any:
    """Replaces torch.linalg.multi_dot, which takes the example's sizes for constants.

    It multiplies from the side with fewer rows or columns, in the example.
    """
    if given or all(isinstance(size, int) for x in tensors for size in x.shape):
        return NotImplemented
    first, last = tensors[0], tensors[-1]
    rows, columns = 1 if first.dim() == 1 else first.shape[0], 1 if last.dim() == 1 else last.shape[-1]
    example_rows, example_columns = example(rows), example(columns)
    if example_rows is None or example_columns is None:
        return NotImplemented
    if example_rows <= example_columns:
        return functools.reduce(torch.matmul, tensors)
    return functools.reduce(lambda right, left: torch.matmul(left, right), reversed(tensors))


@decomposes("aten::mv", without=SLOW)
def mv(self: Tensor, vec: Tensor) -> Any:
    """ONNX Runtime multiplies a matrix by a matrix of one column 16 times as fast as by a vector."""
    return torch.mm(self, vec.unsqueeze(1)).squeeze(1)
