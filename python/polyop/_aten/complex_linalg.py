# SPDX-License-Identifier: Apache-2.0
"""Eigenvalues, singular values, QR and determinants of complex matrices, by those of their real forms.

Vectors have a phase by a rule, and not the one that LAPACK happens to compute.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop._aten.complex_numbers import adds
from polyop._aten.linear import unit_matrix
from polyop._aten.real_forms import (
    adjoint,
    complex_columns,
    conjugate,
    every_second,
    hermitian_form,
    joined,
    parts,
    real_form,
    with_distinct_values,
)

aten = torch.ops.aten


def _none(like: Tensor) -> Tensor:
    return torch.zeros([0], dtype=like.dtype.to_real(), device=like.device)


def _phases(vectors: Tensor) -> Tensor:
    """Returns the numbers by which the largest element of each column becomes positive."""
    if isinstance(vectors.shape[-2], int) and vectors.shape[-2] == 0:
        return torch.ones_like(vectors.sum(-2, keepdim=True))
    sizes = torch.abs(vectors)
    largest = sizes >= sizes.amax([-2], keepdim=True) * 0.999
    first = (largest.to(torch.int64).cumsum(-2) == 1) & largest
    real, imaginary = ((part * first).sum(-2, keepdim=True) for part in parts(vectors))
    return conjugate(torch.sgn(joined(real, imaginary)))


# ---- eigenvalues -----------------------------------------------------------------------------------


def _eigh(a: Tensor, upper: bool, vectors: bool) -> tuple[Tensor, Tensor]:
    form = hermitian_form(with_distinct_values(a) if vectors else a, upper)
    values, basis = torch.ops.polyop.eigh.default(form, upper=int(upper), vectors=int(vectors), check_errors=1)
    values = every_second(values).to(a.dtype.to_real())
    if not vectors:
        return values, joined(_none(a), _none(a))
    columns = complex_columns(every_second(basis), form.to(torch.complex128))
    return values, (columns * _phases(columns)).to(a.dtype)


@adds("aten::_linalg_eigh")
def linalg_eigh(a: Tensor, uplo: str = "L", compute_v: bool = True) -> Any:
    return _eigh(a, uplo.upper() == "U", compute_v)


@adds("aten::linalg_eigvalsh")
def linalg_eigvalsh(self: Tensor, uplo: str = "L") -> Any:
    return _eigh(self, uplo.upper() == "U", False)[0]


def _eig(a: Tensor, vectors: bool) -> tuple[Tensor, Tensor]:
    """The real form has the eigenvalues and their conjugates. Those of a + is for a large s are apart: first of each
    pair is the one with a positive imaginary part."""
    real, imaginary = (part.to(torch.float64) for part in parts(a))
    shift = (2 * (real * real + imaginary * imaginary).sum([-2, -1], keepdim=True)).sqrt() + 1e-30
    unit = unit_matrix(a.shape[-1], a.shape[-1], real)
    form = real_form(joined(real, imaginary + shift * unit))
    values, basis = torch.ops.polyop.eig.default(form, vectors=int(vectors), check_errors=1)
    first = every_second(values.mT)  # [..., real or imaginary, eigenvalue]
    found = joined(first.select(-2, 0), first.select(-2, 1) - shift.squeeze(-1)).to(a.dtype)
    if not vectors:
        return found, found
    columns = every_second(basis.movedim(-1, 0))  # [real or imaginary, ..., element, eigenvalue]
    shape = [*a.shape[:-1], 2, a.shape[-1]]
    (even_r, odd_r), (even_i, odd_i) = (
        (part.select(-2, 0), part.select(-2, 1)) for part in (columns[0].reshape(shape), columns[1].reshape(shape))
    )
    # Element j of the vector is x[2j] + i x[2j + 1].
    vector_r, vector_i = even_r - odd_i, even_i + odd_r
    length = (vector_r * vector_r + vector_i * vector_i).sum(-2, keepdim=True).sqrt()
    vector = joined(vector_r / length, vector_i / length)
    return found, (vector * _phases(vector)).to(a.dtype)


@adds("aten::linalg_eig")
def linalg_eig(self: Tensor) -> Any:
    return _eig(self, vectors=True)


@adds("aten::linalg_eigvals", "aten::_linalg_eigvals")
def linalg_eigvals(self: Tensor) -> Any:
    return _eig(self, vectors=False)[0]


# ---- determinants ----------------------------------------------------------------------------------


def _slogdet(a: Tensor) -> tuple[Tensor, Tensor]:
    real, imaginary = (part.to(torch.float64) for part in parts(_eig(a, vectors=False)[0]))
    angle = torch.atan2(imaginary, real).sum(-1)
    logarithm = torch.log(torch.hypot(real, imaginary)).sum(-1)
    singular = logarithm == -torch.inf
    zero = torch.zeros_like(angle)
    sign = joined(torch.where(singular, zero, torch.cos(angle)), torch.where(singular, zero, torch.sin(angle)))
    return sign, logarithm


def _no_factors(a: Tensor) -> tuple[Tensor, Tensor]:
    """Returns zeros for the LU factors, which only gradients use."""
    return torch.zeros_like(a), torch.zeros(a.shape[:-1], dtype=torch.int32, device=a.device)


@adds("aten::_linalg_slogdet", nodes=("eig",))
def linalg_slogdet(a: Tensor) -> Any:
    sign, logarithm = _slogdet(a)
    return sign.to(a.dtype), logarithm.to(a.dtype.to_real()), *_no_factors(a)


@adds("aten::_linalg_det", nodes=("eig",))
def linalg_det(a: Tensor) -> Any:
    sign, logarithm = _slogdet(a)
    size = torch.exp(logarithm)
    return joined(*(part * size for part in parts(sign))).to(a.dtype), *_no_factors(a)


@adds("aten::linalg_det", "aten::det", nodes=("eig",))
def det(self: Tensor) -> Any:
    return linalg_det(self)[0]


@adds("aten::logdet", nodes=("eig",))
def logdet(self: Tensor) -> Any:
    sign, logarithm = _slogdet(self)
    real, imaginary = parts(sign)
    return joined(logarithm, torch.atan2(imaginary, real)).to(self.dtype)


# ---- QR and singular values ------------------------------------------------------------------------


def _complement(q: Tensor) -> Tensor:
    """Returns orthonormal columns that complete those of q to a basis."""
    rows, columns = q.shape[-2], q.shape[-1]
    basis = _eigh(torch.matmul(q, adjoint(q)), False, True)[1]
    return basis.narrow(-1, 0, rows - columns)


def _completed(q: Tensor) -> Tensor:
    return torch.cat([q, _complement(q)], -1)


@adds("aten::linalg_qr", nodes=("qr", "eigh"))
def linalg_qr(a: Tensor, mode: str = "reduced") -> Any:
    q, r = torch.ops.polyop.qr.default(real_form(with_distinct_values(a)), complete=0)
    signs = torch.where(r.diagonal(0, -2, -1) < 0, -1.0, 1.0).unsqueeze(-2)
    q = complex_columns(every_second(q * signs), a)
    r = torch.matmul(adjoint(q), a).triu()
    if mode == "r":
        return joined(_none(a), _none(a)), r
    if mode == "complete":
        rows, columns = a.shape[-2], a.shape[-1]
        q = _completed(q)
        zeros = torch.zeros([*r.shape[:-2], rows - r.shape[-2], columns], dtype=_none(a).dtype, device=a.device)
        r = torch.cat([r, joined(zeros, zeros)], -2)
    return q, r


@adds("aten::_linalg_svd", nodes=("svd", "eigh"))
def linalg_svd(a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None) -> Any:
    form = real_form(with_distinct_values(a) if compute_uv else a)
    u, s, vh = torch.ops.polyop.svd.default(form, full_matrices=0, vectors=int(compute_uv), check_errors=1)
    s = every_second(s).to(a.dtype.to_real())
    if not compute_uv:
        none = joined(_none(a), _none(a))
        return none, s, none
    u, v = (complex_columns(every_second(columns), form.to(torch.complex128)) for columns in (u, vh.mT))
    phases = _phases(u)
    u, v = ((columns * phases).to(a.dtype) for columns in (u, v))
    if full_matrices:
        u, v = _completed(u), _completed(v)
    return u, s, adjoint(v)


@adds("aten::linalg_svdvals")
def linalg_svdvals(a: Tensor, *, driver: str | None = None) -> Any:
    return linalg_svd(a, False, False)[1]
