# SPDX-License-Identifier: Apache-2.0
"""Losses."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.compat.mmcv_ext._registry import provides


def _of_targets(weight: Tensor, target: Tensor) -> Tensor:
    """Returns the weight of each row's class [N, 1]; 1 for the background."""
    foreground = (target >= 0) & (target < len(weight))
    return torch.where(foreground, weight[target.clamp(0, len(weight) - 1)], 1)[:, None]


def _sigmoid_focal(input: Tensor, target: Tensor, weight: Tensor, gamma: float, alpha: float) -> Tensor:
    log_p, log_not = torch.nn.functional.logsigmoid(input), torch.nn.functional.logsigmoid(-input)
    own = target[:, None] == torch.arange(input.shape[1], device=input.device)
    p = input.sigmoid()
    loss = torch.where(own, -alpha * (1 - p) ** gamma * log_p, -(1 - alpha) * p**gamma * log_not)
    return loss * _of_targets(weight, target) if weight.numel() else loss


@provides()
def sigmoid_focal_loss_forward(
    input: Tensor, target: Tensor, weight: Tensor, output: Tensor, gamma: float, alpha: float
) -> None:
    output.copy_(_sigmoid_focal(input, target, weight, gamma, alpha))


@provides()
def sigmoid_focal_loss_backward(
    input: Tensor, target: Tensor, weight: Tensor, grad_input: Tensor, gamma: float, alpha: float
) -> None:
    log_p, log_not = torch.nn.functional.logsigmoid(input), torch.nn.functional.logsigmoid(-input)
    own = target[:, None] == torch.arange(input.shape[1], device=input.device)
    p, not_p = input.sigmoid(), (-input).sigmoid()
    of_own = alpha * not_p**gamma * (gamma * p * log_p - not_p)
    of_others = (1 - alpha) * p**gamma * (p - gamma * not_p * log_not)
    slope = torch.where(own, of_own, of_others)
    grad_input.copy_(slope * _of_targets(weight, target) if weight.numel() else slope)


def _probabilities(softmax: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the probabilities of the rows' classes [N] and their logarithms, without rows of negative classes."""
    p = softmax.gather(1, target.clamp(min=0)[:, None])[:, 0]
    return p, p.clamp(min=torch.finfo(torch.float32).tiny).log()


@provides()
def softmax_focal_loss_forward(
    input: Tensor, target: Tensor, weight: Tensor, output: Tensor, gamma: float, alpha: float
) -> None:
    """The loss of probabilities `input` [N, C]."""
    p, log_p = _probabilities(input, target)
    loss = torch.where(target >= 0, -alpha * (1 - p) ** gamma * log_p, 0)
    output.copy_(loss * _of_targets(weight, target)[:, 0] if weight.numel() else loss)


@provides()
def softmax_focal_loss_backward(
    input: Tensor, target: Tensor, weight: Tensor, buff: Tensor, grad_input: Tensor, gamma: float, alpha: float
) -> None:
    """The gradient with respect to the logits of the probabilities `input`."""
    p, log_p = _probabilities(input, target)
    slope = alpha * (gamma * (1 - p) ** (gamma - 1) * p * log_p - (1 - p) ** gamma)
    slope = torch.where(target >= 0, slope, 0)
    buff.copy_(slope * _of_targets(weight, target)[:, 0] if weight.numel() else slope)
    own = (target[:, None] == torch.arange(input.shape[1], device=input.device)).to(input)
    grad_input.copy_(buff[:, None] * (own - input))


@provides("chamfer_distance")
def chamfer_distance_forward(
    xyz1: Tensor, xyz2: Tensor, dist1: Tensor, dist2: Tensor, idx1: Tensor, idx2: Tensor
) -> None:
    result = torch.ops.polyop.chamfer_distance(xyz1, xyz2)
    for output, value in zip((dist1, dist2, idx1, idx2), result, strict=True):
        output.copy_(value)


@provides()
def chamfer_distance_backward(
    xyz1: Tensor,
    xyz2: Tensor,
    idx1: Tensor,
    idx2: Tensor,
    graddist1: Tensor,
    graddist2: Tensor,
    gradxyz1: Tensor,
    gradxyz2: Tensor,
) -> None:
    for own, other, idx, grad, to_own, to_other in (
        (xyz1, xyz2, idx1, graddist1, gradxyz1, gradxyz2),
        (xyz2, xyz1, idx2, graddist2, gradxyz2, gradxyz1),
    ):
        index = idx.long()[..., None].expand_as(own)
        pull = 2 * grad[..., None] * (own - other.gather(1, index))
        to_own.add_(pull)
        to_other.scatter_add_(1, index, -pull)
