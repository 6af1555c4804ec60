# SPDX-License-Identifier: Apache-2.0
"""The deformable attention of compiled packages, compared with the formula and by a gradient check in float64."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from polyop.compat import ms_deform_attn
from polyop.compat.ms_deform_attn import ms_deform_attn_backward, ms_deform_attn_forward

LEVELS = torch.tensor([[6, 5], [3, 4]])
STARTS = torch.tensor([0, 30])


def formula(value: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
    """Sums the four pixels around each sample."""
    images, queries, heads, levels, _ = weights.shape
    result = value.new_zeros(images, queries, heads, value.shape[-1])
    n = torch.arange(images)[:, None, None, None]
    m = torch.arange(heads)[None, None, :, None]
    for level in range(levels):
        height, width = LEVELS[level].tolist()
        x = locations[:, :, :, level, :, 0] * width - 0.5
        y = locations[:, :, :, level, :, 1] * height - 0.5
        for dy, dx in itertools.product((0, 1), (0, 1)):
            row, column = y.floor() + dy, x.floor() + dx
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            share = (1 - (y - row).abs()) * (1 - (x - column).abs()) * inside
            at = STARTS[level] + (row * width + column).long() * inside
            result = result + (value[n, at, m] * (share * weights[:, :, :, level])[..., None]).sum(3)
    return result.flatten(2)


def inputs(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    value = torch.randn(2, 42, 3, 8, dtype=dtype)
    locations = torch.rand(2, 7, 3, 2, 4, 2, dtype=dtype) * 1.4 - 0.2
    return value, locations, torch.rand(2, 7, 3, 2, 4, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_result_and_gradients(dtype: torch.dtype) -> None:
    value, locations, weights = inputs(dtype)
    leaves = [t.double().requires_grad_() for t in (value, locations, weights)]
    expected = formula(*leaves)
    result = ms_deform_attn_forward(value, LEVELS, STARTS, locations, weights, 64)
    assert result.dtype == dtype
    torch.testing.assert_close(result.double(), expected.detach(), rtol=1e-4, atol=1e-5)
    grad = torch.randn_like(result)
    got = ms_deform_attn_backward(value, LEVELS, STARTS, locations, weights, grad, 64)
    for of_polyop, of_formula in zip(got, torch.autograd.grad(expected, leaves, grad.double()), strict=True):
        torch.testing.assert_close(of_polyop.double(), of_formula, rtol=1e-3, atol=1e-4)


def test_the_function_of_deformable_detr() -> None:
    """Its autograd function, written as in its Python part, passes the gradient check in double precision."""
    compiled = ms_deform_attn

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value, shapes, starts, locations, weights):
            ctx.save_for_backward(value, shapes, starts, locations, weights)
            return compiled.ms_deform_attn_forward(value, shapes, starts, locations, weights, 2)

        @staticmethod
        def backward(ctx, grad):
            of_value, of_locations, of_weights = compiled.ms_deform_attn_backward(*ctx.saved_tensors, grad, 2)
            return of_value, None, None, of_locations, of_weights

    value, locations, weights = (t[:1, :2] if t.dim() > 4 else t[:1] for t in inputs(torch.float64))
    leaves = [t.clone().requires_grad_() for t in (value, locations, weights)]
    assert torch.autograd.gradcheck(lambda v, x, w: Function.apply(v, LEVELS, STARTS, x, w), leaves)
