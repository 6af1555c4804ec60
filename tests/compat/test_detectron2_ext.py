# SPDX-License-Identifier: Apache-2.0
"""detectron2._C, compared with formulas in plain torch."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d, grid_sample

from polyop.compat import detectron2_ext as ours


def share_by_points(a: Tensor, b: Tensor) -> float:
    """The IoU of two boxes, by counting points of a fine grid."""
    at = torch.linspace(-20, 20, 801, dtype=torch.float64)
    y, x = torch.meshgrid(at, at, indexing="ij")

    def inside(box: Tensor) -> Tensor:
        cx, cy, w, h, degrees = box.double().tolist()
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        along, across = (x - cx) * c - (y - cy) * s, (x - cx) * s + (y - cy) * c
        return (along.abs() <= w / 2) & (across.abs() <= h / 2)

    first, second = inside(a), inside(b)
    return float((first & second).sum() / (first | second).sum())


BOXES = torch.tensor([[0, 0, 12, 4, 30], [1, -1, 12, 4, 45], [2, 1, 5, 9, -20], [0.5, 0, 12, 4, 30]])


def test_iou_and_suppression() -> None:
    overlap = torch.ops.detectron2.box_iou_rotated(BOXES, BOXES[:3])
    for i in range(4):
        for j in range(3):
            assert float(overlap[i, j]) == pytest.approx(share_by_points(BOXES[i], BOXES[j]), abs=0.02)
    scores = torch.tensor([0.9, 0.8, 0.7, 0.95])
    assert share_by_points(BOXES[0], BOXES[3]) > 0.7 > share_by_points(BOXES[1], BOXES[3])
    assert torch.ops.detectron2.nms_rotated(BOXES, scores, 0.7).tolist() == [3, 1, 2]
    assert ours.nms_rotated(BOXES, scores, 0.7).tolist() == [3, 1, 2]


def pooled(input: Tensor, roi: list[float], scale: float, height: int, width: int, ratio: int) -> Tensor:
    """One RoI by grid_sample: all samples are inside the image."""
    image, cx, cy, w, h, degrees = roi
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    across = ((torch.arange(height * ratio) + 0.5) / (height * ratio) - 0.5).double() * h * scale
    along = ((torch.arange(width * ratio) + 0.5) / (width * ratio) - 0.5).double() * w * scale
    v, u = torch.meshgrid(across, along, indexing="ij")
    x, y = u * c + v * s + cx * scale - 0.5, v * c - u * s + cy * scale - 0.5
    grid = torch.stack([(2 * x + 1) / input.shape[3] - 1, (2 * y + 1) / input.shape[2] - 1], -1)
    samples = grid_sample(input[int(image)][None], grid[None], align_corners=False)[0]
    return samples.unflatten(1, (height, ratio)).unflatten(3, (width, ratio)).mean((2, 4))


def test_roi_align_rotated_and_its_gradient() -> None:
    torch.manual_seed(0)
    input = torch.randn(2, 3, 16, 18)
    rois = [[0, 16.0, 15.0, 12.0, 6.0, 30.0], [1, 18.0, 16.0, 8.0, 9.0, -75.0]]
    leaf = input.double().requires_grad_()
    expected = torch.stack([pooled(leaf, roi, 0.5, 3, 2, 2) for roi in rois])
    result = torch.ops.detectron2.roi_align_rotated_forward(input, torch.tensor(rois), 0.5, 3, 2, 2)
    torch.testing.assert_close(result.double(), expected.detach(), rtol=1e-4, atol=1e-5)
    grad = torch.randn_like(result)
    got = torch.ops.detectron2.roi_align_rotated_backward(grad, torch.tensor(rois), 0.5, 3, 2, 2, 3, 16, 18, 2)
    (of_formula,) = torch.autograd.grad(expected, leaf, grad.double())
    torch.testing.assert_close(got.double(), of_formula, rtol=1e-4, atol=1e-5)


def test_deformable_convolution_by_whole_pixels_is_a_shifted_convolution() -> None:
    torch.manual_seed(0)
    input, weight = torch.randn(1, 4, 9, 10), torch.randn(6, 4, 3, 3)
    offset = torch.zeros(1, 18, 9, 10)
    offset[:, 1::2] = 1  # all points one pixel to the right
    wide = torch.nn.functional.pad(input, (1, 2, 1, 1))[..., 1:]
    expected = conv2d(wide, weight)
    output, grad_weight = torch.empty(1, 6, 9, 10), torch.zeros_like(weight)
    window = (3, 3, 1, 1, 1, 1, 1, 1, 1, 1)
    none = input.new_empty(0)
    ours.deform_conv_forward(input, weight, offset, output, none, none, *window, 64)
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-4)
    grad = torch.randn_like(output)
    ours.deform_conv_backward_filter(input, offset, grad, grad_weight, none, none, *window, 1, 64)
    leaf = weight.clone().requires_grad_()
    (of_formula,) = torch.autograd.grad(conv2d(wide, leaf), leaf, grad)
    torch.testing.assert_close(grad_weight, of_formula, rtol=1e-4, atol=1e-4)


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"box_iou_rotated: boxes2: expected shape \[N, 5\], got \[4, 4\]"):
        ours.box_iou_rotated(BOXES, BOXES[:, :4])
    with pytest.raises(ValueError, match=r"nms_rotated: dets: expected shape \[N, 5\], got \[5\]"):
        ours.nms_rotated(BOXES[0], torch.ones(1), 0.5)
    with pytest.raises(ValueError, match=r"roi_align_rotated_forward: rois: expected shape \[R, 6\], got \[4, 5\]"):
        ours.roi_align_rotated_forward(torch.ones(1, 1, 4, 4), BOXES, 1.0, 2, 2, 2)


def test_evaluation_has_its_functions() -> None:
    """test_cocoeval.py compares their results."""
    annotation = ours.InstanceAnnotation(1, 0.5, 100.0, False, False)
    (found,) = ours.COCOevalEvaluateImages([[0, 1e10]], 10, [0.5], [[[[0.6]]]], [[[annotation]]], [[[annotation]]])
    assert isinstance(found, ours.ImageEvaluation)
    assert found.detection_matches.tolist() == [[1]]
    assert ours.has_cuda() == (torch.version.cuda is not None)
