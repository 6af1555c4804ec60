# SPDX-License-Identifier: Apache-2.0
"""Images over their number of pixels, and attention over its number of queries."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from growing.call import MILLION, Call, Growing, call, integers, normal, scores, side_of, uniform

PIXELS = 8192 * 8192


def image(n: int, channels: int = 4) -> Tensor:
    side = side_of(n)
    return normal(1, channels, side, side)


def smooth_grid(n: int) -> Tensor:
    """Returns the grid of an image rotated by a few degrees."""
    side = side_of(n)
    theta = torch.tensor([[[0.99, 0.1, 0.02], [-0.1, 0.99, 0.01]]])
    return torch.nn.functional.affine_grid(theta, [1, 1, side, side], align_corners=False)


def offsets(n: int) -> Tensor:
    side = side_of(n)
    return normal(1, 18, side, side)


def deformed(operator: str, n: int, **attributes: object) -> Call:
    mask = [uniform(1, 9, side_of(n), side_of(n))] if operator == "modulated_deform_conv2d" else []
    bias = [None] if operator == "modulated_deform_conv2d" else []
    return call(operator, image(n, 8), offsets(n), *mask, normal(8, 8, 3, 3), *bias, **attributes)


def last_channels(operator: str, n: int) -> Call:
    """One group of 16 channels, 3x3 samples."""
    side, group = side_of(n), {"group": 1, "group_channels": 16}
    x = normal(1, side, side, 16)
    if operator == "dcn_v4":
        return call(operator, x, normal(1, side, side, 32), **group)
    return call(operator, x, normal(1, side, side, 18), uniform(1, side, side, 9), **group)


def shapes_of(n: int) -> tuple[Tensor, Tensor, int]:
    """Returns two levels with about n pixels."""
    side = side_of(n)
    shapes = torch.tensor([[side, side], [max(1, side // 2), max(1, side // 2)]])
    sizes = shapes.prod(1)
    return shapes, torch.tensor([0, int(sizes[0])]), int(sizes.sum())


def attention(operator: str, n: int) -> Call:
    """One query per pixel, 2 heads of 16 channels, 2 levels of 4 points."""
    shapes, starts, pixels = shapes_of(n)
    value = normal(1, pixels, 2, 16)
    locations, weights = uniform(1, n, 2, 2, 4, 2), uniform(1, n, 2, 2, 4)
    if operator == "flash_deform_attn":
        rows = torch.cat([locations.flatten(3), weights.flatten(3)], -1)
        return call(operator, value, shapes, starts, rows, points=4)
    if operator == "ms_deform_attn_of_offsets":
        return call(operator, value, shapes, uniform(1, n, 1, 4), normal(1, n, 2, 16), normal(1, n, 2, 8))
    return call(operator, value, shapes, starts, locations, weights)


def masks(n: int) -> Call:
    side = side_of(n)
    return call("carafe", image(n), uniform(1, 25, 2 * side, 2 * side), kernel_size=5, scale_factor=2.0)


def few_pixels(n: int) -> Call:
    """A tenth of the pixels is computed."""
    side = side_of(n)
    mask = (scores(1, side, side) < 0.1).float()
    return call("masked_conv2d", image(n, 8), mask, normal(8, 8, 3, 3), None, padding=[1, 1])


def lines_of_text(n: int) -> tuple[Tensor, Tensor]:
    """Returns each pixel's distance from the middle of a line of 24 x 120 pixels, and the number of the line."""
    side = side_of(n)
    y, x = torch.arange(side)[:, None], torch.arange(side)[None]
    lines = y // 24 * math.ceil(side / 120) + x // 120 + 1
    return torch.maximum((y % 24 - 12).abs(), (x % 120 - 60).abs() - 48), lines.int()


def expanded(n: int) -> Call:
    away, lines = lines_of_text(n)
    kernels = torch.stack([away < 10 - 2 * k for k in range(4)])
    return call("contour_expand", kernels, lines * kernels[-1], min_kernel_area=5)


def grouped(n: int) -> Call:
    away, lines = lines_of_text(n)
    kernel, mask = away < 4, away < 10
    embedding = lines[..., None] % 7 + uniform(*lines.shape, 4) * 0.2
    return call("pixel_group", scores(*lines.shape), mask, embedding, lines * kernel, kernel,
                kernel_region_num=int(lines.max()) + 1, distance_threshold=0.8)  # fmt: skip


def resized(n: int) -> Call:
    side = side_of(n)
    return call("cubic_resize", image(n), torch.tensor([2 * side, 2 * side]))


def rotated_filters(n: int) -> Call:
    """Filters of 3x3 for 8 orientations, with 8 rotations; each entry of a filter moves to another one."""
    locations = torch.stack([torch.randperm(72, generator=torch.Generator().manual_seed(i)) for i in range(8)], 1)
    return call("active_rotated_filter", normal(n, 16, 8, 3, 3), locations.view(8, 3, 3, 8) + 1)


def rotated_image(n: int) -> Call:
    side = side_of(n)
    return call("rotate", image(n)[0], torch.tensor(20.0), torch.tensor([side / 2, side / 2]))


def aligned(n: int) -> Call:
    side = side_of(n)
    boxes = torch.cat([uniform(1, side, side, 2, high=side), uniform(1, side, side, 2, low=4, high=30),
                       uniform(1, side, side, 1, low=-3, high=3)], -1)  # fmt: skip
    return call("rotated_feature_align", image(n), boxes, points=5)


def spread_psa(n: int) -> Call:
    side = side_of(n)
    return call("psa_mask", normal(1, (2 * side - 1) ** 2, side, side), mask_size=[2 * side - 1, 2 * side - 1])


def tokens(operator: str, n: int) -> Call:
    mask = [None] if operator == "scaled_dot_product_attention" else []
    return call(operator, normal(1, n, 32), normal(1, n, 32), normal(1, n, 32), *mask)


def priors(n: int) -> Call:
    side = side_of(n)
    return call("grid_priors", normal(9, 4), torch.zeros(side), torch.zeros(side), stride_h=4, stride_w=4)


def scattered(n: int) -> Call:
    rows = torch.randperm(n, generator=torch.Generator().manual_seed(7))[: n // 4, None]
    return call("scatter_nd", normal(n, 16), rows, normal(n // 4, 16))


def selected(n: int) -> Call:
    return call("select_and_pad", normal(1, n, 16), integers(2, n), normal(16), P=n)


def pixels(operator: str, make: object, minimum: int = 128 * 128) -> Growing:
    return Growing(operator, "pixels", minimum, PIXELS, make)


CASES = [
    pixels("grid_sampler", lambda n: call("grid_sampler", image(n), smooth_grid(n))),
    Growing("grid_sampler", "pixels, random locations", 128 * 128, PIXELS, lambda n: call(
        "grid_sampler", image(n), uniform(1, side_of(n), side_of(n), 2, low=-1))),
    pixels("planar_grid_sampler", lambda n: call(
        "planar_grid_sampler", image(n), smooth_grid(n).permute(0, 3, 1, 2).contiguous())),
    pixels("bicubic_interpolate", lambda n: call("bicubic_interpolate", image(n), scale_factor=[2.0, 2.0])),
    pixels("cubic_resize", resized),
    pixels("dynamic_resize", lambda n: call("dynamic_resize", image(n), torch.tensor([1.0, 1.0, 2.0, 2.0]))),
    pixels("carafe", masks),
    pixels("corner_pool", lambda n: call("corner_pool", image(n), mode="top")),
    pixels("cummax", lambda n: call("cummax", image(n), dim=3)),
    pixels("cumulative", lambda n: call("cumulative", image(n), axis=3)),
    pixels("instance_norm", lambda n: call("instance_norm", image(n), normal(4), normal(4))),
    pixels("my_add", lambda n: call("my_add", image(n), image(n))),
    pixels("dcn_v3", lambda n: last_channels("dcn_v3", n)),
    pixels("dcn_v4", lambda n: last_channels("dcn_v4", n)),
    pixels("deform_conv2d", lambda n: deformed("deform_conv2d", n, padding=[1, 1])),
    pixels("modulated_deform_conv2d", lambda n: deformed("modulated_deform_conv2d", n, padding=[1, 1])),
    pixels("openvino_deform_conv2d", lambda n: deformed("openvino_deform_conv2d", n, pads=[1, 1, 1, 1])),
    pixels("onnx_deform_conv", lambda n: call(
        "onnx_deform_conv", image(n, 8), normal(8, 8, 3, 3), offsets(n), None, None, pads=[1, 1, 1, 1])),
    pixels("masked_conv2d", few_pixels),
    pixels("correlation", lambda n: call("correlation", image(n, 8), image(n, 8), max_displacement=4)),
    pixels("contour_expand", expanded),
    pixels("pixel_group", grouped),
    pixels("rotate", rotated_image),
    pixels("rotated_feature_align", aligned),
    Growing("psa_mask", "pixels, a mask of all", 100, 10_000, spread_psa),
    *(Growing(operator, "queries and pixels", 1000, MILLION, lambda n, operator=operator: attention(operator, n))
      for operator in ("ms_deform_attn", "ms_deform_attn_by_head", "ms_deform_attn_of_offsets", "flash_deform_attn")),
    *(Growing(operator, "queries and keys", 100, 20_000, lambda n, operator=operator: tokens(operator, n))
      for operator in ("qkv_attention", "scaled_dot_product_attention")),
    pixels("neighborhood_attention", lambda n: call(
        "neighborhood_attention", *(normal(1, max(7, side_of(n)), max(7, side_of(n)), 2, 16) for _ in range(3)), kernel_size=[7])),
    Growing("selective_scan", "steps of 32 channels", 1000, MILLION, lambda n: call(
        "selective_scan", normal(1, 32, n), uniform(1, 32, n), -uniform(32, 16), normal(1, 1, 16, n), normal(1, 1, 16, n))),
    Growing("causal_conv1d", "steps of 32 channels", 1000, MILLION, lambda n: call(
        "causal_conv1d", normal(1, 32, n), normal(32, 4), activation="silu")),
    Growing("active_rotated_filter", "filters of 16 channels", 100, 100_000, rotated_filters),
    Growing("inverse", "matrices of 4x4", 1000, MILLION, lambda n: call("inverse", normal(n, 4, 4))),
    Growing("grid_priors", "cells", 1000, 10 * MILLION, priors),
    Growing("scatter_nd", "rows, a quarter is written", 1000, 10 * MILLION, scattered),
    Growing("gather_topk", "rows, a quarter is read", 1000, 10 * MILLION, lambda n: call(
        "gather_topk", normal(1, n, 16), integers(n, 1, n // 4))),
    Growing("select_and_pad", "rows", 1000, 10 * MILLION, selected),
]  # fmt: skip
