# SPDX-License-Identifier: Apache-2.0
"""`mmcv.ops` on feature maps with polyop as its compiled module, compared with torch in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import product
from pathlib import Path
from types import ModuleType

import onnx
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tests.support.openmmlab import mmcv_ops
from tests.support.single_node import session


@pytest.fixture(scope="module")
def ops() -> Iterator[ModuleType]:
    with mmcv_ops() as module:
        yield module


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def agree(
    function: Callable[..., Tensor], want: Callable[..., Tensor], inputs: Sequence[Tensor], near: float = 1e-4
) -> None:
    """Compares results and gradients of all inputs with those of `want` in double precision."""
    leaves = [t.detach().clone().requires_grad_() for t in inputs]
    doubles = [t.detach().clone().double().requires_grad_() for t in inputs]
    out, expected = function(*leaves), want(*doubles)
    torch.testing.assert_close(out.double(), expected, rtol=near, atol=near)
    weights = torch.randn(expected.shape)
    (out * weights).sum().backward()
    (expected * weights.double()).sum().backward()
    for leaf, double in zip(leaves, doubles, strict=True):
        assert double.grad is not None
        torch.testing.assert_close(leaf.grad.double(), double.grad, rtol=near, atol=near * 10)


def sampled(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Returns bilinear samples of image [C, H, W]: the border's value up to one pixel outside, then 0."""
    height, width = image.shape[1:]
    inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    y, x = y.clamp(0, height - 1), x.clamp(0, width - 1)
    grid = torch.stack([2 * x / (width - 1) - 1, 2 * y / (height - 1) - 1], -1).view(1, -1, 1, 2)
    values = F.grid_sample(image[None], grid.to(image.dtype), align_corners=True).view(-1, *y.shape)
    return torch.where(inside, values, 0)


ROIS = torch.tensor([[0.0, 1, 1, 9, 7], [1, 0, 2, 5, 11], [1, 6, 3, 13, 9], [0, -3, -2, 3, 4]])


def pooled(image: Tensor, box: Tensor, sizes: tuple[int, int], ratio: int, mode: str, aligned: bool) -> Tensor:
    x1, y1, x2, y2 = (float(v) - (0.5 if aligned else 0) for v in box)
    low = 0.0 if aligned else 1.0
    bin_h, bin_w = max(y2 - y1, low) / sizes[0], max(x2 - x1, low) / sizes[1]
    grid_h, grid_w = ratio or math.ceil(bin_h), ratio or math.ceil(bin_w)
    rows = []
    for i in range(sizes[0]):
        for j in range(sizes[1]):
            y = y1 + (i + (torch.arange(grid_h).double() + 0.5) / grid_h) * bin_h
            x = x1 + (j + (torch.arange(grid_w).double() + 0.5) / grid_w) * bin_w
            values = sampled(image, *torch.meshgrid(y, x, indexing="ij")).flatten(1)
            rows.append(values.mean(1) if mode == "avg" else values.amax(1))
    return torch.stack(rows, 1).view(-1, *sizes)


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align(ops: ModuleType, mode: str, aligned: bool, ratio: int) -> None:
    def want(input: Tensor) -> Tensor:
        scaled = ROIS.double() * 0.5
        return torch.stack(
            [pooled(input[int(r[0])], s[1:], (3, 2), ratio, mode, aligned) for r, s in zip(ROIS, scaled, strict=True)]
        )

    def call(input: Tensor) -> Tensor:
        return ops.roi_align(input, ROIS, (3, 2), 0.5, ratio, mode, aligned)

    agree(call, want, [torch.randn(2, 3, 6, 7)])
    features = torch.randn(2, 3, 6, 7)  # without gradients: "max" takes another path
    torch.testing.assert_close(call(features).double(), want(features.double()), rtol=1e-4, atol=1e-5)


def test_roi_pool(ops: ModuleType) -> None:
    rois = torch.cat([ROIS, torch.tensor([[0.0, 20, 20, 30, 30], [1, 5, 5, 3, 3]])])

    def want(input: Tensor) -> Tensor:
        out = []
        for roi in rois.double():
            x1, y1, x2, y2 = roi[1] * 0.5, roi[2] * 0.5, (roi[3] + 1) * 0.5, (roi[4] + 1) * 0.5
            for i in range(3):
                for j in range(2):
                    top, bottom = math.floor(i * (y2 - y1) / 3 + y1), math.ceil((i + 1) * (y2 - y1) / 3 + y1)
                    left, right = math.floor(j * (x2 - x1) / 2 + x1), math.ceil((j + 1) * (x2 - x1) / 2 + x1)
                    part = input[int(roi[0]), :, max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
                    empty = part.numel() == 0 or x2 <= x1 or y2 <= y1
                    out.append(input.sum() * 0 + torch.zeros(3) if empty else part.amax((1, 2)))
        return torch.stack(out).view(len(rois), 3, 2, 3).permute(0, 3, 1, 2)

    agree(lambda input: ops.roi_pool(input, rois, (3, 2), 0.5), want, [torch.randn(2, 3, 6, 7)])


def test_rotated_boxes(ops: ModuleType) -> None:
    """Angle 0 equals upright boxes; a box rotated by a right angle equals the upright one with rotated bins."""
    x1, y1, x2, y2 = ROIS[:, 1:].unbind(1)
    columns = [ROIS[:, 0], (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1]

    def upright(input: Tensor) -> Tensor:
        boxes = ROIS.double() * 0.5
        return torch.stack(
            [pooled(input[int(r[0])], s[1:], (3, 3), 2, "avg", True) for r, s in zip(ROIS, boxes, strict=True)]
        )

    features = torch.randn(2, 4, 6, 7)
    straight = torch.stack([*columns, torch.zeros(4)], 1)
    agree(lambda input: ops.roi_align_rotated(input, straight, (3, 3), 0.5, 2, True), upright, [features])
    on_side = torch.stack([*columns[:3], columns[4], columns[3], torch.full((4,), math.pi / 2)], 1)
    agree(
        lambda input: ops.roi_align_rotated(input, on_side, (3, 3), 0.5, 2, True, True),
        lambda input: upright(input).rot90(1, (2, 3)),
        [features],
        1e-3,
    )


@pytest.mark.parametrize("points", [1, 5])
def test_rotated_feature_align(ops: ModuleType, points: int) -> None:
    """A box's first number is used as y."""
    boxes = torch.rand(2, 6, 7, 5) * torch.tensor([14.0, 14, 6, 6, 3]) - 2

    def want(input: Tensor) -> Tensor:
        y, x, w, h = (boxes[..., k].double() * 0.5 for k in range(4))
        c, s = boxes[..., 4].double().cos() / 2, boxes[..., 4].double().sin() / 2
        out = input.clone()
        for i, j in [(0, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)][:points]:
            at_y, at_x = y + i * s * w + j * c * h, x + i * c * w - j * s * h
            out = out + torch.stack([sampled(f, v, u) for f, v, u in zip(input, at_y, at_x, strict=True)])
        return out

    for given in (boxes, boxes.view(84, 5)):
        agree(
            lambda input, given=given: ops.rotated_feature_align(input, given, 0.5, points),
            want,
            [torch.randn(2, 3, 6, 7)],
        )


def test_rotation_invariant_pooling(ops: ModuleType) -> None:
    """With 4 orientations, a box rotated by 1.25 quarters mixes channels shifted by one and by two, with the same
    samples.
    """
    rois = torch.tensor([[0.0, 6, 5, 8, 6, 1.25 * math.pi / 2], [1, 5, 6, 7, 4, -0.5]])
    features = torch.randn(2, 8, 6, 7)

    def want(input: Tensor) -> Tensor:
        plain = ops.roi_align_rotated(input.float(), rois, (2, 3), 0.5, 2, False, False).double().view(2, 2, 4, 2, 3)
        out = torch.zeros_like(plain)
        for n, angle in enumerate(rois[:, 5].double().tolist()):
            turn = angle * 4 / (2 * math.pi)
            whole, part = math.floor(turn), turn - math.floor(turn)
            for o in range(4):
                out[n, :, o] = (1 - part) * plain[n, :, (o - whole) % 4] + part * plain[n, :, (o - whole + 1) % 4]
        return out.view(2, 8, 2, 3)

    agree(lambda input: ops.riroi_align_rotated(input, rois, (2, 3), 0.5, 2, 4, False), want, [features])


@pytest.mark.parametrize("ratio", [0, 2])
def test_bezier_align(ops: ModuleType, ratio: int) -> None:
    beziers = torch.rand(3, 17) * 10
    beziers[:, 0] = torch.tensor([0.0, 1, 0])

    def want(input: Tensor) -> Tensor:
        out = []
        for row in beziers.double():
            points = row[1:].view(8, 2) * 0.5
            upper, lower = points[:4], points[[7, 6, 5, 4]]
            extent = torch.maximum((upper[0] - upper[3]).abs(), (lower[0] - lower[3]).abs())
            bin_w, bin_h = extent[0] / 3, extent[1] / 2
            grid_h, grid_w = ratio or math.ceil(bin_h), ratio or math.ceil(bin_w)
            for i in range(2):
                for j in range(3):
                    u, v = j / 3, i / 2
                    weights = torch.tensor([(1 - u) ** 3, 3 * u * (1 - u) ** 2, 3 * u * u * (1 - u), u**3]).double()
                    x, y = (weights @ lower) * v + (weights @ upper) * (1 - v) - 0.5
                    ys = y - bin_h / 2 + (torch.arange(grid_h) + 0.5) * bin_h / grid_h
                    xs = x - bin_w / 2 + (torch.arange(grid_w) + 0.5) * bin_w / grid_w
                    values = sampled(input[int(row[0])], *torch.meshgrid(ys, xs, indexing="ij"))
                    out.append(values.mean((1, 2)))
        return torch.stack(out).view(3, 2, 3, -1).permute(0, 3, 1, 2)

    agree(lambda input: ops.bezier_align(input, beziers, (2, 3), 0.5, ratio, True), want, [torch.randn(2, 3, 6, 7)])


def columns(input: Tensor, offset: Tensor, mask: Tensor, groups: int) -> Tensor:
    """Returns samples [N, C, 9, H, W] of a 3 x 3 window, padded by 1, moved by offsets, times masks."""
    n, channels, height, width = input.shape
    offset, mask = offset.view(n, groups, 9, 2, height, width), mask.view(n, groups, 9, height, width)
    taps = []
    for k in range(9):
        y = torch.arange(height)[:, None] - 1 + k // 3 + offset[:, :, k, 0]
        x = torch.arange(width) - 1 + k % 3 + offset[:, :, k, 1]
        grid = torch.stack([2 * x / (width - 1) - 1, 2 * y / (height - 1) - 1], -1).flatten(0, 1)
        parts = F.grid_sample(input.view(n * groups, -1, height, width), grid, align_corners=True)
        taps.append((parts.view(n, groups, -1, height, width) * mask[:, :, k, None]).view(n, channels, height, width))
    return torch.stack(taps, 2)


def test_deformable_convolutions(ops: ModuleType) -> None:
    input, offset, mask = torch.randn(2, 4, 5, 6), torch.randn(2, 36, 5, 6), torch.rand(2, 18, 5, 6)
    weight, bias = torch.randn(6, 2, 3, 3), torch.randn(6)

    def product(parts: Tensor, weights: Tensor) -> Tensor:
        grouped = parts.view(2, 2, 18, -1)
        return torch.einsum("ngkp,gok->ngop", grouped, weights.reshape(2, 3, 18)).reshape(2, 6, 5, 6)

    agree(
        lambda i, o, w: ops.deform_conv2d(i, o, w, 1, 1, 1, 2, 2),
        lambda i, o, w: product(columns(i, o, torch.ones(2, 18, 5, 6).double(), 2), w),
        [input, offset, weight],
        1e-3,
    )
    agree(
        lambda i, o, m, w, b: ops.modulated_deform_conv2d(i, o, m, w, b, 1, 1, 1, 2, 2),
        lambda i, o, m, w, b: product(columns(i, o, m, 2), w) + b.view(1, -1, 1, 1),
        [input, offset, mask, weight, bias],
        1e-3,
    )


def test_offsets_with_more_pixels_than_the_output(ops: ModuleType) -> None:
    """Offsets are read consecutively, as in MMCV's kernel, which ignores their size."""
    input, weight = torch.randn(2, 4, 5, 6), torch.randn(6, 4, 3, 3)
    offset, mask = torch.randn(2, 18, 10, 12), torch.rand(2, 9, 10, 12)

    def want(offset: Tensor, mask: Tensor) -> Tensor:
        read = [t.reshape(2, -1)[:, : c * 30].reshape(2, c, 5, 6) for t, c in ((offset, 18), (mask, 9))]
        return torch.einsum("nckhw,ock->nohw", columns(input.double(), *read, 1), weight.double().flatten(2))

    agree(lambda o, m: ops.modulated_deform_conv2d(input, o, m, weight, None, 1, 1), want, [offset, mask], 1e-3)
    with pytest.raises(RuntimeError, match="'offset': expected"):
        ops.modulated_deform_conv2d(input, offset[..., :4, :4], mask, weight, None, 1, 1)


def test_deformable_attention(ops: ModuleType) -> None:
    sizes = [(5, 4), (3, 2)]
    value, weights = torch.randn(2, 26, 3, 8), torch.rand(2, 7, 3, 2, 4)
    locations = torch.rand(2, 7, 3, 2, 4, 2) * 1.2 - 0.1
    shapes, starts = torch.tensor(sizes), torch.tensor([0, 20])

    def want(value: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
        out = 0
        for level, (height, width) in enumerate(sizes):
            part = value[:, [0, 20][level] :][:, : height * width].permute(0, 2, 3, 1).reshape(6, 8, height, width)
            grid = 2 * locations[:, :, :, level].transpose(1, 2).flatten(0, 1) - 1
            of_level = F.grid_sample(part, grid, align_corners=False)
            out = out + (of_level * weights[:, :, :, level].transpose(1, 2).reshape(6, 1, 7, 4)).sum(-1)
        return out.view(2, 24, 7).mT

    from mmcv.ops.multi_scale_deform_attn import MultiScaleDeformableAttnFunction, multi_scale_deformable_attn_pytorch

    agree(
        lambda v, at, w: MultiScaleDeformableAttnFunction.apply(v, shapes, starts, at, w, 64),
        want,
        [value, locations, weights],
        1e-3,
    )
    agree(
        lambda v, at, w: multi_scale_deformable_attn_pytorch(v, shapes, at, w), want, [value, locations, weights], 1e-3
    )
    assert multi_scale_deformable_attn_pytorch.__wrapped__.__module__.startswith(
        "mmcv."
    )  # MMCV's own function, with ours inside


@pytest.mark.parametrize("weighted", [True, False])
def test_focal_losses(ops: ModuleType, weighted: bool) -> None:
    logits, target = torch.randn(12, 5), torch.randint(0, 5, (12,))
    weight = torch.rand(5) if weighted else None
    own = F.one_hot(target, 5).double()
    rows = weight.double()[target] if weighted else torch.ones(12).double()

    def sigmoid(x: Tensor) -> Tensor:
        p = x.sigmoid()
        at = own * p + (1 - own) * (1 - p)
        return -((own * 0.25 + (1 - own) * 0.75) * (1 - at) ** 2 * at.log() * rows[:, None]).sum() / 12

    def softmax(x: Tensor) -> Tensor:
        p = (x.softmax(1) * own).sum(1)
        return -(0.25 * (1 - p) ** 2 * p.log() * rows).sum() / 12

    agree(lambda x: ops.sigmoid_focal_loss(x, target, 2.0, 0.25, weight, "mean"), sigmoid, [logits])
    agree(lambda x: ops.softmax_focal_loss(x, target, 2.0, 0.25, weight, "mean"), softmax, [logits])


def test_masked_convolution(ops: ModuleType) -> None:
    features, weight, bias = torch.randn(1, 3, 6, 7), torch.randn(4, 3, 3, 3), torch.randn(4)
    mask = (torch.rand(1, 6, 7) > 0.6).float()
    result = ops.masked_conv2d(features, mask, weight, bias, 1)
    torch.testing.assert_close(result, F.conv2d(features, weight, bias, padding=1) * mask, rtol=1e-4, atol=1e-5)


def test_active_rotated_filter(ops: ModuleType) -> None:
    weight = torch.randn(2, 3, 2, 3, 3)
    indices = torch.stack([torch.randperm(18) + 1 for _ in range(4)], 1).view(2, 3, 3, 4).int()

    def want(weight: Tensor) -> Tensor:
        out = torch.zeros(2, 4, 3, 18).double()
        for rotation in range(4):
            for entry in range(18):
                position = int(indices.view(18, 4)[entry, rotation]) - 1
                out[:, rotation, :, position] = weight.reshape(2, 3, 18)[:, :, entry]
        return out.view(8, 6, 3, 3)

    agree(lambda w: ops.active_rotated_filter(w, indices), want, [weight])


def test_tin_shift(ops: ModuleType) -> None:
    shift = torch.tensor([[1, -2], [0, 3]]).int()

    def want(input: Tensor) -> Tensor:
        out = torch.zeros_like(input)
        for n in range(2):
            for group in range(2):
                for t in range(4):
                    to = t + int(shift[n, group])
                    if 0 <= to < 4:
                        out[n, to, group * 3 : group * 3 + 3] = input[n, t, group * 3 : group * 3 + 3]
        return out

    agree(lambda input: ops.tin_shift(input, shift), want, [torch.randn(2, 4, 6, 5)])


def test_correlation(ops: ModuleType) -> None:
    module = ops.Correlation(kernel_size=3, max_displacement=1, stride=2, padding=1, dilation=1, dilation_patch=2)

    def want(a: Tensor, b: Tensor) -> Tensor:
        wide_a, wide_b = F.pad(a, (1, 1, 1, 1)), F.pad(b, (3, 3, 3, 3))
        rows = []
        for dy in (-2, 0, 2):
            for dx in (-2, 0, 2):
                for y in range(0, 5, 2):
                    for x in range(0, 6, 2):
                        rows.append(
                            (
                                wide_a[:, :, y : y + 3, x : x + 3]
                                * wide_b[:, :, y + 2 + dy : y + 5 + dy, x + 2 + dx : x + 5 + dx]
                            ).sum((1, 2, 3))
                        )
        return torch.stack(rows, 1).view(2, 3, 3, 3, 3)

    agree(module, want, [torch.randn(2, 3, 5, 6), torch.randn(2, 3, 5, 6)])


def test_synchronized_batch_norm_of_one_process(ops: ModuleType) -> None:
    from mmcv.ops.sync_bn import SyncBatchNormFunction

    input, weight, bias = torch.randn(3, 4, 5, 6), torch.rand(4), torch.rand(4)
    running = torch.zeros(4), torch.ones(4)
    expected = torch.zeros(4).double(), torch.ones(4).double()
    agree(
        lambda i, w, b: SyncBatchNormFunction.apply(i, *running, w, b, 0.1, 1e-5, None, 1, "default"),
        lambda i, w, b: F.batch_norm(i, *expected, w, b, True, 0.1, 1e-5),
        [input, weight, bias],
    )
    for one, other in zip(running, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "activation", ["linear", "relu", "lrelu", "tanh", "sigmoid", "elu", "selu", "softplus", "swish"]
)
def test_bias_act(ops: ModuleType, activation: str) -> None:
    """The compiled path, compared with MMCV's own reference in torch, and its gradients with finite differences."""
    from mmcv.ops.bias_act import _bias_act_cuda, _bias_act_ref

    x, b = torch.randn(3, 4, 5).double(), torch.randn(4).double()
    for clamp in (
        (None,) if activation == "linear" else (None, 0.7)
    ):  # MMCV keeps nothing from which it could know what it clamped there
        function = _bias_act_cuda(1, activation, None, None, clamp).apply
        agree(function, lambda x, b, c=clamp: _bias_act_ref(x, b, 1, activation, None, None, c), [x, b])
        leaves = x.clone().requires_grad_(), b.clone().requires_grad_()
        assert torch.autograd.gradcheck(function, leaves)
        if clamp is None:
            assert torch.autograd.gradgradcheck(function, leaves)


@pytest.mark.parametrize(("up", "down", "padding"), [(2, 1, [2, 1, 1, 2]), (1, 2, [1, -1, 0, 2]), (3, 2, [0, 0, 0, 0])])
def test_upfirdn2d(ops: ModuleType, up: int, down: int, padding: list[int]) -> None:
    from mmcv.ops.upfirdn2d import _upfirdn2d_cuda, _upfirdn2d_ref

    for kernel in (torch.randn(3, 4), torch.randn(3)):
        for flip in (False, True):
            function = _upfirdn2d_cuda(up, down, padding, flip, 1.5).apply
            agree(
                lambda x, f=function, k=kernel: f(x, k),
                lambda x, k=kernel, flipped=flip: _upfirdn2d_ref(x, k, up, down, padding, flipped, 1.5),
                [torch.randn(2, 3, 7, 8).double()],
            )


def test_fused_leaky_relu(ops: ModuleType) -> None:
    from mmcv.ops.fused_bias_leakyrelu import FusedBiasLeakyReLUFunction

    input, bias = torch.randn(2, 3, 4, 5).double(), torch.randn(3).double()

    def call(x: Tensor, b: Tensor) -> Tensor:
        return FusedBiasLeakyReLUFunction.apply(x, b, 0.2, 1.5)

    agree(call, lambda x, b: F.leaky_relu(x + b.view(1, 3, 1, 1), 0.2) * 1.5, [input, bias])
    assert torch.autograd.gradgradcheck(call, (input.requires_grad_(), bias.requires_grad_()))


def test_filtered_leaky_relu_keeps_the_forward_result(ops: ModuleType) -> None:
    from mmcv._ext import filtered_lrelu_act_

    x = torch.randn(2, 3, 6, 7)
    result = x.clone()
    signs = filtered_lrelu_act_(result, torch.empty(0), 0, 0, 1.5, 0.2, 1.0, True)
    leaf = x.clone().requires_grad_()
    want = (F.leaky_relu(leaf, 0.2) * 1.5).clamp(-1, 1)
    assert torch.equal(result, want)
    gradient = torch.randn_like(x)
    want.backward(gradient)
    again = gradient.clone()
    filtered_lrelu_act_(again, signs, 0, 0, 1.5, 0.2, math.inf, False)
    torch.testing.assert_close(again, leaf.grad)
    part = gradient[:, :, 1:5, 2:6].clone()
    filtered_lrelu_act_(part, signs, 2, 1, 1.5, 0.2, math.inf, False)
    torch.testing.assert_close(part, leaf.grad[:, :, 1:5, 2:6])


def test_text_kernels(ops: ModuleType) -> None:
    """Two kernels in one band of text, which is divided in the middle; a third one is too small."""
    label = torch.zeros(5, 12, dtype=torch.int32)
    label[2, 1:3], label[2, 9:11], label[0, 11] = 1, 2, 3
    kernels = torch.zeros(3, 5, 12, dtype=torch.uint8)
    kernels[2] = label > 0
    kernels[:2, 1:4, :] = 1
    grown = torch.tensor(ops.contour_expand(kernels, label, 2, 3))
    want = torch.zeros(5, 12, dtype=torch.int64)
    want[1:4, :6], want[1:4, 6:] = 1, 2
    assert torch.equal(grown, want)

    embedding = torch.zeros(5, 12, 2)
    embedding[:, 8:] = 5.0
    score, mask = torch.rand(5, 12), kernels[0] > 0
    label[0, 11] = 0
    contour = (label > 0).to(torch.uint8)
    found = ops.pixel_group(score, mask, embedding, label, contour, 3, 1.0)
    for region, span in ((1, range(0, 8)), (2, range(8, 12))):
        pixels = [(x, y) for y in range(1, 4) for x in span]
        mean, count, *positions = found[region]
        assert count == len(pixels)
        assert list(zip(positions[::2], positions[1::2], strict=True)) == pixels
        assert mean == pytest.approx(sum(float(score[y, x]) for x, y in pixels) / len(pixels), rel=1e-5)
    assert found[0] == [0, 0]


# ---- polyop's younger operators --------------------------------------------------------------------


def test_carafe(ops: ModuleType) -> None:
    def want(features: Tensor, masks: Tensor) -> Tensor:
        around = F.unfold(features, 3, padding=1).view(2, 4, 9, 4, 5)
        around = around.repeat_interleave(2, 3).repeat_interleave(2, 4).view(2, 2, 2, 9, 8, 10)
        return (around * masks.view(2, 2, 1, 9, 8, 10)).sum(3).view(2, 4, 8, 10)

    inputs = [torch.randn(2, 4, 4, 5), torch.rand(2, 18, 8, 10)]
    agree(lambda f, m: ops.carafe(f, m, 3, 2, 2), want, inputs)
    agree(lambda f, m: ops.carafe_naive(f, m, 3, 2, 2), want, inputs)


def test_border_align(ops: ModuleType) -> None:
    boxes = torch.rand(2, 5, 4) * 5
    boxes[..., 2:] += boxes[..., :2]

    def want(input: Tensor) -> Tensor:
        out = []
        for n in range(2):
            for x1, y1, x2, y2 in boxes[n].double():
                part = torch.linspace(0, 1, 5).double()
                still = torch.zeros(5).double()
                sides = (
                    (y1 + still, x1 + part * (x2 - x1)),
                    (y1 + part * (y2 - y1), x1 + still),
                    (y2 + still, x2 - part * (x2 - x1)),
                    (y2 - part * (y2 - y1), x2 + still),
                )
                out.append(
                    torch.stack([sampled(input[n, 2 * s : 2 * s + 2], *p).amax(1) for s, p in enumerate(sides)], 1)
                )
        return torch.stack(out).view(2, 5, 2, 4).transpose(1, 2)

    agree(lambda input: ops.border_align(input, boxes, 4), want, [torch.randn(2, 8, 7, 9)])


@pytest.mark.parametrize("kind", ["collect", "distribute"])
@pytest.mark.parametrize("sizes", [(3, 5), (4, 4), (2, 3), (1, 2)])
def test_psa_mask(ops: ModuleType, kind: str, sizes: tuple[int, int]) -> None:
    rows, columns = sizes

    def want(input: Tensor) -> Tensor:
        out = torch.zeros(2, 12, 3, 4).double()
        for y in range(3):
            for x in range(4):
                for i, j in product(range(rows), range(columns)):
                    to_y, to_x = y + i - (rows - 1) // 2, x + j - (columns - 1) // 2
                    if 0 <= to_y < 3 and 0 <= to_x < 4:
                        value = input[:, i * columns + j, y, x]
                        if kind == "collect":
                            out[:, to_y * 4 + to_x, y, x] = value
                        else:
                            out[:, y * 4 + x, to_y, to_x] = value
        return out

    agree(ops.PSAMask(kind, sizes), want, [torch.randn(2, rows * columns, 3, 4)])


def test_deform_roi_pool_and_prroi_pool(ops: ModuleType) -> None:
    rois = torch.tensor([[0.0, 2, 2, 9, 8], [1, 1, 3, 7, 10]])
    features, offset = torch.randn(2, 3, 7, 8), torch.randn(2, 2, 3, 2)

    def moved(input: Tensor, offset: Tensor) -> Tensor:
        out = []
        for n, (image, *box) in enumerate(rois.double().tolist()):
            x1, y1, x2, y2 = (v * 0.5 - 0.5 for v in box)
            for i in range(3):
                for j in range(2):
                    bin_h, bin_w = (y2 - y1) / 3, (x2 - x1) / 2
                    y = y1 + (i + torch.tensor([0.25, 0.75])) * bin_h + 0.1 * (y2 - y1) * offset[n, 1, i, j]
                    x = x1 + (j + torch.tensor([0.25, 0.75])) * bin_w + 0.1 * (x2 - x1) * offset[n, 0, i, j]
                    values = sampled(input[int(image)], *torch.meshgrid(y, x, indexing="ij"))
                    out.append(values.mean((1, 2)))
        return torch.stack(out).view(2, 3, 2, 3).permute(0, 3, 1, 2)

    agree(lambda i, o: ops.deform_roi_pool(i, rois, o, (3, 2), 0.5, 2, 0.1), moved, [features, offset], 1e-3)

    def integral(input: Tensor, rois: Tensor) -> Tensor:
        """Hat functions integrated over bins."""

        def covered(low: Tensor, high: Tensor, size: int) -> Tensor:
            position = torch.arange(size).double()

            def below(at: Tensor) -> Tensor:
                t = (at - position).clamp(-1, 1)
                return torch.where(t < 0, (t + 1) ** 2 / 2, 0.5 + t - t * t / 2)

            return below(high) - below(low)

        out = []
        for roi in rois:
            x1, y1, x2, y2 = roi[1:] * 0.5
            for i in range(3):
                for j in range(2):
                    h, w = (y2 - y1) / 3, (x2 - x1) / 2
                    rows, across = covered(y1 + i * h, y1 + (i + 1) * h, 7), covered(x1 + j * w, x1 + (j + 1) * w, 8)
                    out.append(torch.einsum("chw,h,w->c", input[int(roi[0])], rows, across) / (h * w))
        return torch.stack(out).view(2, 3, 2, 3).permute(0, 3, 1, 2)

    agree(
        lambda i, r: ops.prroi_pool(i, r, (3, 2), 0.5),
        integral,
        [features, rois + 0.3 * torch.tensor([0, 1, 1, 1, 1])],
        1e-3,
    )


def test_operators_without_a_node_in_mmcv_are_exported(ops: ModuleType, tmp_path: Path) -> None:
    sort_indices = import_module("mmcv.ops.diff_iou_rotated").sort_indices

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rotated = ops.RiRoIAlignRotated((2, 3), 0.5, 2, 4)
            self.bent = ops.BezierAlign((2, 3), 0.5, 2)
            self.match = ops.Correlation(max_displacement=2)

        def forward(self, x: Tensor, rois: Tensor, beziers: Tensor, filters: Tensor, positions: Tensor, sets: Tensor):
            rectangles = ops.min_area_polygons(sets)
            features = torch.stack([rectangles, rectangles + 1])[..., None]
            mask = rectangles.repeat(1, 3)[None] > 0.5
            return (
                self.rotated(x, rois), self.bent(x, beziers), self.match(x, x * 2),
                ops.active_rotated_filter(filters, positions), rectangles, ops.convex_iou(sets, rectangles),
                *ops.convex_giou(sets, rectangles),
                ops.diff_iou_rotated_2d(rois[None, :, 1:], rois[None, :, 1:] + 0.5),
                ops.box_iou_quadri(rectangles, rectangles, "iof"),
                sort_indices(rectangles.repeat(1, 6).view(1, 5, 24, 2) * mask[..., None], mask),
                *ops.chamfer_distance(sets.view(5, 9, 2), rectangles.view(5, 4, 2)),
                ops.assign_score_withk(torch.ones(2, 3, 4, 8), features, features * 2, torch.zeros(2, 3, 4, dtype=torch.int64)),
            )  # fmt: skip

    rois = torch.tensor([[0.0, 6, 5, 8, 6, 1.2], [1, 5, 6, 7, 4, -0.5]])
    given = {
        "x": torch.randn(2, 4, 6, 7),
        "rois": rois,
        "beziers": torch.cat([rois[:, :1], torch.rand(2, 16) * 12], 1),
        "filters": torch.randn(2, 3, 2, 3, 3),
        "positions": torch.stack([torch.randperm(18) + 1 for _ in range(4)], 1).view(2, 3, 3, 4).int(),
        "sets": torch.rand(5, 18),
    }
    net, path = Net().eval(), tmp_path / "net.onnx"
    torch.onnx.export(net, tuple(given.values()), path, input_names=[*given], dynamo=False, opset_version=17)
    written = onnx.load(path)
    assert {n.op_type for n in written.graph.node if n.domain == "polyop"} == {
        "RiRoIAlignRotated", "BezierAlign", "Correlation", "ActiveRotatedFilter", "MinAreaPolygons", "ConvexIoU", "ConvexGIoU",
        "BoxIoUQuadri", "AssignScoreWithK", "ChamferDistance",
        "DiffIoURotated", "DiffIoURotatedSortVertices",
    }  # fmt: skip
    result = session(written).run(None, {name: t.numpy() for name, t in given.items()})
    for got, want in zip(result, net(*given.values()), strict=True):
        torch.testing.assert_close(torch.from_numpy(got), want)
