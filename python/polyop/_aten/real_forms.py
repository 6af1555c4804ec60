# SPDX-License-Identifier: Apache-2.0
"""Complex numbers and matrices as real ones: pairs of numbers, and matrices of twice the size.

A number a + bi becomes the block [[a, -b], [b, a]] of a matrix. Products, sums and inverses of such matrices are those
of the complex ones, a Hermitian matrix becomes symmetric, and a triangle whose diagonal is real remains a triangle.
"""

from __future__ import annotations

import torch
from torch import Tensor


def parts(z: Tensor) -> tuple[Tensor, Tensor]:
    pairs = torch.view_as_real(z)
    return pairs.select(-1, 0), pairs.select(-1, 1)


def both_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the parts of a number that may be real."""
    return parts(x) if x.dtype.is_complex else (x, torch.zeros_like(x))


def joined(real: Tensor, imaginary: Tensor) -> Tensor:
    return torch.view_as_complex(torch.stack([real, imaginary], -1))


def conjugate(x: Tensor) -> Tensor:
    if not x.dtype.is_complex:
        return x
    real, imaginary = parts(x)
    return joined(real, -imaginary)


def adjoint(x: Tensor) -> Tensor:
    return conjugate(x).mT


def real_form(a: Tensor) -> Tensor:
    """Returns the real matrix of a complex one, in double precision."""
    real, imaginary = (part.to(torch.float64) for part in both_parts(a))
    rows = torch.stack([torch.stack([real, -imaginary], -1), torch.stack([imaginary, real], -1)], -3)
    return rows.reshape([*a.shape[:-2], 2 * a.shape[-2], 2 * a.shape[-1]])


def real_columns(b: Tensor) -> Tensor:
    """Returns the columns of a complex matrix that a real form is multiplied by: every second one of its real form."""
    pairs = torch.stack([part.to(torch.float64) for part in both_parts(b)], -2)
    return pairs.reshape([*b.shape[:-2], 2 * b.shape[-2], b.shape[-1]])


def complex_columns(x: Tensor, like: Tensor) -> Tensor:
    """Returns the complex matrix of such columns, in the type of `like`."""
    pairs = x.to(like.dtype.to_real()).reshape([*x.shape[:-2], x.shape[-2] // 2, 2, x.shape[-1]])
    return joined(pairs.select(-2, 0), pairs.select(-2, 1))


def complex_form(x: Tensor, like: Tensor) -> Tensor:
    """Returns the complex matrix of a real form, in the type of `like`."""
    return complex_columns(every_second(x), like)


def every_second(x: Tensor) -> Tensor:
    """Returns the first element of each pair in the last dimension."""
    return x.reshape([*x.shape[:-1], x.shape[-1] // 2, 2]).select(-1, 0)


def index_of_pair(info: Tensor) -> Tensor:
    """Returns the number of the row, counted from 1, for that of a real form; 0 stays."""
    return torch.div(info + 1, 2, rounding_mode="floor")


def hermitian_form(a: Tensor, upper: bool) -> Tensor:
    """Returns the real form of a triangle of a Hermitian matrix, whose diagonal counts as real."""
    real, imaginary = parts(a)
    return real_form(joined(real, imaginary.triu(1) if upper else imaginary.tril(-1)))


_SPLIT = 1e-10


def with_distinct_values(a: Tensor) -> Tensor:
    """Returns the matrix with a perturbation that separates equal singular values, or eigenvalues, of a complex one.

    A real form has each of them twice, for a vector v and for iv. Of two vectors of one value either is the vector of
    the complex matrix; of the vectors of several equal values no choice is known to be a basis.
    """
    real, imaginary = (part.to(torch.float64) for part in parts(a))
    rows, columns = (torch.arange(1, a.shape[axis] + 1, device=a.device).to(torch.float64) for axis in (-2, -1))
    noise = torch.cos(rows.unsqueeze(-1) * columns)
    size = (real * real + imaginary * imaginary).sum([-2, -1], keepdim=True).sqrt()
    return joined(real + noise * (_SPLIT * torch.where(size == 0, torch.ones_like(size), size)), imaginary)
