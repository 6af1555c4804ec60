# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence

import numpy as np
import projects
import torch
import torch.nn.functional as F
from benchmark import F32, Call, Contest, call
from contenders import bytes_of, in_openvino, normal, session, with_torch
from inputs import gaussian, image, side_of, uniform
from torch import Tensor


def deform_conv(threads: int, modulated: bool) -> Contest:
    rng = np.random.default_rng(6)
    x, weight = normal(0, 1, 256, 64, 64), normal(1, 256, 256, 3, 3) / 48
    offset = rng.normal(0, 1.5, (1, 18, 64, 64)).astype(np.float32)
    mask = rng.random((1, 9, 64, 64)).astype(np.float32) if modulated else np.ones((1, 9, 64, 64), np.float32)
    attributes = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 1, "deform_groups": 1}
    if modulated:
        feeds = {"x": x, "o": offset, "m": mask, "w": weight}
        ours = session("mmcv::MMCVModulatedDeformConv2d", feeds, threads, attributes=attributes)
    else:
        ours = session("mmcv::MMCVDeformConv2d", {"x": x, "o": offset, "w": weight}, threads, attributes=attributes)
    built_in = session(
        "DeformConv",
        {"x": x, "w": weight, "o": offset, "b": None, "m": mask if modulated else None},
        threads,
        opset=19,
        attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "offset_group": 1},
    )
    convolution = session("Conv", {"x": x, "w": weight}, threads, attributes={"pads": [1, 1, 1, 1]})
    openvino = in_openvino(
        "DeformableConvolution", 8, [x, offset, weight, mask], threads, strides=[1, 1], pads_begin=[1, 1],
        pads_end=[1, 1], dilations=[1, 1], auto_pad="explicit", group=1, deformable_group=1, bilinear_interpolation_pad=True,
    )  # fmt: skip
    return Contest(
        ours,
        {"ONNX Runtime DeformConv": built_in, "OpenVINO DeformableConvolution": openvino},
        tolerance=1e-3,
        yardstick=("ONNX Runtime Conv", convolution),
    )


def dcn(threads: int, version: int) -> Contest:
    """A block of InternImage-T's second stage, or of one with more channels."""
    size, groups, depth = (56, 8, 16) if version == 3 else (28, 16, 32)
    x = normal(0, 1, size, size, groups * depth)
    offset = np.random.default_rng(6).normal(0, 1.5, (1, size, size, groups, 18)).astype(np.float32)
    mask = np.random.default_rng(7).random((1, size, size, groups, 9)).astype(np.float32)
    named = (("kernel", 3), ("stride", 1), ("pad", 1), ("dilation", 1))
    attributes = {f"{name}_{axis}": v for name, v in named for axis in "hw"}
    attributes |= {"group": groups, "group_channels": depth, "offset_scale": 1.0, "remove_center": 0}
    flat = (1, size, size, -1)
    if version == 3:
        feeds = {"x": x, "o": offset.reshape(flat), "m": mask.reshape(flat)}
        ours = session("mmdeploy::TRTDCNv3", feeds, threads, attributes=attributes)
    else:
        feeds = {"x": x, "om": np.concatenate([offset, mask], -1).reshape(flat)}  # already a multiple of 8
        ours = session("polyop::DCNv4", feeds, threads, attributes=attributes)
    tx, to, tm = (torch.from_numpy(t) for t in (x, offset, mask))
    steps = torch.arange(size)
    taps = torch.arange(3) - 1
    column = steps[:, None] + taps.repeat_interleave(3)  # column by column
    row = steps[:, None] + taps.repeat(3)

    def formulation() -> torch.Tensor:
        at = to.view(1, size, size, groups, 9, 2)
        position = torch.stack([at[..., 0] + column[None, :, None], at[..., 1] + row[:, None, None]], -1)
        grid = ((2 * position + 1) / size - 1)[0].permute(2, 0, 1, 3, 4).reshape(groups, size * size, 9, 2)
        images = tx[0].view(size, size, groups, depth).permute(2, 3, 0, 1)
        sampled = F.grid_sample(images, grid, "bilinear", "zeros", align_corners=False)
        weighted = sampled * tm[0].permute(2, 0, 1, 3).reshape(groups, 1, size * size, 9)
        return weighted.sum(-1).view(groups * depth, size, size).permute(1, 2, 0)[None].contiguous()

    return Contest(
        ours, {"torch formulation": with_torch(formulation)}, 2 * bytes_of(x) + bytes_of(offset, mask), tolerance=1e-3
    )


def attend_by_grids(value: Tensor, sizes: Sequence[tuple[int, int]], locations: Tensor, weights: Tensor) -> Tensor:
    """Deformable attention of one image with one grid_sample per level: [1, M, Q, D]."""
    heads, size, queries = *value.shape[2:], locations.shape[1]
    grids, samples = 2 * locations - 1, []
    for i, part in enumerate(value.split([int(h * w) for h, w in sizes], 1)):
        image = part.flatten(2).transpose(1, 2).reshape(heads, size, *(int(n) for n in sizes[i]))
        grid = grids[:, :, :, i].transpose(1, 2).flatten(0, 1)
        samples.append(F.grid_sample(image, grid, "bilinear", "zeros", align_corners=False))
    factor = weights.transpose(1, 2).reshape(heads, 1, queries, -1)
    return (torch.stack(samples, -2).flatten(-2) * factor).sum(-1).view(1, heads, size, queries).transpose(2, 3)


SQUARE = [3, 3, 1, 1, 1, 1, 1, 1]  # a kernel of 3 x 3, and stride, padding and dilation 1


def tensors_of(channels: int, dtype: torch.dtype = F32) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Returns features, offsets, masks, weights and biases of two images of 64 x 64 and as many filters of 3 x 3."""
    shapes = [(2, channels, 64, 64), (2, 18, 64, 64), (2, 9, 64, 64), (channels, channels, 3, 3)]
    x, offset, mask, weight = (torch.randn(*shape) for shape in shapes)
    return tuple(t.to(dtype) for t in (x, offset, mask.sigmoid(), weight * 0.02, torch.zeros(channels)))


def flops_of(channels: int) -> float:
    return 2.0 * 2 * channels * channels * 9 * 64 * 64


def in_torchvision(x: Tensor, offset: Tensor, weight: Tensor, mask: Tensor | None, bias: Tensor) -> Tensor:
    """Calls torchvision's operator with a kernel of 3 x 3 and a padding of 1."""
    other = x.new_empty(x.shape[0], 0) if mask is None else mask
    return projects.torchvision().deform_conv2d(x, weight, offset, other, bias, *SQUARE[2:], 1, 1, mask is not None)


def offsets(n: int) -> Tensor:
    side = side_of(n)
    return gaussian(1, 18, side, side)


def deformed(operator: str, n: int, **attributes: object) -> Call:
    mask = [uniform(1, 9, side_of(n), side_of(n))] if operator == "modulated_deform_conv2d" else []
    bias = [None] if operator == "modulated_deform_conv2d" else []
    return call(operator, image(n, 8), offsets(n), *mask, gaussian(8, 8, 3, 3), *bias, **attributes)


def last_channels(operator: str, n: int) -> Call:
    """One group of 16 channels, 3x3 samples."""
    side, group = side_of(n), {"group": 1, "group_channels": 16}
    x = gaussian(1, side, side, 16)
    if operator == "dcn_v4":
        return call(operator, x, gaussian(1, side, side, 32), **group)
    return call(operator, x, gaussian(1, side, side, 18), uniform(1, side, side, 9), **group)


def levels_of(*sizes: tuple[int, int]) -> tuple[Tensor, Tensor, int]:
    """Returns heights and widths, the first pixels of the levels, and the number of pixels."""
    shapes = torch.tensor(sizes)
    pixels = shapes.prod(1)
    return shapes, pixels.cumsum(0) - pixels, int(pixels.sum())


# Levels of a smaller and of a larger image.
SMALL, LARGE = ((76, 100), (38, 50), (19, 25), (10, 13)), ((100, 134), (50, 67), (25, 34), (13, 17))


def attention(operator: str, n: int) -> Call:
    """One query per pixel, 2 heads of 16 channels, 2 levels of 4 points."""
    side = side_of(n)
    shapes, starts, pixels = levels_of((side, side), (max(1, side // 2), max(1, side // 2)))
    value = gaussian(1, pixels, 2, 16)
    locations, weights = uniform(1, n, 2, 2, 4, 2), uniform(1, n, 2, 2, 4)
    if operator == "flash_deform_attn":
        rows = torch.cat([locations.flatten(3), weights.flatten(3)], -1)
        return call(operator, value, shapes, starts, rows, points=4)
    if operator == "ms_deform_attn_of_offsets":
        return call(operator, value, shapes, uniform(1, n, 1, 4), gaussian(1, n, 2, 16), gaussian(1, n, 2, 8))
    return call(operator, value, shapes, starts, locations, weights)
