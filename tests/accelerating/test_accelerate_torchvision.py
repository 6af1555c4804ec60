# SPDX-License-Identifier: Apache-2.0
"""polyop.accelerate() and torchvision's operators: torchvision's own if it is installed, otherwise naive ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import pytest
import torch
from torch import Tensor

import polyop
from polyop.accelerating import overrides
from tests.support.with_and_without import check, polyop_ran

SCHEMAS = """
roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, \
int sampling_ratio, bool aligned) -> Tensor
nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, \
SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) \
-> Tensor
_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, \
SymInt batch_size, SymInt channels, SymInt height, SymInt width, int sampling_ratio, bool aligned) -> Tensor
_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt pooled_height, \
SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor
_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, \
SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, \
SymInt offset_groups, bool use_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor)
"""


def bilinear(planes: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Samples planes [C, H, W] at y, x of any shape, in double precision. Pixels outside are 0."""
    total = torch.zeros(planes.shape[:1] + y.shape, dtype=torch.float64)
    for row, column in itertools.product((y.floor(), y.floor() + 1), (x.floor(), x.floor() + 1)):
        inside = (row >= 0) & (row < planes.shape[1]) & (column >= 0) & (column < planes.shape[2])
        weight = (1 - (y - row).abs()) * (1 - (x - column).abs()) * inside
        total += planes.double()[:, row.long() * inside, column.long() * inside] * weight
    return total


def roi_align(input: Tensor, rois: Tensor, scale: float, height: int, width: int, ratio: int, aligned: bool) -> Tensor:
    pooled = torch.zeros(len(rois), input.shape[1], height, width)
    for r, roi in enumerate(rois.double()):
        x1, y1, x2, y2 = (roi[1:] * scale - 0.5 * aligned).tolist()
        w, h = (x2 - x1, y2 - y1) if aligned else (max(x2 - x1, 1), max(y2 - y1, 1))
        ny, nx = (ratio, ratio) if ratio > 0 else (-int(-h / height // 1), -int(-w / width // 1))
        y = y1 + h / height / ny * (torch.arange(height * ny, dtype=torch.float64) + 0.5)
        x = x1 + w / width / nx * (torch.arange(width * nx, dtype=torch.float64) + 0.5)
        y, x = torch.meshgrid(y, x, indexing="ij")
        there = (y >= -1) & (y <= input.shape[2]) & (x >= -1) & (x <= input.shape[3])
        y, x = y.clamp(0, input.shape[2] - 1), x.clamp(0, input.shape[3] - 1)
        samples = bilinear(input[int(roi[0])], y, x) * there
        pooled[r] = samples.reshape(-1, height, ny, width, nx).mean((2, 4))
    return pooled


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    areas = (dets[:, 2] - dets[:, 0]) * (dets[:, 3] - dets[:, 1])
    kept: list[int] = []
    for i in scores.sort(descending=True, stable=True).indices.tolist():
        low, high = torch.maximum(dets[i, :2], dets[kept, :2]), torch.minimum(dets[i, 2:], dets[kept, 2:])
        shared = (high - low).clamp(min=0).prod(1)
        quotient = shared / (areas[i] + areas[kept] - shared)
        if not (quotient.double() > iou_threshold).any():  # rounded to float32, compared in double precision
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int, pad_h: int,
    pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool,
) -> Tensor:  # fmt: skip
    images, channels = input.shape[:2]
    taps, (height, width) = weight.shape[2] * weight.shape[3], offset.shape[2:]
    offset = offset.double().reshape(images, offset_groups, taps, 2, height, width)
    scale = mask.double().reshape(images, offset_groups, taps, height, width) if use_mask else None
    y = torch.arange(height, dtype=torch.float64)[:, None] * stride_h - pad_h
    x = torch.arange(width, dtype=torch.float64) * stride_w - pad_w
    per_group, per_offset = channels // groups, channels // offset_groups
    columns = torch.zeros(images, channels, taps, height, width, dtype=torch.float64)
    for n, o, t in itertools.product(range(images), range(offset_groups), range(taps)):
        i, j = divmod(t, weight.shape[3])
        some = slice(o * per_offset, (o + 1) * per_offset)
        at = offset[n, o, t]
        columns[n, some, t] = bilinear(input[n, some], y + i * dilation_h + at[0], x + j * dilation_w + at[1])
        if scale is not None:
            columns[n, some, t] *= scale[n, o, t]
    columns = columns.reshape(images, groups, per_group * taps, height * width)
    filters = weight.double().reshape(groups, -1, per_group * taps)
    return ((filters @ columns).reshape(images, -1, height, width) + bias[:, None, None]).float()


def differentiated(function: Callable[..., Tensor], inputs: Sequence[Tensor], grad: Tensor) -> tuple[Tensor, ...]:
    """Returns the gradients of a naive function; zeros for inputs that it does not use."""
    with torch.enable_grad():
        leaves = [t.detach().requires_grad_() for t in inputs]
        return torch.autograd.grad(function(*leaves), leaves, grad, materialize_grads=True)


def _roi_align_backward(
    grad: Tensor, rois: Tensor, scale: float, height: int, width: int, images: int, channels: int, rows: int,
    columns: int, ratio: int, aligned: bool,
) -> Tensor:  # fmt: skip
    with torch.enable_grad():
        input = torch.zeros(images, channels, rows, columns, requires_grad=True)
        pooled = torch.stack([roi_align(input, r[None], scale, height, width, ratio, aligned)[0] for r in rois])
        return torch.autograd.grad(pooled, input, grad)[0]


def _roi_pool_backward(
    grad: Tensor, rois: Tensor, argmax: Tensor, scale: float, height: int, width: int, images: int, channels: int,
    rows: int, columns: int,
) -> Tensor:  # fmt: skip
    result = torch.zeros(images, channels, rows * columns)
    for r, c, y, x in itertools.product(range(len(rois)), range(channels), range(height), range(width)):
        if argmax[r, c, y, x] >= 0:
            result[int(rois[r, 0]), c, argmax[r, c, y, x]] += grad[r, c, y, x]
    return result.view(images, channels, rows, columns)


def _deform_conv2d_backward(
    grad: Tensor, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *window: int
) -> tuple[Tensor, ...]:
    return differentiated(lambda *given: deform_conv2d(*given, *window), (input, weight, offset, mask, bias), grad)


KERNELS = (roi_align, nms, deform_conv2d, _roi_align_backward, _roi_pool_backward, _deform_conv2d_backward)


@pytest.fixture(scope="module")
def torchvision() -> Iterator[object]:
    """Returns torch.ops.torchvision, after accelerate() was called once without it."""
    if torch._C._dispatch_has_kernel("torchvision::nms"):
        yield torch.ops.torchvision
        return
    polyop.accelerate()
    with torch.library._scoped_library("torchvision", "FRAGMENT") as library:
        for schema, kernel in zip(SCHEMAS.strip().splitlines(), KERNELS, strict=True):
            library.define(schema)
            library.impl(kernel.__name__, kernel, "CPU")
        yield torch.ops.torchvision
        polyop.accelerate(False)


@pytest.fixture(autouse=True)
def off_and_small_too(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for key in overrides.MIN_ELEMENTS:
        monkeypatch.setitem(overrides.MIN_ELEMENTS, key, 1)
    yield
    polyop.accelerate(False)


def boxes(count: int) -> Tensor:
    centre, size = torch.rand(count, 2) * 100, torch.rand(count, 2) * 60 + 4
    return torch.cat([centre - size / 2, centre + size / 2], 1)


def test_torchvision_imported_later_is_overridden_by_the_next_call(torchvision: object) -> None:
    def call() -> Tensor:
        return torchvision.nms(boxes(9), torch.rand(9), 0.5)

    polyop.accelerate()
    polyop.accelerate()
    assert polyop_ran(call) == {"polyop::nms"}
    polyop.accelerate(False)
    assert polyop_ran(call) == set()


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 0, 2])
def test_roi_align(torchvision: object, ratio: int, aligned: bool) -> None:
    torch.manual_seed(0)
    x, rois = torch.randn(2, 5, 25, 31), torch.cat([torch.randint(0, 2, (7, 1)).float(), boxes(7)], 1)
    check(lambda: torchvision.roi_align(x, rois, 0.25, 3, 5, ratio, aligned), "polyop::roi_align")


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 2])
def test_roi_align_backward(torchvision: object, ratio: int, aligned: bool) -> None:
    torch.manual_seed(0)
    grad, rois = torch.randn(7, 5, 3, 4), torch.cat([torch.randint(0, 2, (7, 1)).float(), boxes(7)], 1)
    check(
        lambda: torchvision._roi_align_backward(grad, rois, 0.25, 3, 4, 2, 5, 25, 31, ratio, aligned),
        "polyop::roi_align_backward",
    )


def test_roi_pool_backward(torchvision: object) -> None:
    torch.manual_seed(0)
    grad, rois = torch.randn(7, 5, 3, 4), torch.cat([torch.randint(0, 2, (7, 1)).float(), boxes(7)], 1)
    argmax = torch.randint(-1, 25 * 31, grad.shape, dtype=torch.int32)
    check(
        lambda: torchvision._roi_pool_backward(grad, rois, argmax, 0.25, 3, 4, 2, 5, 25, 31),
        "polyop::roi_pool_backward",
    )


def test_boxes_that_are_not_finite_give_zeros(torchvision: object) -> None:
    """They are not compared with torchvision, whose kernel reads out of bounds."""
    for bad in (float("nan"), float("inf")):
        rois = torch.tensor([[0, 1, 1, bad, 9]])
        with polyop.accelerate():
            assert not torchvision.roi_align(torch.ones(1, 1, 9, 9), rois, 1.0, 2, 2, 2, True).any()


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.2, 0.3, 1 / 3, 0.4, 0.5, 0.6, 0.7, 1.0])
def test_nms(torchvision: object, threshold: float) -> None:
    torch.manual_seed(0)
    some, scores = boxes(150), torch.rand(150)
    check(lambda: torchvision.nms(some, scores, threshold), "polyop::nms")
    # Whole pixels: many quotients equal the threshold exactly, and many scores are equal.
    whole = torch.cat([torch.zeros(60, 2), torch.randint(1, 11, (60, 2)).float()], 1)
    check(lambda: torchvision.nms(whole, (scores[:60] * 5).round(), threshold), "polyop::nms")


def test_nms_with_nan_scores_or_an_odd_threshold_uses_torchvision(torchvision: object) -> None:
    scores = torch.tensor([0.5, float("nan"), 0.7])
    with polyop.accelerate():
        assert polyop_ran(lambda: torchvision.nms(boxes(3), scores, 0.5)) == set()
        assert len(torchvision.nms(boxes(3), scores[:1].repeat(3), 1.5)) == 3


@pytest.mark.parametrize("use_mask", [False, True])
@pytest.mark.parametrize(("groups", "offset_groups"), [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize(("stride", "pad", "dilation"), [(1, 1, 1), (2, 0, 1), (1, 2, 2)])
def test_deform_conv2d(
    torchvision: object, use_mask: bool, groups: int, offset_groups: int, stride: int, pad: int, dilation: int
) -> None:
    torch.manual_seed(0)
    height, width = ((extent + 2 * pad - dilation * 2 - 1) // stride + 1 for extent in (9, 10))
    x, weight, bias = torch.randn(2, 4, 9, 10), torch.randn(6, 4 // groups, 3, 3), torch.randn(6)
    offset = torch.randn(2, 2 * offset_groups * 9, height, width) * 2
    mask = torch.rand(2, offset_groups * 9, height, width) if use_mask else torch.zeros(2, 1)
    pairs = [stride, stride, pad, pad, dilation, dilation]
    name = "modulated_deform_conv2d" if use_mask else "deform_conv2d"

    def call() -> Tensor:
        return torchvision.deform_conv2d(x, weight, offset, mask, bias, *pairs, groups, offset_groups, use_mask)

    check(call, f"polyop::{name}")
    grad = torch.randn(2, 6, height, width)

    def gradients() -> tuple[Tensor, ...]:
        window = (*pairs, groups, offset_groups, use_mask)
        return torchvision._deform_conv2d_backward(grad, x, weight, offset, mask, bias, *window)

    want = gradients()
    with polyop.accelerate():
        assert polyop_ran(gradients) == {f"polyop::{name}_backward"}
        for got, expected in zip(gradients(), want, strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-3)
