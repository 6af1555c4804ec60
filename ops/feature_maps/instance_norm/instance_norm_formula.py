# SPDX-License-Identifier: Apache-2.0
"""Instance normalization, which exists in torch and ONNX."""

from __future__ import annotations

from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1, 2)


def formula(input: Tensor, scale: Tensor, B: Tensor, *, epsilon: float) -> Tensor:  # noqa: N803 - the definition's name
    rest = tuple(range(2, input.dim()))
    centred = input - input.mean(rest, keepdim=True)
    normalized = centred / (centred.square().mean(rest, keepdim=True) + epsilon).sqrt()
    channels = (scale.shape[0], *[1] * len(rest))
    return normalized * scale.reshape(channels) + B.reshape(channels)


def body(call: Call, *, epsilon: float) -> str:
    return f"output = InstanceNormalization <epsilon: float = {epsilon!r}> (input, scale, B)"
