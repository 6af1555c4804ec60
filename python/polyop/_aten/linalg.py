# SPDX-License-Identifier: Apache-2.0
"""Factorizations of matrices and what PyTorch computes by them: LU, Cholesky, QR, eigenvalues, singular values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop._aten.linear import in_node_type, permutation, solved, unit_matrix
from polyop._aten.real_forms import adjoint, complex_form, conjugate, hermitian_form, index_of_pair
from polyop._aten.table import decomposes

aten = torch.ops.aten


def _factors(a: Tensor, method: str, raises: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the factors, the scales of reflections, the pivots, and which pivot or minor fails."""
    factors, scales, pivots, info = torch.ops.polyop.matrix_factors.default(
        in_node_type(a), method=method, check_errors=int(raises)
    )
    return factors.to(a.dtype), scales.to(a.dtype), pivots, info


def _smaller(a: Tensor) -> Any:
    return torch.sym_min(a.shape[-2], a.shape[-1])


def _no_elements(like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    return torch.zeros([0], dtype=dtype or like.dtype, device=like.device)


# ---- LU --------------------------------------------------------------------------------------------


@decomposes("aten::linalg_lu_factor_ex", nodes=("matrix_factors",))
def linalg_lu_factor_ex(a: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    if a.dtype.is_complex or not pivot:
        return NotImplemented
    factors, _, pivots, info = _factors(a, "lu", check_errors)
    return factors, pivots, info


@decomposes("aten::linalg_lu_factor", nodes=("matrix_factors",))
def linalg_lu_factor(a: Tensor, *, pivot: bool = True) -> Any:
    return aten.linalg_lu_factor_ex(a, check_errors=True)[:2] if pivot else NotImplemented


@decomposes("aten::_lu_with_info", nodes=("matrix_factors",))
def lu_with_info(self: Tensor, pivot: bool = True, check_errors: bool = True) -> Any:
    return aten.linalg_lu_factor_ex(self, check_errors=check_errors) if pivot else NotImplemented


@decomposes("aten::lu_unpack", nodes=("matrix_solve",))
def lu_unpack(factors: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    p = lower = upper = _no_elements(factors)
    if unpack_pivots:
        p = permutation(pivots, factors)
    if unpack_data:
        count = _smaller(factors)
        lower = factors.narrow(-1, 0, count).tril(-1) + unit_matrix(factors.shape[-2], count, factors)
        upper = factors.narrow(-2, 0, count).triu()
    return p, lower, upper


@decomposes("aten::linalg_lu", nodes=("matrix_factors", "matrix_solve"))
def linalg_lu(a: Tensor, *, pivot: bool = True) -> Any:
    if not pivot:
        return NotImplemented
    factors, pivots, _ = aten.linalg_lu_factor_ex(a)
    return aten.lu_unpack(factors, pivots)


@decomposes("aten::linalg_lu_solve", nodes=("matrix_solve",))
def linalg_lu_solve(factors: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False) -> Any:
    right = b if left else b.mT
    factors = conjugate(factors) if adjoint else factors
    result = solved(factors, right, method="lu", transpose=adjoint == left, pivots=pivots)
    return result if left else result.mT


@decomposes("aten::lu_solve", nodes=("matrix_solve",))
def lu_solve(self: Tensor, factors: Tensor, pivots: Tensor) -> Any:
    return aten.linalg_lu_solve(factors, pivots, self)


@decomposes("aten::_linalg_slogdet", nodes=("slogdet", "matrix_factors"))
def linalg_slogdet(a: Tensor) -> Any:
    if a.dtype.is_complex:
        return NotImplemented
    sign, logarithm = torch.ops.polyop.slogdet.default(in_node_type(a))
    factors, _, pivots, _ = _factors(a, "lu")  # gradients need them
    return sign.to(a.dtype), logarithm.to(a.dtype), factors, pivots


# ---- LDL -------------------------------------------------------------------------------------------


@decomposes("aten::linalg_ldl_factor_ex", nodes=("matrix_factors",))
def linalg_ldl_factor_ex(self: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    if self.dtype.is_complex:
        return NotImplemented
    factors, _, pivots, info = _factors(self, "ldl", check_errors)
    return factors, pivots, info


@decomposes("aten::linalg_ldl_factor", nodes=("matrix_factors",))
def linalg_ldl_factor(self: Tensor, *, hermitian: bool = False) -> Any:
    return NotImplemented if self.dtype.is_complex else aten.linalg_ldl_factor_ex(self, check_errors=True)[:2]


@decomposes("aten::linalg_ldl_solve", nodes=("matrix_solve",))
def linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Any:  # noqa: N803
    return NotImplemented if LD.dtype.is_complex else solved(LD, B, method="ldl", pivots=pivots)


# ---- Cholesky --------------------------------------------------------------------------------------


@decomposes("aten::linalg_cholesky_ex", nodes=("matrix_factors",))
def linalg_cholesky_ex(self: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    if self.dtype.is_complex:
        form = hermitian_form(adjoint(self) if upper else self, upper=False)
        factors, _, _, info = _factors(form, "cholesky", check_errors)
        factors, info = complex_form(factors, self), index_of_pair(info)
    else:
        factors, _, _, info = _factors(self.mT if upper else self, "cholesky", check_errors)
    return adjoint(factors) if upper else factors, info


@decomposes("aten::linalg_cholesky", nodes=("matrix_factors",))
def linalg_cholesky(self: Tensor, *, upper: bool = False) -> Any:
    return aten.linalg_cholesky_ex(self, upper=upper, check_errors=True)[0]


@decomposes("aten::cholesky", nodes=("matrix_factors",))
def cholesky(self: Tensor, upper: bool = False) -> Any:
    return aten.linalg_cholesky(self, upper=upper)


# ---- QR --------------------------------------------------------------------------------------------


@decomposes("aten::geqrf", nodes=("matrix_factors",))
def geqrf(self: Tensor) -> Any:
    return NotImplemented if self.dtype.is_complex else _factors(self, "qr")[:2]


def _reflections(vectors: Tensor, scales: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns V, D and D V.mH V: the product of reflections is I - V (I + D S)^-1 D V.mH.

    The columns of V are their vectors, D has their scales, and S is the strict upper triangle of V.mH V.
    """
    count = scales.shape[-1]
    vectors = vectors.narrow(-1, 0, count).tril(-1) + unit_matrix(vectors.shape[-2], count, vectors)
    scales = scales.unsqueeze(-1)
    return vectors, scales, scales * torch.matmul(adjoint(vectors), vectors)


def _reflected(vectors: Tensor, scales: Tensor, other: Tensor, transpose: bool = False) -> Tensor:
    """Returns Q @ other or Q.mH @ other for the product Q of reflections."""
    vectors, scales, triangle = _reflections(vectors, scales)
    right = torch.matmul(adjoint(vectors), other)
    if transpose:
        x = solved(conjugate(triangle), right, "upper", transpose=True, unit=True)
        return other - torch.matmul(vectors, conjugate(scales) * x)
    return other - torch.matmul(vectors, solved(triangle, scales * right, "upper", unit=True))


@decomposes("aten::linalg_householder_product", "aten::orgqr", nodes=("matrix_solve",))
def linalg_householder_product(vectors: Tensor, scales: Tensor) -> Any:
    columns = vectors.shape[-1]
    unit = unit_matrix(vectors.shape[-2], columns, vectors)
    vectors, scales, triangle = _reflections(vectors, scales)
    right = scales * adjoint(vectors.narrow(-2, 0, columns))
    return unit - torch.matmul(vectors, solved(triangle, right, "upper", unit=True))


@decomposes("aten::ormqr", nodes=("matrix_solve",))
def ormqr(self: Tensor, scales: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Any:
    if left:
        return _reflected(self, scales, other, transpose)
    return adjoint(_reflected(self, scales, adjoint(other), not transpose))


@decomposes("aten::linalg_qr", nodes=("matrix_factors", "qr"))
def linalg_qr(a: Tensor, mode: str = "reduced") -> Any:
    if a.dtype.is_complex:
        return NotImplemented
    if mode == "r":
        return _no_elements(a), aten.geqrf(a)[0].narrow(-2, 0, _smaller(a)).triu()
    q, r = torch.ops.polyop.qr.default(in_node_type(a), complete=int(mode == "complete"))
    return q.to(a.dtype), r.to(a.dtype)


# ---- Eigenvalues and singular values ---------------------------------------------------------------


@decomposes("aten::_linalg_eigh", nodes=("eigh",))
def linalg_eigh(a: Tensor, uplo: str = "L", compute_v: bool = True) -> Any:
    if a.dtype.is_complex:
        return NotImplemented
    values, vectors = torch.ops.polyop.eigh.default(
        in_node_type(a), upper=int(uplo.upper() == "U"), vectors=int(compute_v), check_errors=1
    )
    return values.to(a.dtype), vectors.to(a.dtype) if compute_v else _no_elements(a)


@decomposes("aten::linalg_eigvalsh", nodes=("eigh",))
def linalg_eigvalsh(self: Tensor, uplo: str = "L") -> Any:
    """Without this the exporter's program computes the vectors, too."""
    result = linalg_eigh(self, uplo, False)
    return result if result is NotImplemented else result[0]


@decomposes("aten::linalg_svdvals", nodes=("svd",))
def linalg_svdvals(a: Tensor, *, driver: str | None = None) -> Any:
    result = linalg_svd(a, False, False, driver=driver)
    return result if result is NotImplemented else result[1]


def _eig(a: Tensor, vectors: bool) -> tuple[Tensor, Tensor]:
    values, basis = torch.ops.polyop.eig.default(in_node_type(a), vectors=int(vectors), check_errors=1)
    return torch.view_as_complex(values.to(a.dtype)), torch.view_as_complex(basis.to(a.dtype))


@decomposes("aten::linalg_eig", nodes=("eig",))
def linalg_eig(self: Tensor) -> Any:
    return NotImplemented if self.dtype.is_complex else _eig(self, vectors=True)


@decomposes("aten::linalg_eigvals", "aten::_linalg_eigvals", nodes=("eig",))
def linalg_eigvals(self: Tensor) -> Any:
    return NotImplemented if self.dtype.is_complex else _eig(self, vectors=False)[0]


@decomposes("aten::_linalg_svd", nodes=("svd",))
def linalg_svd(a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None) -> Any:
    if a.dtype.is_complex:
        return NotImplemented
    u, s, vh = torch.ops.polyop.svd.default(
        in_node_type(a), full_matrices=int(full_matrices and compute_uv), vectors=int(compute_uv), check_errors=1
    )
    if not compute_uv:
        return _no_elements(a), s.to(a.dtype), _no_elements(a)
    return u.to(a.dtype), s.to(a.dtype), vh.to(a.dtype)


def _inverse_or_zero(values: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the inverses of the values above the limit, 0 for the others, and which are above it."""
    kept = values.abs() > limit
    return torch.where(kept, 1 / torch.where(kept, values, torch.ones_like(values)), torch.zeros_like(values)), kept


@decomposes("aten::linalg_pinv.atol_rtol_tensor", nodes=("eigh", "svd"))
def linalg_pinv(
    self: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Any:
    if any(isinstance(size, int) and size == 0 for size in self.shape[-2:]):
        return torch.zeros_like(self.mT)
    default = torch.finfo(self.dtype).eps * torch.sym_max(self.shape[-2], self.shape[-1])
    if atol is None:
        atol = torch.zeros([], dtype=self.dtype.to_real(), device=self.device)
    if rtol is None:
        rtol = torch.where(atol > 0, torch.zeros_like(atol), torch.ones_like(atol) * default)
    if hermitian:
        values, right = aten._linalg_eigh(self)
        left = adjoint(right)
    else:
        left, values, right = aten._linalg_svd(self)
        left, right = adjoint(left), adjoint(right)
    largest = values.abs().amax(-1, keepdim=True)
    limit = torch.maximum(atol.unsqueeze(-1), rtol.unsqueeze(-1) * largest)
    inverse = _inverse_or_zero(values, limit)[0]
    return torch.matmul(right * inverse.unsqueeze(-2), left)


def lstsq(input: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:  # noqa: N803
    """Replaces torch.linalg.lstsq, whose sizes of results depend on the rank of the matrix.

    The residuals are those of matrices of full rank.
    """
    rows, columns = input.shape[-2], input.shape[-1]
    vector = B.dim() == 1 or (input.dim() - 1 == B.dim() and tuple(B.shape) == tuple(input.shape[:-1]))
    right = B.unsqueeze(-1) if vector else B
    u, s, vh = torch.linalg.svd(input, full_matrices=False)
    relative = torch.finfo(input.dtype).eps * max(rows, columns) if rcond is None else rcond
    inverse, kept = _inverse_or_zero(s, relative * s.narrow(-1, 0, 1))
    x = torch.matmul(vh.mH, inverse.unsqueeze(-1) * torch.matmul(u.mH, right))
    residuals = _no_elements(s)
    if rows > columns and driver in ("gels", "gelss", "gelsd"):
        residuals = (right - torch.matmul(input, x)).abs().square().sum(-2)
    rank = _no_elements(input, torch.int64) if driver == "gels" else kept.to(torch.int64).sum(-1)
    singular = s if driver in ("gelss", "gelsd") else _no_elements(s)
    results = (x.squeeze(-1) if vector else x, residuals, rank, singular)
    return torch.return_types.linalg_lstsq(results)  # type: ignore[attr-defined]


@decomposes("aten::_linalg_check_errors")
def linalg_check_errors(info: Tensor, api_name: str, *, is_matrix: bool) -> Any:
    """Leaves out the check, for which the nodes have attributes: this is for the parts of composite operators."""
    return None
