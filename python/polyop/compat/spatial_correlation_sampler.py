# SPDX-License-Identifier: Apache-2.0
"""The package spatial_correlation_sampler: the cost volume of FlowNetC, PWC-Net and others."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from polyop import functional

__all__ = ["SpatialCorrelationSampler", "spatial_correlation_sample"]


def spatial_correlation_sample(
    input1: Tensor,
    input2: Tensor,
    kernel_size: int | Sequence[int] = 1,
    patch_size: int | Sequence[int] = 1,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    dilation_patch: int | Sequence[int] = 1,
) -> Tensor:
    """Two tensors [N, C, H, W] -> [N, patch height, patch width, oh, ow]."""
    patch = [patch_size] * 2 if isinstance(patch_size, int) else list(patch_size)
    if len(patch) != 2 or min(patch) < 1:
        raise ValueError(
            f"spatial_correlation_sample: patch_size: expected one or two positive sizes, got {patch_size}"
        )
    most = max(patch) // 2
    result = functional.correlation(
        input1.contiguous(), input2.contiguous(), kernel_size, most, stride, padding, dilation, dilation_patch
    )
    for axis, size in enumerate(patch, 1):
        result = result.narrow(axis, most - (size - 1) // 2, size)
    return result.contiguous()


class SpatialCorrelationSampler(nn.Module):
    """`spatial_correlation_sample` as a layer."""

    def __init__(
        self,
        kernel_size: int | Sequence[int] = 1,
        patch_size: int | Sequence[int] = 1,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        dilation_patch: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.arguments = (kernel_size, patch_size, stride, padding, dilation, dilation_patch)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return spatial_correlation_sample(input1, input2, *self.arguments)
