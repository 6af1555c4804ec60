# SPDX-License-Identifier: Apache-2.0
"""Inputs that are unusual or wrong: strides, no elements, other devices, NaN and infinity, refused calls."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import polyop
from polyop._torch.operators import Operator
from tests.support.exported_nodes import Node
from tests.support.on_gpu import FIND_SIZES, GPU_CALLS, expect_equal, to_gpu
from tests.support.torch_calls import as_tuple, call_of, name_of
from tests.support.wrong_calls import WRONG, Wrong


def arguments_of(wrong: Wrong) -> list[Any]:
    tensors = [torch.from_numpy(array) for array in wrong.inputs]
    return [tensors[0], tensors[1:]] if wrong.operator.startswith("multi_level") else tensors


def expect_usable() -> None:
    """An error in a kernel would make every later call fail."""
    torch.cuda.synchronize()
    x, rois = torch.rand(1, 2, 8, 8), torch.tensor([[0, 1.0, 1, 5, 5]])
    expect_equal(polyop.roi_align(x.cuda(), rois.cuda(), (2, 2)), polyop.roi_align(x, rois, (2, 2)))


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.what)
def test_wrong_calls_have_the_same_error_as_on_the_cpu(wrong: Wrong) -> None:
    overload = getattr(torch.ops.polyop, wrong.operator)
    texts = []
    for arguments in (arguments_of(wrong), to_gpu(arguments_of(wrong))):
        with pytest.raises((RuntimeError, ValueError)) as error:
            overload(*arguments, **wrong.attributes)
        texts.append(str(error.value).split(": expected (")[0])  # devices may have kernels for other types
    assert texts[1] == texts[0]
    assert wrong.message in texts[1]
    assert f"polyop::{wrong.operator}" in texts[1]
    expect_usable()


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the values in memory with gaps and the axes reversed."""
    wide = torch.zeros(*reversed(tensor.shape), 2, dtype=tensor.dtype, device=tensor.device)[..., 0]
    return wide.permute(tuple(reversed(range(tensor.dim())))).copy_(tensor)


@pytest.mark.parametrize("node", GPU_CALLS, ids=name_of)
def test_strides(node: Node) -> None:
    operator, args, given = call_of(node)
    tensors = [None if t is None else strided(t.cuda()) for t in operator.flatten(args)]
    assert any(t is not None and (t.dim() == 0 or t.numel() < 2 or not t.is_contiguous()) for t in tensors)
    expect_equal(
        as_tuple(operator.overload(*operator.nest(tensors), **given)), as_tuple(operator.overload(*args, **given))
    )


@pytest.mark.parametrize("node", GPU_CALLS, ids=name_of)
def test_misaligned_memory(node: Node) -> None:
    """The tensors begin one element after an aligned address."""

    def shifted(tensor: torch.Tensor | None) -> torch.Tensor | None:
        if tensor is None:
            return None
        memory = torch.zeros(tensor.numel() + 1, dtype=tensor.dtype, device="cuda")
        return memory[1:].view(tensor.shape).copy_(tensor)

    operator, args, given = call_of(node)
    tensors = [shifted(t) for t in operator.flatten(args)]
    expect_equal(
        as_tuple(operator.overload(*operator.nest(tensors), **given)), as_tuple(operator.overload(*args, **given))
    )
    torch.cuda.synchronize()


def is_refused(operator: Operator, args: Any, given: dict[str, Any]) -> bool:
    """Returns whether the shapes, types and attributes are wrong, whatever the values on a GPU are."""
    try:
        operator.outputs(args, operator.values(given), lambda _: 0)
    except RuntimeError:
        return True
    return False


def outcome(call: Any) -> Any:
    """Returns the results of a call, or the text of its error."""
    try:
        return as_tuple(call())
    except (RuntimeError, ValueError) as error:
        return str(error)


@pytest.mark.parametrize("node", GPU_CALLS, ids=name_of)
def test_no_elements(node: Node) -> None:
    """Each input in turn has no rows. The call has the shapes or the error of the CPU."""
    operator, args, given = call_of(node)
    tensors = operator.flatten(args)
    for i, tensor in enumerate(tensors):
        if tensor is None or tensor.dim() == 0:
            continue
        fewer = [*tensors]
        fewer[i] = tensor[:0]
        nested = operator.nest(fewer)
        expected = outcome(lambda nested=nested: operator.overload(*nested, **given))
        got = outcome(lambda nested=nested: operator.overload(*to_gpu(nested), **given))
        # On the CPU, values that are out of range are errors, too; a GPU does not check them (CONTRIBUTING.md).
        if isinstance(expected, str) and not is_refused(operator, nested, given):
            continue
        if isinstance(expected, str):
            assert got == expected
        else:
            expect_equal(got, expected)
    torch.cuda.synchronize()


@pytest.mark.parametrize("node", GPU_CALLS, ids=name_of)
def test_other_devices(node: Node) -> None:
    """A CPU tensor among GPU tensors is an error that names the operator, the input and both devices."""
    operator, args, given = call_of(node)
    tensors = operator.flatten(args)
    present = [i for i, t in enumerate(tensors) if t is not None and not operator.inputs[operator.input_of(i)].value]
    for i in present[1:]:
        spec = operator.inputs[operator.input_of(i)]
        mixed = [t if t is None or j == i else t.cuda() for j, t in enumerate(tensors)]
        devices = "expected cuda:0, the device of the inputs before it, got cpu"
        with pytest.raises(RuntimeError, match=f"polyop::{operator.name}: '{spec.name}.*': {devices}"):
            operator.overload(*operator.nest(mixed), **given)
    expect_usable()


# On the GPU, a pixel that is not finite affects also samples in which its weight is 0.
READS_PIXELS_OF_WEIGHT_0 = {"deform_roi_pool", "multi_level_rotated_roi_align", "riroi_align_rotated"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e30, -1e30])
@pytest.mark.parametrize("node", GPU_CALLS, ids=name_of)
def test_extreme_values(node: Node, value: float) -> None:
    """Each input in turn has such values. Where the CPU gives a result, so does the GPU, and it is not finite in the
    same elements. Neither reads memory that does not belong to the tensors.
    """
    operator, args, given = call_of(node)
    tensors = operator.flatten(args)
    for i, tensor in enumerate(tensors):
        if tensor is None or not tensor.is_floating_point() or operator.inputs[operator.input_of(i)].value:
            continue
        changed = tensor.clone()
        changed.view(-1)[:: 1 if tensor.numel() < 3 else 3] = value
        nested = operator.nest([changed if j == i else t for j, t in enumerate(tensors)])
        expected = outcome(lambda nested=nested: operator.overload(*nested, **given))
        got = outcome(lambda nested=nested: operator.overload(*to_gpu(nested), **given))
        torch.cuda.synchronize()  # fails after an access to other memory
        if isinstance(expected, str):
            continue  # on a GPU, values that the CPU refuses give NaN, 0 or -1
        assert not isinstance(got, str), got
        for ours, theirs in zip(got, expected, strict=True):
            assert ours.shape == theirs.shape or operator.name in FIND_SIZES
            if ours.shape == theirs.shape and theirs.is_floating_point():
                differ = ours.cpu().isfinite() != theirs.isfinite()
                assert not differ.any() or operator.name in READS_PIXELS_OF_WEIGHT_0
    expect_usable()


def test_indices_out_of_range() -> None:
    """The CPU refuses them. A GPU reads nothing and gives NaN, 0 or -1."""
    features = torch.rand(1, 4, 6).cuda()
    indices = torch.tensor([[0, 99, -7, 2**31 - 1, 5]], dtype=torch.int32)
    with pytest.raises(RuntimeError, match="expected"):
        torch.ops.polyop.gather_points(features.cpu(), indices)
    got = torch.ops.polyop.gather_points(features, indices.cuda())[0, :, 1:4]
    torch.cuda.synchronize()
    assert bool((got.isnan() | (got == 0)).all())
    x = torch.rand(2, 3, 9, 9).cuda()
    boxes = torch.tensor([[2, 1.0, 1, 5, 5], [-1, 1, 1, 5, 5], [1e30, 1, 1, 5, 5], [float("nan"), 1, 1, 5, 5]]).cuda()
    pooled = polyop.roi_align(x, boxes, (2, 2))
    torch.cuda.synchronize()
    assert bool((pooled.isnan() | (pooled == 0)).all())
    expect_usable()
