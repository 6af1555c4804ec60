# SPDX-License-Identifier: Apache-2.0
"""Inputs of other sizes and values for the comparison of a file with PyTorch, derived from the example's.

They stay in the domain of the example's values, which only its author knows: rows are taken from the example, real
numbers become smaller and change a little, indices remain indices. Integers and truth values are chosen anew by
other_choices(), which a model may refuse.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from polyop.exporting.dimensions import Dimension, Sizes, shape_at

_HIDDEN = -1000.0  # the largest of what masks add to scores
_FLIPPED = 0.4  # the part of a mask's truth values that may change
_ROLES_WITH_IMAGE = ("rois", "rotated_rois", "bezier_rois")  # column 0 is the index of an image


def other_inputs(
    tensors: Mapping[str, Tensor],
    dimensions: Mapping[str, Dimension],
    sizes: Sizes,
    roles: Mapping[str, str],
    seed: int,
) -> dict[str, Tensor]:
    """Returns inputs of these sizes. Inputs that share a dimension get the same rows of the example, except those that
    ascend.

    roles: the roles of inputs in the file (core/input_role.h).
    """
    generator = torch.Generator().manual_seed(seed)
    chosen = {
        name: _rows(d.example, sizes.get(name, d.example), _starts(d, tensors), generator)
        for name, d in dimensions.items()
    }
    images = _number_of_images(tensors, dimensions, sizes)
    ascending = {
        name: torch.linspace(0, d.example - 1, sizes.get(name, d.example)).round().to(torch.int64)
        for name, d in dimensions.items()
    }
    return {
        name: _values(
            _gathered(name, tensor.detach(), dimensions, ascending if _ascends(tensor) else chosen), tensor,
            roles.get(name, ""), images, dimensions, sizes, generator,
        )
        for name, tensor in tensors.items()
    }  # fmt: skip


def other_choices(tensors: Mapping[str, Tensor], roles: Mapping[str, str], seed: int) -> dict[str, Tensor]:
    """Returns other values for the integers and truth values among these inputs, of the same sizes; none for those
    whose values cannot change, such as indices of images and offsets, which ascend.

    Integers get another order along their longest axis, so that rows of coordinates remain rows and indices are as
    different as before; a single one is smaller. Truth values, and masks of numbers, change in one direction, so that
    their number differs; the first of each row stays, and no row of a mask becomes uniform.
    """
    generator = torch.Generator().manual_seed(seed)
    changed = {
        name: _chosen(tensor.detach(), generator)
        for name, tensor in tensors.items()
        if (is_discrete(tensor) or _is_mask(tensor)) and tensor.numel() > 0 and not roles.get(name)
    }
    return {name: other for name, other in changed.items() if not torch.equal(other, tensors[name])}


def is_discrete(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() and not tensor.is_complex()


def _ascends(tensor: Tensor) -> bool:
    """Says whether the integers of a vector ascend from 0, as offsets do."""
    is_vector = tensor.dim() == 1 and tensor.numel() > 1 and is_discrete(tensor) and tensor.dtype != torch.bool
    return is_vector and bool(tensor[0] == 0) and bool((tensor.diff() >= 0).all()) and bool(tensor[-1] > 0)


def _is_mask(tensor: Tensor) -> bool:
    """Says whether real numbers are a mask: 1 and possibly 0, or what hides scores, such as -infinity, and 0."""
    if not tensor.is_floating_point() or tensor.numel() < 2:
        return False
    other = tensor[tensor != 0]
    return other.numel() > 0 and bool((other == other[0]).all()) and (bool(other[0] == 1) or bool(other[0] <= _HIDDEN))


def _chosen(tensor: Tensor, generator: torch.Generator) -> Tensor:
    if tensor.is_floating_point():
        nonzero = tensor != 0
        return torch.where(_other_flags(nonzero, generator), tensor[nonzero][0], 0)
    if tensor.dtype == torch.bool:
        return _other_flags(tensor, generator)
    if tensor.numel() == 1:
        return torch.where(tensor > 0, tensor - 1, tensor)
    if bool(((tensor == 0) | (tensor == 1)).all()):
        return _other_flags(tensor != 0, generator).to(tensor.dtype)
    axis = tensor.shape.index(max(tensor.shape))
    steps = tensor.diff(dim=axis)
    if bool((steps >= 0).all()) and not bool((steps == 1).all()):
        return tensor
    order = torch.randperm(tensor.shape[axis], generator=generator)
    if bool((order.diff() == 1).all()):
        order = order.roll(1)
    return tensor.index_select(axis, order.to(tensor.device))


def _other_flags(flags: Tensor, generator: torch.Generator) -> Tensor:
    if flags.numel() == 1:
        return ~flags
    directions = [to for to in (True, False) if bool((flags[..., 1:] != to).any())]
    if not directions:
        return flags
    to = directions[int(torch.randint(len(directions), (), generator=generator))]
    candidates = flags != to
    candidates[..., 0] = False
    flips = candidates & (torch.rand(flags.shape, generator=generator) < _FLIPPED).to(flags.device)
    changed = torch.where(flips if bool(flips.any()) else candidates, to, flags)
    uniform = (changed == to).all(-1, keepdim=True)
    return torch.where(uniform, flags, changed)


def _starts(dimension: Dimension, tensors: Mapping[str, Tensor]) -> Tensor:
    """Returns the rows of the example to begin at: all, or those that vectors of truth values select, of which one row
    must not select nothing."""
    selected = torch.ones(dimension.example, dtype=torch.bool)
    for name, _ in dimension.axes:
        if tensors[name].dtype == torch.bool and tensors[name].dim() == 1:
            selected &= tensors[name].cpu()
    return (selected if bool(selected.any()) else ~selected).nonzero()[:, 0]


def _rows(example: int, size: int, starts: Tensor, generator: torch.Generator) -> Tensor:
    """Returns the rows of the example to take: in its order, from a random one of the starts on, and again from the
    first."""
    if example == 0:
        return torch.zeros(size, dtype=torch.int64)
    start = starts[torch.randint(len(starts), (), generator=generator)]
    return (torch.arange(size) + start) % example


def _gathered(name: str, tensor: Tensor, dimensions: Mapping[str, Dimension], chosen: Mapping[str, Tensor]) -> Tensor:
    for dimension in dimensions.values():
        for of, axis in dimension.axes:
            if of == name:
                if tensor.shape[axis] == 0:
                    shape = list(tensor.shape)
                    shape[axis] = len(chosen[dimension.name])
                    tensor = tensor.new_zeros(shape)
                else:
                    tensor = tensor.index_select(axis, chosen[dimension.name].to(tensor.device))
    return tensor


def _values(
    rows: Tensor, example: Tensor, role: str, images: int | None, dimensions: Mapping[str, Dimension], sizes: Sizes,
    generator: torch.Generator,
) -> Tensor:  # fmt: skip
    if rows.numel() == 0 or rows.dtype == torch.bool:
        return rows.clone()
    if rows.is_floating_point() or rows.is_complex():
        return _numbers(rows, role, images, generator)
    if role == "batch_index" and images:
        return rows % images
    return _lengths(rows, example, dimensions, sizes)


def _numbers(rows: Tensor, role: str, images: int | None, generator: torch.Generator) -> Tensor:
    """Multiplies by one number below 1 and by others near 1: boxes remain boxes, probabilities are at most 1, and no
    two rows are equal, whose order would be undefined. Masks stay, and numbers that are integers change little."""
    if not rows.is_complex() and bool((rows == rows.round())[rows.isfinite()].all()) and bool((rows != 0).any()):
        changed = rows.clone()
        if not _is_flag(rows):
            changed = changed * (1 + _noise(rows, generator))
    else:
        factor = 0.5 + 0.4 * float(torch.rand((), generator=generator))
        changed = rows * (factor * (1 + _noise(rows, generator)))
    if role in _ROLES_WITH_IMAGE and rows.dim() == 2:
        index = rows[:, 0] if not images else rows[:, 0] % images
        changed[:, 0] = index
    return changed.to(rows.dtype)


def _is_flag(rows: Tensor) -> bool:
    """Says whether the tensor has at most three values, as masks of 0, 1 and -infinity do."""
    return rows.unique().numel() <= 3


def _noise(rows: Tensor, generator: torch.Generator) -> Tensor:
    noise = 0.01 * (2 * torch.rand(rows.shape, generator=generator) - 1)
    return noise.to(rows.device, rows.real.dtype if rows.is_complex() else rows.dtype)


def _lengths(rows: Tensor, example: Tensor, dimensions: Mapping[str, Dimension], sizes: Sizes) -> Tensor:
    """Scales integers whose maximum is the size of a dynamic dimension, such as lengths of sequences."""
    largest = int(example.max())
    for name, dimension in dimensions.items():
        size = sizes.get(name, dimension.example)
        if largest == dimension.example != size and largest > 1:
            return torch.div(rows * size + largest - 1, largest, rounding_mode="floor").to(rows.dtype)
    return rows.clone()


def _number_of_images(tensors: Mapping[str, Tensor], dimensions: Mapping[str, Dimension], sizes: Sizes) -> int | None:
    """Returns the smallest batch of images or feature maps. None if there are none."""
    batches = [shape_at(n, t, sizes, dimensions)[0] for n, t in tensors.items() if t.dim() >= 4]
    return min(batches, default=None)
