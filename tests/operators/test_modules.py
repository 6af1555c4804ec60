# SPDX-License-Identifier: Apache-2.0
"""The layers and MMCV's names, compared with ONNX Runtime's operators and plain formulas."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch

import polyop
import polyop.compat.mmcv as mmcv_ops
from polyop import modules
from tests.support.references import built_in, deform_conv


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def boxes_and_scores(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    corner = torch.rand(count, 2) * 60
    return torch.cat([corner, corner + 5 + torch.rand(count, 2) * 30], 1), torch.rand(count)


def built_in_roi_align(x: torch.Tensor, rois: torch.Tensor, aligned: bool, height: int, width: int, scale: float):
    return torch.from_numpy(built_in(
        "RoiAlign", 16, {"x": x.numpy(), "rois": rois[:, 1:].numpy().copy(), "batch": rois[:, 0].long().numpy()},
        output_height=height, output_width=width, spatial_scale=scale, sampling_ratio=2, mode="avg",
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
    ))  # fmt: skip


def iou(a: torch.Tensor, b: torch.Tensor) -> float:
    meet = (torch.minimum(a[2:], b[2:]) - torch.maximum(a[:2], b[:2])).clamp(min=0).prod()
    return float(meet / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - meet))


def plain_nms(boxes: torch.Tensor, scores: torch.Tensor, threshold: float, labels: torch.Tensor | None = None):
    """Suppression by its greedy definition, box by box."""
    kept: list[int] = []
    for i in scores.argsort(descending=True).tolist():
        rivals = [k for k in kept if labels is None or labels[k] == labels[i]]
        if all(iou(boxes[i], boxes[k]) <= threshold for k in rivals):
            kept.append(i)
    return kept


# ---- layers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align_is_the_built_in(aligned: bool) -> None:
    x = torch.rand(2, 5, 20, 24)
    boxes, _ = boxes_and_scores(9)
    rois = torch.cat([torch.randint(0, 2, (9, 1)).float(), boxes], 1)
    want = built_in_roi_align(x, rois, aligned, 5, 3, 0.25)
    torch.testing.assert_close(polyop.RoIAlign((5, 3), 0.25, 2, aligned)(x, rois), want)
    torch.testing.assert_close(mmcv_ops.RoIAlign((5, 3), 0.25, 2, aligned=aligned)(x, rois), want)
    torch.testing.assert_close(mmcv_ops.roi_align(x, rois, (5, 3), 0.25, 2, "avg", aligned), want)


def test_roi_align_rotated_without_rotation() -> None:
    x = torch.rand(1, 3, 16, 16)
    roi = torch.tensor([[0.0, 8, 7, 6, 4, 0]])
    upright = torch.tensor([[0.0, 5, 5, 11, 9]])
    got = polyop.RoIAlignRotated(3, 1.0, 2)(x, roi)
    torch.testing.assert_close(got, built_in_roi_align(x, upright, True, 3, 3, 1.0))


@pytest.mark.parametrize(("groups", "deform_groups"), [(1, 1), (2, 2)])
def test_deformable_convolutions(groups: int, deform_groups: int) -> None:
    x = torch.rand(2, 4, 9, 8)
    layer = modules.ModulatedDeformConv2d(4, 6, 3, 2, 1, 1, groups, deform_groups)
    offset, mask = torch.randn(2, layer.taps * 2, 5, 4), torch.rand(2, layer.taps, 5, 4)
    torch.nn.init.normal_(layer.bias)
    given = ((2, 2), (1, 1), (1, 1), groups, deform_groups)
    want = deform_conv(x.double(), offset, mask, layer.weight.double(), layer.bias, *given)
    torch.testing.assert_close(layer(x, offset, mask).double(), want, rtol=1e-4, atol=1e-5)
    plain = modules.DeformConv2d(4, 6, 3, 2, 1, 1, groups, deform_groups)
    want = deform_conv(x.double(), offset, None, plain.weight.double(), None, *given)
    torch.testing.assert_close(plain(x, offset).double(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [(2, 5), (5, 1), (1, 2)])
@pytest.mark.parametrize("padding", [1, 2])
def test_inputs_smaller_than_the_kernel(size: tuple[int, int], padding: int) -> None:
    """MMCV pads them with zeros and crops the result."""
    x, offset = torch.rand(2, 3, *size), torch.randn(2, 18, *(n + 2 * padding - 2 for n in size))
    layer = modules.DeformConv2d(3, 4, 3, padding=padding)
    want = deform_conv(x.double(), offset, None, layer.weight.double(), None, (1, 1), (padding,) * 2, (1, 1), 1, 1)
    torch.testing.assert_close(layer(x, offset).double(), want, rtol=1e-4, atol=1e-5)


def test_an_input_one_smaller_than_the_kernel_has_an_empty_result() -> None:
    x, offset = torch.rand(2, 3, 2, 5), torch.zeros(2, 18, 0, 3)
    assert modules.DeformConv2d(3, 4, 3)(x, offset).shape == (2, 4, 0, 3)


def test_weights_start_as_in_mmcv() -> None:
    """The bounds of the uniform distributions are those of the layers' `reset_parameters`."""

    def bound(parameter: torch.Tensor) -> float:
        return float(parameter.abs().max())

    torch.manual_seed(0)
    channels, taps = 64, 64 * 9
    close = partial(pytest.approx, rel=0.01)
    assert bound(modules.DeformConv2d(channels, 64, 3).weight) == close(math.sqrt(6 / taps))
    assert bound(modules.ModulatedDeformConv2d(channels, 64, 3).weight) == close(math.sqrt(1 / taps))
    assert bound(polyop.sparse.SubMConv3d(channels, 64, 3).weight) == close(math.sqrt(1 / (taps * 3)))
    layer = mmcv_ops.SubMConv3d(channels, 64, 3)  # MMCV takes [kz, ky, kx, in, out] for [out, in, …]
    assert bound(layer.weight) == close(math.sqrt(1 / (3 * 3 * channels * 64)))
    assert bound(layer.bias) <= math.sqrt(1 / (taps * 3))


def test_packs_start_as_plain_convolutions_and_learn() -> None:
    x = torch.rand(1, 4, 7, 7)
    for pack, scale in (
        (modules.DeformConv2dPack(4, 3, 3, padding=1), 1.0),
        (modules.ModulatedDeformConv2dPack(4, 3, 3, padding=1), 0.5),
    ):  # sigmoid(0)
        want = torch.nn.functional.conv2d(x, pack.weight * scale, pack.bias, padding=1)
        torch.testing.assert_close(pack(x), want, rtol=1e-4, atol=1e-5)
        pack(x).square().sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in pack.parameters())


def test_rejects_wrong_parameters() -> None:
    with pytest.raises(ValueError, match=r"in_channels: expected a multiple of groups .2., got 3"):
        modules.DeformConv2d(3, 4, 3, groups=2)
    with pytest.raises(ValueError, match="use ModulatedDeformConv2d"):
        modules.DeformConv2d(2, 4, 3, bias=True)
    with pytest.raises(ValueError, match=r"embed_dims: expected a multiple of num_heads .4., got 10"):
        modules.MultiScaleDeformableAttention(10, 4)


def attention_in_torch(value, shapes, locations, weights):
    """The paper's formula, with grid_sample."""
    batch, _, heads, channels = value.shape
    parts = value.split([h * w for h, w in shapes], 1)
    total = 0
    for level, (h, w) in enumerate(shapes):
        image = parts[level].permute(0, 2, 3, 1).reshape(batch * heads, channels, h, w)
        grid = (2 * locations[:, :, :, level] - 1).transpose(1, 2).flatten(0, 1)
        sampled = torch.nn.functional.grid_sample(image, grid, align_corners=False)
        total = total + (sampled * weights[:, :, :, level].transpose(1, 2).flatten(0, 1)[:, None]).sum(-1)
    return total.view(batch, heads * channels, -1).transpose(1, 2)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("numbers", [2, 4])
def test_attention_layer(batch_first: bool, numbers: int) -> None:
    shapes, batch, queries = [(6, 5), (3, 2)], 2, 7
    layer = modules.MultiScaleDeformableAttention(16, 4, 2, 3, dropout=0.0, batch_first=batch_first)
    torch.nn.init.normal_(layer.sampling_offsets.weight, std=0.2)
    torch.nn.init.normal_(layer.attention_weights.weight)
    query, value, pos = torch.rand(batch, queries, 16), torch.rand(batch, 36, 16), torch.rand(batch, queries, 16)
    reference, mask = torch.rand(batch, queries, 2, numbers), torch.rand(batch, 36) < 0.2
    spatial, start = torch.tensor(shapes), torch.tensor([0, 30])

    query_at = query + pos
    offsets = layer.sampling_offsets(query_at).view(batch, queries, 4, 2, 3, 2)
    scale = 1 / spatial.flip(-1)[:, None] if numbers == 2 else reference[:, :, None, :, None, 2:] / 6
    locations = reference[:, :, None, :, None, :2] + offsets * scale
    weights = layer.attention_weights(query_at).view(batch, queries, 4, 6).softmax(-1).view(batch, queries, 4, 2, 3)
    projected = (layer.value_proj(value) * ~mask[..., None]).view(batch, 36, 4, 4)
    want = layer.output_proj(attention_in_torch(projected, shapes, locations, weights)) + query

    turn = (lambda t: t) if batch_first else (lambda t: t.transpose(0, 1))
    got = layer(
        turn(query), value=turn(value), query_pos=turn(pos), key_padding_mask=mask, reference_points=reference,
        spatial_shapes=spatial, level_start_index=start,
    )  # fmt: skip
    torch.testing.assert_close(turn(got), want, rtol=1e-4, atol=1e-5)


# ---- MMCV's functions of boxes ---------------------------------------------------------------------


def test_nms() -> None:
    boxes, scores = boxes_and_scores(60)
    kept = plain_nms(boxes, scores, 0.3)
    dets, inds = mmcv_ops.nms(boxes, scores, 0.3)
    assert inds.tolist() == kept
    torch.testing.assert_close(dets, torch.cat([boxes[kept], scores[kept, None]], 1))
    dets, inds = mmcv_ops.nms(boxes.numpy(), scores.numpy(), 0.3, max_num=4)
    assert isinstance(dets, np.ndarray)
    assert inds.tolist() == kept[:4]
    _, inds = mmcv_ops.nms(boxes, scores, 0.3, score_threshold=0.6)
    assert inds.tolist() == [i for i in kept if scores[i] > 0.6]


@pytest.mark.parametrize("split", [10000, 10])
def test_batched_nms(split: int) -> None:
    boxes, scores = boxes_and_scores(80)
    labels = torch.randint(0, 4, (80,))
    want = plain_nms(boxes, scores, 0.3, labels)
    config = {"type": "nms", "iou_threshold": 0.3, "split_thr": split}
    dets, kept = mmcv_ops.batched_nms(boxes, scores, labels, config)
    assert kept.tolist() == want
    torch.testing.assert_close(dets, torch.cat([boxes[want], scores[want, None]], 1))
    _, kept = mmcv_ops.batched_nms(boxes, scores, labels, {**config, "max_num": 3})
    assert kept.tolist() == want[:3]
    agnostic = plain_nms(boxes, scores, 0.3)
    assert mmcv_ops.batched_nms(boxes, scores, labels, config, class_agnostic=True)[1].tolist() == agnostic
    assert mmcv_ops.batched_nms(boxes, scores, labels, {**config, "class_agnostic": True})[1].tolist() == agnostic
    assert config == {"type": "nms", "iou_threshold": 0.3, "split_thr": split}
    assert mmcv_ops.batched_nms(boxes, scores, labels, None)[1].tolist() == scores.argsort(descending=True).tolist()
    with pytest.raises(ValueError, match="expected type nms, soft_nms, nms_rotated, got 'wnms'"):
        mmcv_ops.batched_nms(boxes, scores, labels, {"type": "wnms"})


def test_batched_soft_nms_by_class() -> None:
    boxes, scores = boxes_and_scores(30)
    labels = torch.randint(0, 3, (30,))
    config = {"type": "soft_nms", "iou_threshold": 0.3, "min_score": 0.05}
    together, kept = mmcv_ops.batched_nms(boxes, scores, labels, config)
    apart, kept_apart = mmcv_ops.batched_nms(boxes, scores, labels, {**config, "split_thr": 1})
    assert kept.tolist() == kept_apart.tolist()
    torch.testing.assert_close(together, apart, rtol=1e-4, atol=1e-4)


def test_nms_rotated_in_both_directions() -> None:
    upright, scores = boxes_and_scores(40)
    size = upright[:, 2:] - upright[:, :2]
    boxes = torch.cat([(upright[:, :2] + upright[:, 2:]) / 2, size, torch.zeros(40, 1)], 1)
    dets, kept = mmcv_ops.nms_rotated(boxes, scores, 0.3)
    assert kept.tolist() == plain_nms(upright, scores, 0.3)
    assert dets.shape == (len(kept), 6)
    labels = torch.randint(0, 3, (40,))
    assert mmcv_ops.nms_rotated(boxes, scores, 0.3, labels)[1].tolist() == kept.tolist()
    _, by_class = mmcv_ops.batched_nms(boxes, scores, labels, {"type": "nms_rotated", "iou_threshold": 0.3})
    assert by_class.tolist() == plain_nms(upright, scores, 0.3, labels)
    boxes[:, 4] = torch.rand(40) * 3
    mirrored = boxes * torch.tensor([-1.0, 1, 1, 1, 1])  # in a mirror image, angles grow in the other direction
    assert (
        mmcv_ops.nms_rotated(boxes, scores, 0.3)[1].tolist()
        == mmcv_ops.nms_rotated(mirrored, scores, 0.3, clockwise=False)[1].tolist()
    )
    dets, kept = mmcv_ops.nms_rotated(boxes[:0], scores[:0], 0.3)
    assert (dets.shape, kept) == ((0, 5), None)


def test_nms_match_groups_every_box_once() -> None:
    boxes, scores = boxes_and_scores(50)
    groups = mmcv_ops.nms_match(torch.cat([boxes, scores[:, None]], 1), 0.3)
    assert sorted(i for group in groups for i in group.tolist()) == list(range(50))
    assert [int(g[0]) for g in groups] == plain_nms(boxes, scores, 0.3)
    assert all(iou(boxes[g[0]], boxes[i]) >= 0.3 for g in groups for i in g[1:])
    assert mmcv_ops.nms_match(np.zeros((0, 5), np.float32), 0.3) == []


def test_accepts_arguments_that_only_mmcv_needs() -> None:
    x, offset = torch.rand(1, 4, 5, 5), torch.randn(1, 18, 5, 5)
    layer = mmcv_ops.DeformConv2d(4, 2, 3, padding=1, im2col_step=8)
    want = modules.DeformConv2d.forward(layer, x, offset)
    torch.testing.assert_close(mmcv_ops.deform_conv2d(x, offset, layer.weight, 1, 1, 1, 1, 1, False, 32), want)
    assert mmcv_ops.DeformConv2dPack(4, 2, 3, padding=1, im2col_step=8)(x).shape == (1, 2, 5, 5)
    with pytest.raises(ValueError, match="use modulated_deform_conv2d"):
        mmcv_ops.deform_conv2d(x, offset, layer.weight, 1, 1, bias=True)
    attention = mmcv_ops.MultiScaleDeformableAttention(16, 4, 2, 3, 64, 0.0, True, norm_cfg=None, init_cfg=None)
    assert attention.batch_first
    assert set(attention.state_dict()) == {
        f"{layer}.{kind}"
        for layer in ("sampling_offsets", "attention_weights", "value_proj", "output_proj")
        for kind in ("weight", "bias")
    }


def test_names_of_older_versions() -> None:
    for name in mmcv_ops.__all__:
        assert getattr(mmcv_ops, name) is not None
    assert mmcv_ops.get_onnxruntime_op_path() == polyop.get_onnxruntime_op_path()
    value, locations, weights = torch.rand(1, 36, 4, 4), torch.rand(1, 5, 4, 2, 3, 2), torch.rand(1, 5, 4, 2, 3)
    spatial, start = torch.tensor([[6, 5], [3, 2]]), torch.tensor([0, 30])
    got = mmcv_ops.multi_scale_deformable_attn(value, spatial, start, locations, weights, 64)
    torch.testing.assert_close(got, attention_in_torch(value, [(6, 5), (3, 2)], locations, weights))
    features, centred = torch.rand(1, 2, 4, 4), torch.zeros(1, 4, 4, 5)
    assert mmcv_ops.rotated_feature_align(features, centred).shape == features.shape


def test_carafe_pack_starts_as_an_average_and_learns() -> None:
    pack = mmcv_ops.CARAFEPack(6, 2, up_kernel=3, up_group=2, compressed_channels=4)
    assert set(pack.state_dict()) == {
        f"{layer}.{kind}" for layer in ("channel_compressor", "content_encoder") for kind in ("weight", "bias")
    }
    x = torch.rand(1, 6, 5, 4)
    kernels = pack.kernel_normalizer(pack.content_encoder(pack.channel_compressor(x)))
    assert kernels.shape == (1, 18, 10, 8)
    torch.testing.assert_close(kernels.unflatten(1, (2, 9)).sum(2), torch.ones(1, 2, 10, 8))
    averages = torch.nn.functional.avg_pool2d(x, 3, 1, 1).repeat_interleave(2, 2).repeat_interleave(2, 3)
    enlarged = pack(x)
    torch.testing.assert_close(enlarged, averages, atol=5e-3, rtol=0)
    enlarged.square().sum().backward()
    assert all(parameter.grad.any() for parameter in pack.parameters())


def test_masked_convolution_in_mmcvs_layout() -> None:
    x, weight, bias = torch.rand(1, 3, 6, 5), torch.rand(4, 3, 3, 3), torch.rand(4)
    where = torch.rand(1, 6, 5) > 0.5
    want = torch.nn.functional.conv2d(x, weight, bias, padding=1) * where
    for mask in (where, where.float() - 0.5):
        torch.testing.assert_close(mmcv_ops.masked_conv2d(x, mask, weight, bias, 1, 1), want)


def test_pooling_without_offsets_is_roi_align() -> None:
    x, rois = torch.rand(2, 3, 9, 8), torch.tensor([[0.0, 1, 2, 7, 6], [1, 0, 0, 15, 12]])
    want = built_in_roi_align(x, rois, True, 3, 2, 0.5)
    torch.testing.assert_close(mmcv_ops.deform_roi_pool(x, rois, None, (3, 2), 0.5, 2), want)
    moved = mmcv_ops.deform_roi_pool(x, rois, torch.zeros(2, 2, 3, 2), (3, 2), 0.5, 2, 0.1)
    torch.testing.assert_close(moved, want)


def test_psa_mask_rejects_other_types() -> None:
    x = torch.rand(1, 9, 4, 5)
    layer = mmcv_ops.PSAMask("distribute", (3, 3))
    torch.testing.assert_close(layer(x), mmcv_ops.PSAMask("collect", 3)(x).reshape(1, 20, 20).mT.reshape(1, 20, 4, 5))
    assert "psa_type=distribute" in repr(layer)
    with pytest.raises(ValueError, match="psa_type: expected 'collect' or 'distribute', got 'gather'"):
        mmcv_ops.PSAMask("gather", 3)


def test_numpy_arrays_are_refused_by_name() -> None:
    boxes, scores = np.zeros((3, 4), np.float32), torch.zeros(3)
    message = r"^polyop::nms: 'boxes': expected a torch.Tensor, got a NumPy array: pass torch.from_numpy\(boxes\)$"
    with pytest.raises(TypeError, match=message):
        polyop.nms(boxes, scores, 0.5)
    with pytest.raises(TypeError, match=message):
        polyop.nms(scores=scores, iou_threshold=0.5, boxes=boxes)
    assert polyop.nms(torch.from_numpy(boxes), scores, np.float32(0.5)).tolist() == [0, 1, 2]
