# SPDX-License-Identifier: Apache-2.0
"""Ranges, windows, combinations and parts of a length that is not constant, which PyTorch computes for constants alone.

The functions replace PyTorch's while a program is captured (capturing.py).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes


def _are_constant(*values: Any) -> bool:
    return not any(isinstance(value, (torch.SymInt, torch.SymFloat)) for value in values)


def _tensor(value: Any, dtype: torch.dtype, device: Any) -> Tensor:
    return value.to(dtype) if isinstance(value, Tensor) else torch.scalar_tensor(value, dtype=dtype, device=device)


def linspace(
    start: Any, end: Any, steps: Any, *, dtype: torch.dtype | None = None, device: Any = None, **how: Any
) -> Any:
    dtype = dtype or torch.get_default_dtype()
    if _are_constant(start, end, steps) or dtype.is_complex:
        return NotImplemented
    wide = dtype if dtype in (torch.float32, torch.float64) else torch.float64
    first, last = (_tensor(value, dtype, device).to(wide) for value in (start, end))
    at = torch.arange(steps, dtype=wide, device=device)
    intervals = _tensor(steps - 1, wide, device)
    divisor = intervals.clamp(min=1)
    step = (last - first) / divisor
    # PyTorch counts from the nearer end, so that the last element is the end exactly.
    result = torch.where(at * 2 < divisor, first + step * at, last - step * (intervals - at))
    return result.to(dtype)


_WHOLE_LIMITS = torch.arange(3.1, dtype=torch.int64).numel() == 3
"""Whether this PyTorch rounds the limits of a range of int64 before it counts the elements."""


def arange(*limits: Any, dtype: torch.dtype | None = None, device: Any = None, out: Any = None, **how: Any) -> Any:
    """Counts the elements in float64, as PyTorch does: the exporter converts the limits to float32 before."""
    names = ("end",) if len(limits) == 1 else ("start", "end", "step")
    given = {"start": 0, "step": 1, **dict(zip(names, limits, strict=False)), **how}
    start, end, step = values = given["start"], given["end"], given["step"]
    fractions = [isinstance(value, (float, torch.SymFloat)) for value in values]
    if out is not None or _are_constant(*values) or not any(fractions) or any(isinstance(v, Tensor) for v in values):
        return NotImplemented
    dtype = dtype or torch.get_default_dtype()
    if not dtype.is_floating_point:
        whole = [torch.sym_int(value) for value in values]
        if dtype == torch.int64 and _WHOLE_LIMITS:
            return torch.arange(*whole, dtype=dtype, device=device)
    # Not `end - 0`: a symbol of the difference is no product of the step any more.
    span = end if _are_constant(start) and start == 0 else end - start
    count = math.ceil(span if _are_constant(step) and step == 1 else span / step)
    if not dtype.is_floating_point:
        return (torch.arange(count, device=device) * whole[2] + whole[0]).to(dtype)
    first, by = (torch.tensor(v, dtype=torch.float64, device=device) if _are_constant(v) else v for v in (start, step))
    return (torch.arange(count, dtype=torch.float64, device=device) * by + first).to(dtype)


def logspace(
    start: Any, end: Any, steps: Any, base: float = 10.0, *, dtype: torch.dtype | None = None, device: Any = None,
    **how: Any,
) -> Any:  # fmt: skip
    dtype = dtype or torch.get_default_dtype()
    if _are_constant(start, end, steps) or dtype.is_complex:
        return NotImplemented
    if not dtype.is_floating_point:  # the limits are rounded, but not the exponents
        start, end = (value.to(dtype) if isinstance(value, Tensor) else torch.sym_int(value) for value in (start, end))
    return torch.pow(base, linspace(start, end, steps, dtype=torch.float64, device=device)).to(dtype)


def _frequencies(
    n: Any, d: float = 1.0, *, half: bool, dtype: torch.dtype | None = None, device: Any = None, **how: Any
) -> Any:
    """Replaces torch.fft.rfftfreq if `half`, otherwise torch.fft.fftfreq."""
    if isinstance(n, int):
        return NotImplemented
    dtype = dtype or torch.get_default_dtype()
    at = torch.arange(n // 2 + 1 if half else n, device=device)
    if not half:
        at = torch.where(at < (n + 1) // 2, at, at - n)
    return at.to(dtype) * _tensor(1.0 / (n * d), dtype, device)


def _window(create: Callable[..., Tensor], formula: Callable[..., Tensor]) -> Callable[..., Any]:
    """Returns a function that creates a window, of a formula of the position from 0 to 1. One of constant length is a
    constant: the exporter has no form for most of them, and another one for hamming_window.
    """

    def call(
        window_length: Any, periodic: bool = True, *shape: float, dtype: torch.dtype | None = None,
        device: Any = None, alpha: float = 0.54, beta: float | None = None, **how: Any,
    ) -> Any:  # fmt: skip
        dtype = dtype or torch.get_default_dtype()
        named = (alpha, beta) if formula is _hamming else () if beta is None else (beta,)
        given = [*shape, *named[len(shape) :]]
        if isinstance(window_length, int):
            with _disable_current_modes():
                values = create(window_length, periodic, *(a for a in given if a is not None), dtype=dtype).tolist()
            return torch.tensor(values, dtype=dtype, device=device)
        length = _tensor(window_length, dtype, device)
        intervals = length if periodic else length - 1
        position = torch.arange(window_length, dtype=dtype, device=device) / intervals.clamp(min=1)
        window = formula(position, *given)
        return torch.where(length == 1, torch.ones_like(window), window)

    return call


def _hann(x: Tensor) -> Tensor:
    return _hamming(x, 0.5, 0.5)


def _hamming(x: Tensor, alpha: float, beta: float | None) -> Tensor:
    return alpha - (0.46 if beta is None else beta) * torch.cos(x * (2 * math.pi))


def _blackman(x: Tensor) -> Tensor:
    return 0.42 - 0.5 * torch.cos(x * (2 * math.pi)) + 0.08 * torch.cos(x * (4 * math.pi))


def _bartlett(x: Tensor) -> Tensor:
    return 1 - (x * 2 - 1).abs()


def _kaiser(x: Tensor, beta: float = 12.0) -> Tensor:
    return torch.i0(beta * torch.sqrt((1 - (x * 2 - 1) ** 2).clamp(min=0))) / torch.i0(torch.full_like(x[:1], beta))


_MAX_LISTED = 1 << 16
"""The most combinations that a file has as constants."""


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Any:
    size = input.shape[0]
    if r == 0:
        return NotImplemented
    if r == 1:
        return input.unsqueeze(1).clone()
    if isinstance(size, int):
        choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        chosen_ones = list(itertools.islice(choose(range(size), r), _MAX_LISTED + 1))
        if len(chosen_ones) > _MAX_LISTED:
            return NotImplemented
        return input[torch.tensor(chosen_ones, dtype=torch.int64, device=input.device).reshape(-1, r)]
    at = torch.arange(input.shape[0], device=input.device)
    grids = torch.meshgrid([at] * r, indexing="ij")
    chosen = torch.ones_like(grids[0], dtype=torch.bool)
    for before, after in itertools.pairwise(grids):
        chosen = chosen & (before <= after if with_replacement else before < after)
    return input[chosen.nonzero()]


def tensor_split(input: Tensor, sections: Any = None, dim: int = 0, **other: Any) -> Any:
    """The first parts are longer by one for a remainder; PyTorch counts these for the example's size."""
    size = input.shape[dim]
    if not isinstance(sections, int) or isinstance(size, int):
        return NotImplemented
    parts, start = [], 0
    for i in range(sections):
        length = (size + (sections - 1 - i)) // sections
        parts.append(input.narrow(dim, start, length))
        start = start + length
    return tuple(parts)


REPLACED: dict[Any, Callable[..., Any]] = {
    torch.arange: arange,
    torch.linspace: linspace,
    torch.logspace: logspace,
    torch.fft.fftfreq: functools.partial(_frequencies, half=False),
    torch.fft.rfftfreq: functools.partial(_frequencies, half=True),
    torch.hann_window: _window(torch.hann_window, _hann),
    torch.hamming_window: _window(torch.hamming_window, _hamming),
    torch.blackman_window: _window(torch.blackman_window, _blackman),
    torch.bartlett_window: _window(torch.bartlett_window, _bartlett),
    torch.kaiser_window: _window(torch.kaiser_window, _kaiser),
    torch.combinations: combinations,
    torch.tensor_split: tensor_split,
    Tensor.tensor_split: tensor_split,
}
