# SPDX-License-Identifier: Apache-2.0
"""DCNv3 and DCNv4: weighted sums of bilinear samples of each group of channels, channels last."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas.bilinear_formula import bilinear


def _axis(
    input: Tensor, outputs: int, stride: int, pad: int, dilation: int, kernel: int, scale: float
) -> tuple[Tensor, Tensor]:
    """Return the centres of windows [outputs] and the positions of points relative to them [kernel]."""
    half = dilation * (kernel - 1) // 2
    centre = torch.arange(outputs, device=input.device) * stride - pad + half
    return centre, (torch.arange(kernel, device=input.device) * dilation - half) * scale


def sum_windows(
    input: Tensor, offset: Tensor, mask: Tensor, *, kernel_h: int, kernel_w: int, stride_h: int, stride_w: int,
    pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, group: int, group_channels: int, offset_scale: float,
    remove_center: int = 0,
) -> Tensor:  # fmt: skip
    """input [N, H, W, G*D], offset [N, OH, OW, G, P, 2], mask [N, OH, OW, G, P] -> [N, OH, OW, G*D]."""
    number, height, width, _ = input.shape
    oh, ow = offset.shape[1:3]
    y, ky = _axis(input, oh, stride_h, pad_h, dilation_h, kernel_h, offset_scale)
    x, kx = _axis(input, ow, stride_w, pad_w, dilation_w, kernel_w, offset_scale)
    points = [p for p in range(kernel_h * kernel_w) if not (remove_center and p == kernel_h * kernel_w // 2)]
    ky = ky[[p % kernel_h for p in points]]
    kx = kx[[p // kernel_h for p in points]]
    y = y.reshape(oh, 1, 1, 1) + ky + offset[..., 1] * offset_scale
    x = x.reshape(ow, 1, 1) + kx + offset[..., 0] * offset_scale
    images = input.reshape(number, height, width, group, group_channels).permute(0, 3, 4, 1, 2)
    index = torch.arange(number * group, device=input.device).reshape(number, 1, 1, group, 1).expand_as(y)
    samples = bilinear(images.reshape(number * group, group_channels, height, width), index, y, x, clamp=False)
    return (samples * mask[..., None]).sum(4).reshape(number, oh, ow, group * group_channels)


def out_size(attributes: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """Return the output's height and width for an image of `height` x `width`."""
    size = [
        (extent + 2 * attributes[f"pad_{a}"] - attributes[f"dilation_{a}"] * (attributes[f"kernel_{a}"] - 1) - 1)
        // attributes[f"stride_{a}"]
        + 1
        for a, extent in (("h", height), ("w", width))
    ]
    return size[0], size[1]
