# SPDX-License-Identifier: Apache-2.0
"""Every operator in PyTorch on the GPU, compared with the CPU."""

from __future__ import annotations

import pytest
import torch

import polyop
from polyop._torch.operators import OPERATORS
from tests.support.exported_nodes import Node
from tests.support.on_gpu import (
    CPU_ONLY,
    DTYPE_NAMES,
    FORWARD_TOLERANCES,
    GPU_CALLS,
    expect_close,
    expect_equal,
    in_type,
    to_gpu,
)
from tests.support.torch_calls import as_tuple, call_of, name_of

HALVES = [
    pytest.param(node, dtype, id=f"{name_of(node)}-{DTYPE_NAMES[dtype]}")
    for node in GPU_CALLS
    for dtype in (torch.float16, torch.bfloat16)
    if in_type(call_of(node)[0], call_of(node)[0].flatten(call_of(node)[1]), dtype)
]


def test_operators_without_cuda_kernels() -> None:
    assert {name for name, operator in OPERATORS.items() if "cuda" not in operator.devices} == CPU_ONLY


def test_every_gradient_kernel_has_a_cuda_kernel() -> None:
    gradients = [operator.gradient for operator in OPERATORS.values() if operator.gradient is not None]
    assert [gradient.name for gradient in gradients if "cuda" not in gradient.devices] == []


@pytest.mark.parametrize("node", GPU_CALLS, ids=name_of)
def test_equals_the_cpu(node: Node) -> None:
    operator, args, given = call_of(node)
    expected = as_tuple(operator.overload(*args, **given))
    got = as_tuple(operator.overload(*to_gpu(args), **given))
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.is_cuda
        expect_close(ours.cpu().numpy(), theirs.numpy())


@pytest.mark.parametrize(("node", "dtype"), HALVES)
def test_half_precision_equals_the_cpu(node: Node, dtype: torch.dtype) -> None:
    operator, args, given = call_of(node)
    halves = operator.nest(in_type(operator, operator.flatten(args), dtype))
    expected = as_tuple(operator.overload(*halves, **given))
    got = as_tuple(operator.overload(*to_gpu(halves), **given))
    for ours, theirs in zip(got, expected, strict=True):
        expect_equal(ours, theirs, FORWARD_TOLERANCES[dtype])


@pytest.mark.parametrize("node", GPU_CALLS, ids=name_of)
def test_float64_equals_the_cpu(node: Node) -> None:
    """The reference kernels compute it in host memory, for gradient checks."""
    operator, args, given = call_of(node)
    specs = operator.inputs
    tensors = [
        t.double() if t is not None and t.is_floating_point() and not specs[operator.input_of(i)].value else t
        for i, t in enumerate(operator.flatten(args))
    ]
    nested = operator.nest(tensors)
    try:
        expected = as_tuple(operator.overload(*nested, **given))
    except RuntimeError as error:
        if "no kernel takes" not in str(error):
            raise
        return
    got = as_tuple(operator.overload(*to_gpu(nested), **given))
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.is_cuda
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=DTYPE_NAMES.get)
@pytest.mark.parametrize("side", [20, 270], ids=["images_together", "image_in_parts"])
def test_deformable_convolution_by_cublas(side: int, dtype: torch.dtype) -> None:
    """PyTorch loads cuBLASLt, which multiplies groups of 16 filters and more: of some images, or of a part of one."""
    generator = torch.Generator().manual_seed(5)
    images, channels = (3, 32) if side == 20 else (1, 128)
    x = torch.rand(images, channels, side, side - 1, generator=generator) - 0.5
    offset = torch.rand(images, 4 * 18, side, side - 1, generator=generator) * 6 - 3
    mask = torch.rand(images, 4 * 9, side, side - 1, generator=generator)
    weight = torch.rand(48, channels // 2, 3, 3, generator=generator) - 0.5
    bias = torch.rand(48, generator=generator)
    inputs = [t.to(dtype) for t in (x, offset, mask, weight, bias)]
    expected = polyop.modulated_deform_conv2d(*inputs, padding=(1, 1), groups=2, deform_groups=4)
    got = polyop.modulated_deform_conv2d(*to_gpu(inputs), padding=(1, 1), groups=2, deform_groups=4)
    expect_equal(got, expected, FORWARD_TOLERANCES[dtype])
