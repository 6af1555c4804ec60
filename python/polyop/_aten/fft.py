# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms, by polyop's transform of any length."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from polyop._aten.table import SLOW, decomposes

aten = torch.ops.aten

_NORMS = {False: ("backward", "ortho", "forward"), True: ("forward", "ortho", "backward")}
"""For forward and inverse transforms, the names of PyTorch's normalizations: none, 1 / sqrt(n), 1 / n."""


def _transform(
    pairs: Tensor,
    dim: Sequence[int],
    normalization: int,
    *,
    inverse: bool = False,
    onesided: bool = False,
    odd: int = 0,
) -> Tensor:
    """Transforms numbers whose parts are the last dimension, which `dim` does not count."""
    rank = pairs.dim() - 1
    axes = [d % rank for d in dim]
    order = [d for d in range(rank) if d not in axes] + axes
    moved = order != list(range(rank))
    result = torch.ops.polyop.dft.default(
        pairs.permute(*order, rank) if moved else pairs,
        dimensions=len(axes),
        inverse=int(inverse),
        onesided=int(onesided),
        odd=odd,
        norm=_NORMS[inverse][normalization],
    )
    return result.permute(*(order.index(d) for d in range(rank)), rank) if moved else result


def _joined(pairs: Tensor) -> Tensor:
    return torch.view_as_complex(pairs.contiguous())


@decomposes("aten::_fft_c2c", without=SLOW, nodes=("dft",))
def fft_c2c(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    if not dim:
        return self.clone()
    return _joined(_transform(torch.view_as_real(self), dim, normalization, inverse=not forward))


@decomposes("aten::_fft_r2c", without=SLOW, nodes=("dft",))
def fft_r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    return _joined(_transform(self.unsqueeze(-1), dim, normalization, onesided=onesided))


def _frames(signal: Tensor, length: int, step: int) -> Tensor:
    """Returns signal.unfold(-1, length, step), gathered in blocks: single elements take 30 times as long."""
    block = math.gcd(length, step)
    if block == 1:
        return signal.unfold(-1, length, step)
    count = (signal.shape[-1] - length) // step + 1
    blocks = signal.narrow(-1, 0, (count - 1) * step + length).unflatten(-1, (-1, block))
    first = torch.arange(count, device=signal.device).unsqueeze(1) * (step // block)
    index = first + torch.arange(length // block, device=signal.device)
    return blocks.index_select(1, index.flatten()).reshape(signal.shape[0], count, length)


@decomposes("aten::stft", without=SLOW, nodes=("dft",))
def stft(
    self: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Any:  # fmt: skip
    """The spectra of windows, each a transform of one node. ONNX Runtime's STFT sums lengths other than powers of two
    term by term, in float32."""
    if self.dtype not in (torch.float32, torch.float64, torch.complex64, torch.complex128) or align_to_window:
        return NotImplemented
    has_complex = self.dtype.is_complex or (window is not None and window.dtype.is_complex)
    signal = self if self.dim() == 2 else self.unsqueeze(0)
    frames = _frames(signal, n_fft, hop_length or n_fft // 4)
    width = n_fft if win_length is None else win_length
    weights = torch.ones([width], dtype=self.dtype.to_real(), device=self.device) if window is None else window
    if width < n_fft:
        before = (n_fft - width) // 2
        weights = aten.constant_pad_nd(weights, [before, n_fft - width - before], 0.0)
    if window is not None or width < n_fft:
        frames = frames * weights
    pairs = torch.view_as_real(frames) if has_complex else frames.unsqueeze(-1)
    half = not has_complex if onesided is None else onesided
    spectrum = _transform(pairs, [2], int(normalized), onesided=half)
    result = spectrum.transpose(1, 2)
    result = result if self.dim() == 2 else result.squeeze(0)
    return result if return_complex is False else _joined(result)


@decomposes("aten::_fft_c2r", without=SLOW, nodes=("dft",))
def fft_c2r(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: Any) -> Any:
    if isinstance(last_dim_size, int):
        pairs = torch.view_as_real(self)
        odd = last_dim_size % 2
        return _transform(pairs, dim, normalization, inverse=True, onesided=True, odd=odd).squeeze(-1)
    # Whether the length is odd is not known: this computes the whole spectrum.
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


def _resized(x: Tensor, axis: int, size: Any) -> Tensor:
    """Returns the first elements of an axis, and zeros beyond its end."""
    x = x.movedim(axis, -1)
    padded = torch.nn.functional.pad(x, [0, size])
    return padded.narrow(-1, 0, size).movedim(-1, axis)


def _of_length(name: str) -> Callable[..., Any]:
    """Replaces a function of torch.fft, which takes the example's size for a constant if a length is given."""
    function, many = getattr(torch.fft, name), not name.endswith("fft")

    def call(input: Tensor, n: Any = None, dim: Any = None, norm: str | None = None, **given: Any) -> Any:
        n = given.pop("s", n)
        if n is None or given:
            return NotImplemented
        lengths = list(n) if many else [n]
        axes = [dim] if isinstance(dim, int) else list(range(-len(lengths), 0)) if dim is None else list(dim)
        resized = input
        for axis, length in zip(axes, lengths, strict=True):
            if isinstance(length, int) and (length < 0 or isinstance(input.shape[axis], int)):
                continue
            half = name.startswith(("irfft", "hfft")) and axis == axes[-1]  # the input is half of a spectrum
            resized = _resized(resized, axis, length // 2 + 1 if half else length)
        return NotImplemented if resized is input else function(resized, n, axes if many else axes[0], norm)

    return call


_KINDS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
REPLACED: dict[Any, Callable[..., Any]] = {
    getattr(torch.fft, name): _of_length(name) for kind in _KINDS for name in (kind, f"{kind}2", f"{kind}n")
}
"""What is called while a program is captured, instead of PyTorch's functions."""
