# SPDX-License-Identifier: Apache-2.0
"""StyleGAN's filters and activations."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from polyop.compat.mmcv_ext._registry import provides


@provides()
def upfirdn2d(
    input: Tensor,
    filter: Tensor,
    upx: int,
    upy: int,
    downx: int,
    downy: int,
    padx0: int,
    padx1: int,
    pady0: int,
    pady1: int,
    flip: bool,
    gain: float,
) -> Tensor:
    """Upsamples input [N, C, H, W] with zeros, pads or crops it, applies the filter [h, w], and keeps every down-th
    pixel.

    Without `flip`, this is a convolution: the filter is reversed.
    """
    count, channels, height, width = input.shape
    spread = input.new_zeros(count * channels, 1, height, upy, width, upx)
    spread[:, :, :, 0, :, 0] = input.reshape(count * channels, 1, height, width)
    spread = F.pad(spread.view(count * channels, 1, height * upy, width * upx), (padx0, padx1, pady0, pady1))
    kernel = (filter * gain).to(input.dtype)
    kernel = kernel if flip else kernel.flip((0, 1))
    result = F.conv2d(spread, kernel[None, None], stride=(downy, downx))
    return result.view(count, channels, *result.shape[2:])


@provides()
def fused_bias_leakyrelu(
    input: Tensor, bias: Tensor, empty: Tensor, act: int, grad: int, alpha: float, scale: float
) -> Tensor:
    """Leaky ReLU of input + bias; with grad 1 its gradient, where `empty` is the output."""
    if act != 3:
        raise ValueError(f"act: expected 3 (leaky ReLU), got {act}")
    if bias.numel():
        input = input + bias.view(1, -1, *[1] * (input.ndim - 2))
    return torch.where((empty if grad else input) > 0, input, input * alpha) * scale


_SELU, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772

# By MMCV's number: the function, its first and second derivative, of the argument x and the value y.
_ACTIVATIONS = {
    1: (lambda x, a: x, lambda x, y, a: torch.ones_like(y), None),
    2: (lambda x, a: F.relu(x), lambda x, y, a: (y > 0).to(y), None),
    3: (lambda x, a: F.leaky_relu(x, a), lambda x, y, a: torch.where(y > 0, 1.0, a).to(y), None),
    4: (lambda x, a: x.tanh(), lambda x, y, a: 1 - y * y, lambda x, y, a: -2 * y * (1 - y * y)),
    5: (lambda x, a: x.sigmoid(), lambda x, y, a: y * (1 - y), lambda x, y, a: y * (1 - y) * (1 - 2 * y)),
    6: (
        lambda x, a: F.elu(x),
        lambda x, y, a: torch.where(y >= 0, torch.ones_like(y), y + 1),
        lambda x, y, a: torch.where(y >= 0, torch.zeros_like(y), y + 1),
    ),
    7: (
        lambda x, a: F.selu(x),
        lambda x, y, a: torch.where(y >= 0, torch.full_like(y, _SELU), y + _SELU * _SELU_ALPHA),
        lambda x, y, a: torch.where(y >= 0, torch.zeros_like(y), y + _SELU * _SELU_ALPHA),
    ),
    8: (lambda x, a: F.softplus(x), lambda x, y, a: 1 - (-y).exp(), lambda x, y, a: (-y).exp() * (1 - (-y).exp())),
    9: (
        lambda x, a: F.silu(x),
        lambda x, y, a: x.sigmoid() * (1 + x * (1 - x.sigmoid())),
        lambda x, y, a: x.sigmoid() * (1 - x.sigmoid()) * (2 + x * (1 - 2 * x.sigmoid())),
    ),
}


@provides()
def bias_act(
    input: Tensor,
    bias: Tensor,
    xref: Tensor,
    yref: Tensor,
    dy: Tensor,
    grad: int,
    dim: int,
    act: int,
    alpha: float,
    gain: float,
    clamp: float,
) -> Tensor:
    """gain * act(input + bias), clamped unless clamp is negative.

    grad 1: its gradient, where input is the gradient of the output. grad 2: the gradient of that with respect to the
    argument, where dy is the gradient of the output. xref and yref are argument and output of grad 0, or empty.
    """
    function, slope, curvature = _ACTIVATIONS[act]

    def biased(x: Tensor) -> Tensor:
        return x + bias.view([-1 if i == dim else 1 for i in range(x.ndim)]) if x.numel() and bias.numel() else x

    if grad == 0:
        result = function(biased(input), alpha) * gain
        return result.clamp(-clamp, clamp) if clamp >= 0 else result
    if not xref.numel() and not yref.numel():  # linear: the argument does not matter
        return input * gain if grad == 1 else torch.zeros_like(input)
    x = biased(xref)
    y = yref / gain if yref.numel() else function(x, alpha)
    if grad == 1:
        result = input * slope(x, y, alpha) * gain
    else:
        result = input * dy * curvature(x, y, alpha) * gain if curvature else torch.zeros_like(input)
    return torch.where((y * gain).abs() < clamp, result, 0) if clamp >= 0 else result


@provides()
def filtered_lrelu(
    x: Tensor,
    fu: Tensor,
    fd: Tensor,
    b: Tensor,
    si: Tensor,
    up: int,
    down: int,
    px0: int,
    px1: int,
    py0: int,
    py1: int,
    sx: int,
    sy: int,
    gain: float,
    slope: float,
    clamp: float,
    flip_filters: bool,
    writeSigns: bool,
) -> tuple[Tensor, Tensor, int]:
    """Returns -1, "no kernel for these parameters": MMCV then calls upfirdn2d and filtered_lrelu_act_."""
    return x.new_empty(0), si.new_empty(0, dtype=torch.uint8), -1


@provides()
def filtered_lrelu_act_(
    x: Tensor, si: Tensor, sx: int, sy: int, gain: float, slope: float, clamp: float, writeSigns: bool
) -> Tensor:
    """Leaky ReLU in place. Optionally writes signs: 1 for pixels with the slope, 2 for clamped pixels.

    With signs si of an image at (sx, sy) in x, applies them again: the gradient.
    """
    if si.numel():
        height, width = x.shape[2:]
        signs = F.pad(si, (-sx, width + sx - si.shape[3], -sy, height + sy - si.shape[2]))
        x.mul_(gain)
        x.copy_(torch.where(signs == 2, 0, torch.where(signs == 1, x * slope, x)))
        return si.new_empty(0, dtype=torch.uint8)
    result = F.leaky_relu(x, slope) * gain
    signs = torch.where(result.abs() > clamp, 2, torch.where(x < 0, 1, 0)).to(torch.uint8)
    x.copy_(result.clamp(-clamp, clamp))
    return signs if writeSigns else signs.new_empty(0)
