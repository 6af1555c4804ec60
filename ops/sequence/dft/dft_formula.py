# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms: torch.fft, and ONNX's DFT, which transforms one dimension."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call, NoBodyError

DIFFERENTIABLE = (0,)


def formula(signal: Tensor, *, dimensions: int, inverse: int, onesided: int, odd: int, norm: str) -> Tensor:
    axes = list(range(-dimensions, 0))
    exact = signal if signal.dtype in (torch.float32, torch.float64) else signal.float()
    real = exact.shape[-1] == 1
    z = exact.squeeze(-1) if real else torch.view_as_complex(exact.contiguous())
    if onesided and inverse:
        sizes = [*z.shape[-dimensions:-1], 2 * z.shape[-1] - 2 + odd]
        return torch.fft.irfftn(z, sizes, axes, norm).unsqueeze(-1).to(signal.dtype)
    if onesided:
        return torch.view_as_real(torch.fft.rfftn(z, dim=axes, norm=norm)).to(signal.dtype)
    transform = torch.fft.ifftn if inverse else torch.fft.fftn
    return torch.view_as_real(transform(z, dim=axes, norm=norm)).to(signal.dtype)


# The whole spectrum of each line: the frequencies above the half are the conjugates of those below it.
_WHOLE = """
        one = Constant <value = int64[1] {{1}}> ()
        last = Constant <value = int64[1] {{-2}}> ()
        minus_one = Constant <value = int64[1] {{-1}}> ()
        zero = Constant <value = int64[1] {{0}}> ()
        beyond = Constant <value = int64[1] {{{beyond}}}> ()
        half_extents = Shape ({half})
        frequencies = Gather (half_extents, last)
        start = Add (frequencies, beyond)
        reversed = Slice ({half}, start, zero, last, minus_one)
        signs = Constant <value = double[2] {{1, -1}}> ()
        conjugates = Mul (reversed, signs)
        whole = Concat <axis = -2> ({half}, conjugates)
"""


def body(call: Call, *, dimensions: int, inverse: int, onesided: int, odd: int, norm: str) -> str:
    if call.opset < 17:
        raise NoBodyError("DFT needs opset 17")
    # ONNX Runtime's transform is exact enough only in double precision.
    lines = ["x0 = Cast <to = 11> (signal)"]

    def transform(given: str, result: str, axis: int, half: int = 0) -> None:
        if call.opset >= 20:
            lines.append(f"{result}_axis = Constant <value = int64 {{{axis}}}> ()")
            lines.append(f"{result} = DFT <inverse = {inverse}, onesided = {half}> ({given}, , {result}_axis)")
        else:
            lines.append(f"{result} = DFT <axis = {axis}, inverse = {inverse}, onesided = {half}> ({given})")

    step = 0
    if onesided and not inverse:
        transform("x0", "x1", -2, 1)
        step = 1
    for axis in range(-1 - dimensions, -2):
        transform(f"x{step}", f"x{step + 1}", axis)
        step += 1
    result, elements = f"x{step}", "x0"
    if onesided and inverse:
        lines.append(_WHOLE.format(half=result, beyond=odd - 2))
        transform("whole", "pairs", -2)
        lines.append("real = Constant <value = int64[1] {0}> ()")
        lines.append("parts = Gather <axis = -1> (pairs, real)")
        result = elements = "parts"
    elif not onesided:
        transform(result, f"x{step + 1}", -2)
        result = f"x{step + 1}"
    if norm != "backward":  # ONNX divides the inverse transform by the number of elements
        axes = ", ".join(str(axis) for axis in range(-1 - dimensions, -1))
        lines += [
            f"axes = Constant <value = int64[{dimensions}] {{{axes}}}> ()",
            f"all_extents = Shape ({elements})",
            "extents = Gather (all_extents, axes)",
            "count = ReduceProd <keepdims = 0> (extents)",
            f"elements = CastLike (count, {elements})",
            "factor = " + ("Sqrt" if norm == "ortho" else "Identity") + " (elements)",
            f"scaled = {'Mul' if inverse else 'Div'} ({result}, factor)",
        ]
        result = "scaled"
    lines.append(f"output = CastLike ({result}, signal)")
    return "\n".join(lines)
