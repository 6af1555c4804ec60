"""Linear equations and matrix functions, by polyop's matrix inverse."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop._aten.table import decomposes

_INVERTED = frozenset((torch.float32, torch.float16, torch.bfloat16))


def _inverse(matrix: Tensor) -> Tensor:
    """Returns the inverse; NaN for a singular matrix. Its elements are rounded to float32."""
    dtype = matrix.dtype if matrix.dtype in _INVERTED else torch.float32
    return torch.ops.polyop.inverse.default(matrix.to(dtype)).to(matrix.dtype)


def _solved(matrix: Tensor, right: Tensor) -> Tensor:
    """Returns the solution of matrix @ x = right, with a step of iterative refinement."""
    inverse = _inverse(matrix)
    x = torch.matmul(inverse, right)
    for _ in range(1 if matrix.dtype == torch.float32 else 3):
        x = x + torch.matmul(inverse, right - torch.matmul(matrix, x))
    return x


def _no_error(matrix: Tensor) -> Tensor:
    return torch.zeros(matrix.shape[:-2], dtype=torch.int32, device=matrix.device)


@decomposes("aten::linalg_inv_ex", nodes=("inverse",))
def linalg_inv_ex(a: Tensor, *, check_errors: bool = False) -> Any:
    if a.dtype.is_complex:
        return NotImplemented
    if a.dtype in _INVERTED:
        return _inverse(a), _no_error(a)
    unit = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    return _solved(a, unit.expand(a.shape)), _no_error(a)


@decomposes("aten::_linalg_solve_ex", nodes=("inverse",))
def linalg_solve_ex(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    if a.dtype.is_complex:
        return NotImplemented
    vector = b.dim() == 1 or (a.dim() - 1 == b.dim() and tuple(b.shape) == tuple(a.shape[:-1]))
    right = b.unsqueeze(-1) if vector else b
    result = _solved(a, right) if left or vector else _solved(a.mT, right.mT).mT
    pivots = torch.zeros(a.shape[:-1], dtype=torch.int32, device=a.device)
    # Only torch.linalg.solve and solve_ex call this operator; neither returns the factors.
    return result.squeeze(-1) if vector else result, torch.zeros_like(a), pivots, _no_error(a)


# Without these, PyTorch's own decomposition adds a check for errors, which has no ONNX form.
@decomposes("aten::linalg_inv", "aten::inverse", nodes=("inverse",))
def linalg_inv(a: Tensor) -> Any:
    return torch.ops.aten.linalg_inv_ex(a)[0]


@decomposes("aten::linalg_solve", nodes=("inverse",))
def linalg_solve(a: Tensor, b: Tensor, *, left: bool = True) -> Any:
    return torch.ops.aten._linalg_solve_ex(a, b, left=left)[0]


@decomposes("aten::linalg_tensorinv", nodes=("inverse",))
def linalg_tensorinv(self: Tensor, ind: int = 2) -> Any:
    rows = 1
    for size in self.shape[:ind]:
        rows = rows * size
    inverse = torch.ops.aten.linalg_inv_ex(self.reshape(rows, -1))[0]
    return inverse.reshape([*self.shape[ind:], *self.shape[:ind]])


def _triangle(matrix: Tensor, upper: bool, unit: bool) -> Tensor:
    matrix = matrix.triu() if upper else matrix.tril()
    if not unit:
        return matrix
    diagonal = torch.eye(matrix.shape[-1], dtype=torch.bool, device=matrix.device)
    return torch.where(diagonal, torch.ones_like(matrix), matrix)


@decomposes("aten::linalg_solve_triangular", nodes=("inverse",))
def linalg_solve_triangular(
    self: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:  # fmt: skip
    if self.dtype.is_complex:
        return NotImplemented
    matrix = _triangle(self, upper, unitriangular)
    return _solved(matrix, b) if left else _solved(matrix.mT, b.mT).mT


@decomposes("aten::triangular_solve", nodes=("inverse",))
def triangular_solve(
    self: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:  # fmt: skip
    if self.dtype.is_complex:
        return NotImplemented
    matrix = _triangle(a, upper, unitriangular)
    return _solved(matrix.mT if transpose else matrix, self), a.clone()


@decomposes("aten::cholesky_solve", nodes=("inverse",))
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Any:
    if self.dtype.is_complex:
        return NotImplemented
    factor = input2.triu().mT if upper else input2.tril()
    return _solved(factor.mT, _solved(factor, self))


@decomposes("aten::cholesky_inverse", nodes=("inverse",))
def cholesky_inverse(self: Tensor, upper: bool = False) -> Any:
    if self.dtype.is_complex:
        return NotImplemented
    factor = self.triu().mT if upper else self.tril()
    inverse = _inverse(factor)
    return torch.matmul(inverse.mT, inverse)


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
