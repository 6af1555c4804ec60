# SPDX-License-Identifier: Apache-2.0
"""Linear equations and matrix functions, by polyop's nodes for inverses and for equations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop._aten.table import SLOW, decomposes

_INVERTED = frozenset((torch.float32, torch.float16, torch.bfloat16))


def _inverse(a: Tensor, *, raises: bool) -> Tensor:
    """Returns the inverse. A singular matrix gives NaN, or an error of the file's node."""
    if a.dtype in _INVERTED:
        return torch.ops.polyop.inverse.default(a, check_errors=int(raises))
    unit = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    return solved(a, unit.expand(a.shape), raises="inv" if raises else "nothing")


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
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if pivots is not None:
        pivots = pivots.expand(*batch, pivots.shape[-1])
    x, info = torch.ops.polyop.matrix_solve.default(
        in_node_type(_with_batch(a, batch)), in_node_type(_with_batch(b, batch)), pivots,
        method=method, transpose=int(transpose), unit=int(unit), raises=raises,
    )  # fmt: skip
    return x.to(a.dtype), info


def solved(a: Tensor, b: Tensor, method: str = "general", **options: Any) -> Tensor:
    return solved_with_info(a, b, method, **options)[0]


@decomposes("aten::linalg_inv_ex", nodes=("inverse", "matrix_factors", "matrix_solve"))
def linalg_inv_ex(a: Tensor, *, check_errors: bool = False) -> Any:
    if a.dtype.is_complex:
        return NotImplemented
    info = torch.ops.polyop.matrix_factors.default(in_node_type(a), method="lu")[3]
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
    if a.dtype.is_complex:
        return NotImplemented
    result, info = _solution(a, b, left, check_errors)
    pivots = torch.zeros(a.shape[:-1], dtype=torch.int32, device=a.device)
    # Only torch.linalg.solve and solve_ex call this operator; neither returns the factors.
    return result, torch.zeros_like(a), pivots, info


# Without these, PyTorch's own decomposition adds a check for errors, which has no ONNX form.
@decomposes("aten::linalg_inv", "aten::inverse", nodes=("inverse", "matrix_solve"))
def linalg_inv(a: Tensor) -> Any:
    return NotImplemented if a.dtype.is_complex else _inverse(a, raises=True)


@decomposes("aten::linalg_solve", nodes=("matrix_solve",))
def linalg_solve(a: Tensor, b: Tensor, *, left: bool = True) -> Any:
    return NotImplemented if a.dtype.is_complex else _solution(a, b, left, True)[0]


@decomposes("aten::linalg_tensorinv", nodes=("inverse", "matrix_solve"))
def linalg_tensorinv(self: Tensor, ind: int = 2) -> Any:
    if self.dtype.is_complex:
        return NotImplemented
    rows = 1
    for size in self.shape[:ind]:
        rows = rows * size
    return _inverse(self.reshape(rows, -1), raises=True).reshape([*self.shape[ind:], *self.shape[:ind]])


@decomposes("aten::linalg_solve_triangular", nodes=("matrix_solve",))
def linalg_solve_triangular(
    self: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:  # fmt: skip
    if self.dtype.is_complex:
        return NotImplemented
    triangle = "upper" if upper else "lower"
    if left:
        return solved(self, b, triangle, unit=unitriangular)
    return solved(self, b.mT, triangle, transpose=True, unit=unitriangular).mT


@decomposes("aten::triangular_solve", nodes=("matrix_solve",))
def triangular_solve(
    self: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:  # fmt: skip
    if self.dtype.is_complex:
        return NotImplemented
    triangle = "upper" if upper else "lower"
    return solved(a, self, triangle, transpose=transpose, unit=unitriangular), a.clone()


@decomposes("aten::cholesky_solve", nodes=("matrix_solve",))
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Any:
    if self.dtype.is_complex:
        return NotImplemented
    return solved(input2.mT if upper else input2, self, "cholesky")


@decomposes("aten::cholesky_inverse", nodes=("matrix_solve",))
def cholesky_inverse(self: Tensor, upper: bool = False) -> Any:
    if self.dtype.is_complex:
        return NotImplemented
    unit = torch.eye(self.shape[-1], dtype=self.dtype, device=self.device).expand(self.shape)
    return torch.ops.aten.cholesky_solve(unit, self, upper)


_HALVINGS = 12
_TAYLOR_TERMS = 8


@decomposes("aten::linalg_matrix_exp")
def linalg_matrix_exp(self: Tensor) -> Any:
    if self.dtype.is_complex:
        return NotImplemented
    scaled = self.to(torch.float64) / 2**_HALVINGS
    unit = torch.eye(self.shape[-1], dtype=torch.float64, device=self.device)
    result = unit
    for k in range(_TAYLOR_TERMS, 0, -1):
        result = unit + torch.matmul(scaled, result) / k
    for _ in range(_HALVINGS):
        result = torch.matmul(result, result)
    return result.expand(self.shape).to(self.dtype)


@decomposes("aten::mv", without=SLOW)
def mv(self: Tensor, vec: Tensor) -> Any:
    """ONNX Runtime multiplies a matrix by a matrix of one column 16 times as fast as by a vector."""
    return torch.mm(self, vec.unsqueeze(1)).squeeze(1)
