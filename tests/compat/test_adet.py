# SPDX-License-Identifier: Apache-2.0
"""adet._C, compared with functions that are tested elsewhere, and loops."""

from __future__ import annotations

import pytest
import torch

from polyop import functional
from polyop.compat import adet_ext


def test_bezier_align() -> None:
    torch.manual_seed(0)
    input = torch.randn(2, 3, 12, 12, requires_grad=True)
    upper = torch.tensor([[1.0, 2], [4, 1], [7, 1], [10, 3]])
    rois = torch.cat([torch.tensor([1.0]), upper.flatten(), (upper.flip(0) + torch.tensor([0.0, 4])).flatten()])[None]
    found = adet_ext.bezier_align_forward(input, rois, 1.0, 4, 5, 2, True)
    # The bin (0, 0) is around the first control point, half a pixel before it: two samples per axis, averaged.
    size = torch.tensor([9 / 5, 1 / 4])
    samples = [(0.5 + dx * size[0], 1.5 + dy * size[1]) for dy in (-0.25, 0.25) for dx in (-0.25, 0.25)]
    grid = torch.stack([torch.stack([x, y]) for x, y in samples])[None, None] / 11 * 2 - 1
    expected = torch.nn.functional.grid_sample(input[1:], grid, align_corners=True).mean(3)[0, :, 0]
    torch.testing.assert_close(found[0, :, 0, 0], expected, rtol=1e-4, atol=1e-4)
    grad = torch.randn_like(found)
    of_input = adet_ext.bezier_align_backward(grad, rois, 1.0, 4, 5, 2, 3, 12, 12, 2, True)
    torch.testing.assert_close(of_input, torch.autograd.grad(found, input, grad)[0])


def test_deformable_roi_align() -> None:
    torch.manual_seed(0)
    input, rois = torch.randn(1, 2, 9, 9), torch.tensor([[0.0, 1, 1, 7, 5]])
    still = torch.zeros(1, 2, 3, 3)
    args = (1.0, 3, 3, 2, 0.1, True)
    expected = functional.roi_align(input, rois, 3, 1.0, 2, aligned=True)
    torch.testing.assert_close(adet_ext.def_roi_align_forward(input, rois, still, *args), expected)
    right = still.clone()
    right[:, 0] = 1 / (0.1 * 6)  # one pixel
    moved = functional.roi_align(input, rois + torch.tensor([0.0, 1, 0, 1, 0]), 3, 1.0, 2, aligned=True)
    torch.testing.assert_close(adet_ext.def_roi_align_forward(input, rois, right, *args), moved, rtol=1e-4, atol=1e-4)
    offsets = torch.randn(1, 2, 3, 3)
    leaves = [input.clone().requires_grad_(), offsets.clone().requires_grad_()]
    result = functional.deform_roi_pool(leaves[0], rois, leaves[1], 3, 1.0, 2, 0.1)
    grad, into = torch.randn_like(result), torch.zeros_like(offsets)
    of_input = adet_ext.def_roi_align_backward(input, grad, rois, offsets, into, 1.0, 3, 3, 1, 2, 9, 9, 2, 0.1, True)
    for got, want in zip((of_input, into), torch.autograd.grad(result, leaves, grad), strict=True):
        torch.testing.assert_close(got, want)
    with pytest.raises(ValueError, match="def_roi_align_forward: aligned: expected True"):
        adet_ext.def_roi_align_forward(input, rois, still, 1.0, 3, 3, 2, 0.1, False)


def test_nms_by_labels() -> None:
    torch.manual_seed(0)
    corners = torch.rand(40, 2) * 20
    boxes, scores, labels = (
        torch.cat([corners, corners + 4 + torch.rand(40, 2) * 8], 1),
        torch.rand(40),
        torch.randint(0, 3, (40,)),
    )

    def overlap(a: list[float], b: list[float]) -> float:
        width, height = (max(min(a[i + 2], b[i + 2]) - max(a[i], b[i]) + 1, 0) for i in (0, 1))
        areas = [(c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (a, b)]
        return width * height / (sum(areas) - width * height)

    kept: list[int] = []
    for i in scores.argsort(descending=True).tolist():
        if all(labels[i] != labels[k] or overlap(boxes[i].tolist(), boxes[k].tolist()) <= 0.4 for k in kept):
            kept.append(i)
    assert adet_ext.ml_nms(boxes, scores, labels.float(), 0.4).tolist() == kept
    assert adet_ext.ml_nms(boxes[:0], scores[:0], labels[:0], 0.4).shape == (0,)
