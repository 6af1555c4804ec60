# SPDX-License-Identifier: Apache-2.0
"""Compares calls with and without polyop.accelerate()."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import polyop

TOLERANCES = {torch.float32: (1e-4, 1e-4), torch.float16: (2e-3, 2e-3), torch.bfloat16: (2e-2, 2e-2)}


def polyop_ran(function: Callable[[], Any]) -> set[str]:
    """Returns the operators of polyop that a call runs, according to the profiler."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        function()
    return {event.key for event in profile.key_averages() if event.key.startswith("polyop")}


def same(got: Any, want: Any) -> None:
    """Compares values, types, shapes and strides; integers and f64 must be equal."""
    if want is None:
        assert got is None
        return
    if not isinstance(want, Tensor):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
        return
    rtol, atol = TOLERANCES.get(want.dtype, (0, 0))
    assert got.stride() == want.stride()
    assert got.requires_grad == want.requires_grad
    torch.testing.assert_close(got, want, rtol=rtol, atol=atol, equal_nan=True)


def check(function: Callable[[], Any], *ran: str) -> None:
    """Checks that results are equal with and without polyop, and that exactly the kernels `ran` ran."""
    want = function()
    with polyop.accelerate():
        same(function(), want)
        assert polyop_ran(function) == set(ran)


def message(function: Callable[[], Any]) -> tuple[type, str]:
    with pytest.raises((RuntimeError, IndexError, ValueError)) as caught:
        function()
    return caught.type, str(caught.value)
