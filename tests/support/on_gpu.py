# SPDX-License-Identifier: Apache-2.0
"""Calls of operators on the GPU, and comparisons of their results with the CPU's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map

from polyop._arrays.calls import operators
from polyop._torch.operators import Operator
from tests.support.torch_calls import CALLS, call_of

# These operators have no CUDA kernels.
CPU_ONLY = {
    "quantized_cubic_resize",
    "quantized_deform_conv",
    "quantized_grid_sampler",
    "quantized_ms_deform_attn",
    "quantized_roi_align",
}
# The kernel finds the size of an output of these operators, and the host waits to read it.
FIND_SIZES = {
    "custom_unique", "dynamic_scatter", "find_indices", "get_indice_pairs", "get_indice_pairs_implicit_gemm",
    "hard_voxelize", "indice_conv", "nms", "nms3d", "nms_match", "nms_quadri", "nms_rotated", "onnx_nms", "soft_nms",
}  # fmt: skip
GPU_CALLS = [node for node in CALLS if call_of(node)[0].name not in CPU_ONLY]
# PyTorch's own tolerance for float32 is 1.3e-6, but sums of kernels have another order.
FORWARD_TOLERANCES = {torch.float32: 2e-5, torch.float16: 8 * 2.0**-10, torch.bfloat16: 8 * 2.0**-7}
DTYPE_NAMES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}


def to_gpu(value: Any) -> Any:
    """Moves all tensors of a list or tuple to the current GPU."""
    return tree_map(lambda v: v.cuda() if isinstance(v, torch.Tensor) else v, value)


def finds_a_size(operator: Operator, args: Sequence[Any], attributes: dict[str, Any]) -> bool:
    """Returns whether the size of an output of this call depends on the values of tensors on the GPU."""
    if operator.name not in FIND_SIZES:
        return False
    requested = []
    operator.outputs(args, operator.values(attributes), lambda most: requested.append(most) or 0)
    return bool(requested)


def with_sizes_on_the_host(operator: Operator, tensors: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """Returns tensors on the GPU, but those whose values determine shapes stay where they are: a call then copies
    nothing to the host. `tensors` are those of `Operator.flatten`.
    """
    return [
        t if t is None or operator.inputs[operator.input_of(i)].value else t.detach().clone().cuda()
        for i, t in enumerate(tensors)
    ]


def in_type(operator: Operator, tensors: Sequence[torch.Tensor | None], dtype: torch.dtype) -> list[Any] | None:
    """Converts the tensors that may have this type. Returns None if no kernel takes it."""
    specs = operators()[operator.name]["inputs"]
    converted = []
    found = False
    for i, tensor in enumerate(tensors):
        spec = specs[operator.input_of(i)]
        real = tensor is not None and tensor.is_floating_point()
        takes = real and (not spec["types"] or DTYPE_NAMES[dtype] in spec["types"])
        if real and spec["type"] == "T" and not takes:
            return None
        found |= takes
        converted.append(tensor.to(dtype) if takes else tensor)
    return converted if found else None


def expect_close(got: np.ndarray, expected: np.ndarray, tolerance: float = 2e-5) -> None:
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    if got.dtype.kind == "f":
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, expected)


def expect_equal(got: Any, expected: Any, tolerance: float | None = None) -> None:
    """Compares a result on the GPU with one on the CPU: both tensors, or lists or tuples of tensors.

    The tolerance is absolute, for the greatest expected value if that exceeds 1, and relative.
    """
    if isinstance(expected, list | tuple):
        assert len(got) == len(expected)
        for ours, theirs in zip(got, expected, strict=True):
            expect_equal(ours, theirs, tolerance)
        return
    assert got.is_cuda
    assert got.dtype == expected.dtype
    if not expected.is_floating_point():
        torch.testing.assert_close(got.cpu(), expected, rtol=0, atol=0)
        return
    if tolerance is None:
        tolerance = FORWARD_TOLERANCES[expected.dtype]
    finite = expected.double().abs()
    finite = finite[finite.isfinite()]
    scale = max(float(finite.max()), 1.0) if finite.numel() else 1.0
    torch.testing.assert_close(
        got.cpu().double(), expected.double(), rtol=tolerance, atol=tolerance * scale, equal_nan=True
    )
