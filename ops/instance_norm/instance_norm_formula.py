"""Instance normalisation: torch and ONNX have it."""

from __future__ import annotations

from torch import Tensor

from polyop.formulas import Call


def formula(input: Tensor, scale: Tensor, B: Tensor, *, epsilon: float) -> Tensor:  # noqa: N803 - the definition's name
    rest = tuple(range(2, input.dim()))
    centred = input - input.mean(rest, keepdim=True)
    normal = centred / (centred.square().mean(rest, keepdim=True) + epsilon).sqrt()
    channels = (scale.shape[0], *[1] * len(rest))
    return normal * scale.reshape(channels) + B.reshape(channels)


def body(call: Call, *, epsilon: float) -> str:
    return f"output = InstanceNormalization <epsilon: float = {epsilon!r}> (input, scale, B)"
