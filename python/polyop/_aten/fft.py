"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop._aten.table import REFUSED, decomposes

aten = torch.ops.aten


# ONNX Runtime assumes that a one-sided transform keeps the size, where it does not know it, and so reuses memory of
# another size. Two-sided ones do keep it.


@decomposes("aten::_fft_r2c", without=REFUSED, when="one-sided, of a length that is not constant")
def fft_r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    length = self.shape[dim[-1]]
    if not onesided or isinstance(length, int):
        return NotImplemented
    spectrum = aten._fft_r2c(self, dim, normalization, False)
    return spectrum.index_select(dim[-1], torch.arange(length // 2 + 1, device=self.device))


@decomposes("aten::_fft_c2r", without=REFUSED, when="a length that is not constant")
def fft_c2r(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: Any) -> Any:
    if isinstance(last_dim_size, int):
        return NotImplemented
    *others, last = dim
    half = aten._fft_c2c(self, others, normalization, False) if others else self
    position = torch.arange(last_dim_size, device=self.device)
    given = position < half.shape[last]
    spectrum = half.index_select(last, torch.where(given, position, last_dim_size - position))
    # A frequency above the half is the conjugate of the one that mirrors it.
    ones = [1] * (self.dim() - 1 - last % self.dim())
    real, imaginary = torch.view_as_real(spectrum).unbind(-1)
    imaginary = torch.where(given.reshape(-1, *ones), imaginary, -imaginary)
    spectrum = torch.view_as_complex(torch.stack([real, imaginary], -1))
    return torch.view_as_real(aten._fft_c2c(spectrum, [last], normalization, False)).select(-1, 0)
