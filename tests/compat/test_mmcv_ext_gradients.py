# SPDX-License-Identifier: Apache-2.0
"""The functions `*_backward` of `mmcv._ext`: they call gradient kernels and no forward kernel, and write what autograd
finds for polyop's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import polyop.functional as ops
from polyop._torch.operators import OPERATORS
from polyop.compat.mmcv_ext import FUNCTIONS

torch.manual_seed(0)
X = torch.rand(2, 4, 8, 9)
ROIS = torch.tensor([[0, 1.0, 1, 6, 7], [1, 0, 2, 5, 7.5], [1, -2, -1, 4, 3]])
ROTATED = torch.cat([ROIS[:, :1], ROIS[:, 1:].abs() + 1, torch.tensor([[0.3], [1.2], [-0.7]])], 1)
BEZIERS = torch.cat([ROIS[:, :1], torch.rand(3, 16) * 8], 1)
MOVES, MOVE_MASK = torch.rand(2, 18, 8, 9) * 2 - 1, torch.rand(2, 9, 8, 9)
WEIGHT = torch.rand(3, 4, 3, 3)
IDX = torch.randint(0, 9, (2, 5, 3)).int()
CLOUD, WEIGHTS_3 = torch.rand(2, 4, 9), torch.rand(2, 5, 3)
VALUE, LEVELS, STARTS = torch.rand(2, 26, 2, 3), torch.tensor([[4, 5], [2, 3]]), torch.tensor([0, 20])
LOCATIONS, ATTENTION = torch.rand(2, 3, 2, 2, 2, 2), torch.rand(2, 3, 2, 2, 2)
INDICES = torch.randint(1, 7, (2, 3, 1, 4))

# name -> operator, forward function, its differentiable inputs, and the call of the function with the gradient of the
# output and tensors for the gradients.
Call = tuple[str, Callable[..., Tensor], list[Tensor], Callable[..., list[Any]]]
CALLS: dict[str, Call] = {
    "roi_align_backward": (
        "roi_align", lambda x: ops.roi_align(x, ROIS, (2, 3), 0.7, 2, True), [X],
        lambda g, x: [g, ROIS, torch.empty(0), torch.empty(0), x, 2, 3, 0.7, 2, 1, True],
    ),
    "roi_pool_backward": (
        "roi_pool", lambda x: ops.roi_pool(x, ROIS, (2, 3), 0.7, rounded=False), [X],
        lambda g, x: [
            g, ROIS, torch.ops.polyop.roi_pool(
                X, ROIS, output_height=2, output_width=3, spatial_scale=0.7, rounded=0)[1], x, 2, 3, 0.7,
        ],
    ),
    "prroi_pool_backward": (
        "prroi_pool", lambda x: ops.prroi_pool(x, ROIS, (2, 3), 0.7), [X], lambda g, x: [g, ROIS, x, 2, 3, 0.7]
    ),
    "prroi_pool_coor_backward": (
        "prroi_pool", lambda r: ops.prroi_pool(X, r, (2, 3), 0.7), [ROIS],
        lambda g, r: [ops.prroi_pool(X, ROIS, (2, 3), 0.7), g, X, ROIS, r, 2, 3, 0.7],
    ),
    "deform_roi_pool_backward": (
        "deform_roi_pool", lambda x, o: ops.deform_roi_pool(x, ROIS, o, (2, 3), 0.7, 2, 0.3),
        [X, torch.full((3, 2, 2, 3), 0.2)],
        lambda g, x, o: [g, X, ROIS, torch.full((3, 2, 2, 3), 0.2), x, o, 2, 3, 0.7, 2, 0.3],
    ),
    "roi_align_rotated_backward": (
        "roi_align_rotated", lambda x: ops.roi_align_rotated(x, ROTATED, (2, 3), 0.7, 2, True, True), [X],
        lambda g, x: [g, ROTATED, x, 2, 3, 0.7, 2, True, True],
    ),
    "riroi_align_rotated_backward": (
        "riroi_align_rotated", lambda x: ops.riroi_align_rotated(x, ROTATED, (2, 3), 0.7, 2, 4, False), [X],
        lambda g, x: [g, ROTATED, x, 2, 3, 0.7, 2, 4, False],
    ),
    "rotated_feature_align_backward": (
        "rotated_feature_align",
        lambda x: torch.ops.polyop.rotated_feature_align(x, BOXES, spatial_scale=0.5, points=5), [X],
        lambda g, x: [g, BOXES.view(-1, 5), x, 0.5, 5],
    ),
    "bezier_align_backward": (
        "bezier_align", lambda x: ops.bezier_align(x, BEZIERS, (2, 3), 0.7, 2, True), [X],
        lambda g, x: [g, BEZIERS, x, 2, 3, 0.7, 2, True],
    ),
    "deform_conv_backward_input": (
        "deform_conv2d", lambda x, o: ops.deform_conv2d(x, o, WEIGHT, padding=1), [X, MOVES],
        lambda g, x, o: [
            X, MOVES, g, x, o, WEIGHT, torch.empty(0), 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 32,
        ],
    ),
    "deform_conv_backward_parameters": (
        "deform_conv2d", lambda w: ops.deform_conv2d(X, MOVES, w, padding=1), [WEIGHT],
        lambda g, w: [X, MOVES, g, w, torch.empty(0), torch.empty(0), 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1.0, 32],
    ),
    "modulated_deform_conv_backward": (
        "modulated_deform_conv2d",
        lambda x, w, b, o, m: ops.modulated_deform_conv2d(x, o, m, w, b, padding=1),
        [X, WEIGHT, torch.rand(3), MOVES, MOVE_MASK],
        lambda g, x, w, b, o, m: [
            X, WEIGHT, torch.empty(3), torch.empty(0), MOVES, MOVE_MASK, torch.empty(0), x, w, b, o, m, g, 3, 3, 1, 1, 1,
            1, 1, 1, 1, 1, True,
        ],
    ),
    "ms_deform_attn_backward": (
        "ms_deform_attn", lambda v, at, w: ops.ms_deform_attn(v, LEVELS, STARTS, at, w), [VALUE, LOCATIONS, ATTENTION],
        lambda g, v, at, w: [VALUE, LEVELS, STARTS, LOCATIONS, ATTENTION, g, v, at, w, 64],
    ),
    "carafe_naive_backward": (
        "carafe", lambda x, m: ops.carafe(x, m, 3, 2, 2), [X, torch.rand(2, 18, 16, 18)],
        lambda g, x, m: [g, X, CALLS["carafe_naive_backward"][2][1], x, m, 3, 2, 2],
    ),
    "psamask_backward": (
        "psa_mask", lambda x: ops.psa_mask(x, "distribute", (3, 5)), [torch.rand(2, 15, 3, 4)],
        lambda g, x: [g, x, 1, 2, 3, 4, 3, 5, 1, 2],
    ),
    "correlation_backward": (
        "correlation", lambda a, b: ops.correlation(a, b, 3, 1, 1, 1), [X, X.flip(0)],
        lambda g, a, b: [g, X, X.flip(0), a, b, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1],
    ),
    "active_rotated_filter_backward": (
        "active_rotated_filter", lambda w: ops.active_rotated_filter(w, INDICES), [torch.rand(2, 3, 2, 3, 1)],
        lambda g, w: [g, INDICES, w],
    ),
    "gather_points_backward": (
        "gather_points", lambda x: ops.gather_points(x, IDX[:, :, 0].contiguous()), [CLOUD],
        lambda g, x: [g, IDX[:, :, 0].contiguous(), x, 2, 4, 9, 5],
    ),
    "group_points_backward": (
        "group_points", lambda x: ops.grouping_operation(x, IDX), [CLOUD], lambda g, x: [g, IDX, x, 2, 4, 9, 5, 3]
    ),
    "three_interpolate_backward": (
        "three_interpolate", lambda x: ops.three_interpolate(x, IDX, WEIGHTS_3), [CLOUD],
        lambda g, x: [g, IDX, WEIGHTS_3, x, 2, 4, 5, 9],
    ),
}  # fmt: skip
BOXES = torch.rand(2, 8, 9, 5) * 6


@pytest.mark.parametrize("name", CALLS)
def test_writes_the_gradients_of_autograd(name: str) -> None:
    operator, forward, inputs, arguments = CALLS[name]
    leaves = [t.detach().clone().requires_grad_() for t in inputs]
    output = forward(*leaves)
    grad = torch.rand_like(output)
    expected = torch.autograd.grad(output, leaves, grad)
    results = [torch.zeros_like(t) for t in inputs]
    call = arguments(grad, *results)
    with torch.profiler.profile() as profile:
        FUNCTIONS[name].call(*call)
    called = {event.key for event in profile.key_averages() if event.key.startswith("polyop::")}
    assert called == ({f"polyop::{operator}_backward"} if OPERATORS[operator].gradient is not None else set())
    for result, gradient in zip(results, expected, strict=True):
        torch.testing.assert_close(result, gradient)
        assert result.any()


def test_gradients_of_offsets_that_are_larger_than_the_output() -> None:
    """Offsets and masks are flat values of the output's size; the rest have no gradient."""
    offset, mask = torch.rand(1, 18, 8, 9), torch.rand(1, 9, 8, 9)
    x, weight, grad = torch.rand(1, 4, 8, 9), WEIGHT, torch.rand(1, 3, 4, 5)
    window = (3, 3, 2, 2, 1, 1, 1, 1, 1, 1)
    results = [torch.zeros_like(t) for t in (x, weight, torch.rand(3), offset, mask)]
    none = torch.empty(0)
    FUNCTIONS["modulated_deform_conv_backward"].call(
        x, weight, none, none, offset, mask, none, *results, grad, *window, False
    )
    small = [t.flatten()[: 20 * t.shape[1]].view(1, -1, 4, 5).requires_grad_() for t in (offset, mask)]
    output = ops.modulated_deform_conv2d(x, *small, weight, None, 2, 1)
    for result, expected in zip(results[3:], torch.autograd.grad(output, small, grad), strict=True):
        torch.testing.assert_close(result.flatten()[: expected.numel()], expected.flatten())
        assert not result.flatten()[expected.numel() :].any()
