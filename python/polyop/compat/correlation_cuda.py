# SPDX-License-Identifier: Apache-2.0
"""`correlation_cuda`, the compiled part of FlowNet2's correlation_package: writes into tensors that it resizes."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.compat.correlation_package.correlation import correlate
from polyop.compat.mmcv_ext._registry import gradients

__all__ = ["backward", "forward"]


def forward(
    input1: Tensor, input2: Tensor, rbot1: Tensor, rbot2: Tensor, output: Tensor, pad_size: int, kernel_size: int,
    max_displacement: int, stride1: int, stride2: int, corr_multiply: int,
) -> int:  # fmt: skip
    """Writes the cost volume into `output`. rbot1, rbot2 and corr_multiply have no effect."""
    del rbot1, rbot2, corr_multiply
    with torch.no_grad():
        result = correlate(input1, input2, pad_size, kernel_size, max_displacement, stride1, stride2)
        output.resize_(result.shape).copy_(result)
    return 1


def backward(
    input1: Tensor, input2: Tensor, rbot1: Tensor, rbot2: Tensor, grad_output: Tensor, grad_input1: Tensor,
    grad_input2: Tensor, pad_size: int, kernel_size: int, max_displacement: int, stride1: int, stride2: int,
    corr_multiply: int,
) -> int:  # fmt: skip
    """Writes the gradients of both inputs."""
    del rbot1, rbot2, corr_multiply

    def volume(a: Tensor, b: Tensor) -> Tensor:
        return correlate(a, b, pad_size, kernel_size, max_displacement, stride1, stride2)

    results = gradients(volume, (input1, input2), grad_output)
    with torch.no_grad():
        for to, grad in zip((grad_input1, grad_input2), results, strict=True):
            to.resize_(grad.shape).copy_(grad)
    return 1
