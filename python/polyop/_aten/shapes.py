# SPDX-License-Identifier: Apache-2.0
"""Operators that copy, pad, resize, or select elements, and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from polyop._aten.indexing import found_indices, repeat_interleave
from polyop._aten.table import REFUSED, REFUSED_BY_OPENVINO, WRONG, decomposes

aten = torch.ops.aten


@decomposes("aten::copy", without=WRONG, when="a source of another shape or type")
def copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Any:
    if tuple(self.shape) == tuple(src.shape) and self.dtype == src.dtype:
        return NotImplemented
    return src.to(self.dtype).expand(self.shape).clone()


@decomposes("aten::empty_permuted")
def empty_permuted(size: Sequence[int], physical_layout: Any, *, dtype: Any = None, **how: Any) -> Any:
    return torch.zeros(size, dtype=dtype or torch.get_default_dtype(), device=how.get("device"))


@decomposes("aten::resize")
def resize(self: Tensor, size: Sequence[int], *, memory_format: Any = None) -> Any:
    elements = 1
    for extent in size:
        elements = elements * extent
    flat, given = self.reshape(-1), self.numel()
    if elements > given:  # PyTorch does not initialise the others
        flat = torch.cat([flat, torch.zeros([elements - given], dtype=self.dtype, device=self.device)])
    return flat[:elements].reshape(size)


def replication_pad(self: Tensor, padding: Sequence[int]) -> Any:
    """Also an element that the padding removes is repeated at the other end, unlike with ONNX's Pad."""
    if not all(isinstance(p, int) for p in padding) or min(padding) >= 0:
        return NotImplemented
    for axis, (low, high) in enumerate(zip(padding[::2], padding[1::2], strict=True), 1):
        size = self.shape[-axis]
        at = (torch.arange(size + low + high, device=self.device) - low).clamp(0, size - 1)
        self = self.index_select(-axis, at)
    return self


for _axes in (1, 2, 3):
    decomposes(f"aten::replication_pad{_axes}d", when="negative padding")(replication_pad)


def _split(self: Tensor, split_size: Any, dim: int = 0) -> Any:
    size = self.shape[dim]
    if isinstance(split_size, int):
        return NotImplemented
    count = int((size + split_size - 1) // split_size)
    parts = [self.narrow(dim, i * split_size, split_size) for i in range(count - 1)]
    done = (count - 1) * split_size
    return [*parts, self.narrow(dim, done, size - done)]


for _name in ("split", "unsafe_split"):
    decomposes(f"aten::{_name}.Tensor", when="parts whose size is not constant")(_split)


@decomposes("aten::pad", when="replicate, negative padding")
def pad(self: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    return replication_pad(self, pad) if mode == "replicate" else NotImplemented


def _squeeze(self: Tensor, dim: Any) -> Any:
    """Removes dimensions that have one element in the example. At run time Reshape refuses another size.

    PyTorch keeps the others, which ONNX's Squeeze refuses.
    """
    dims = {axis % self.dim() for axis in ([dim] if isinstance(dim, int) else dim)} if self.dim() else set()
    removed = {axis for axis in dims if example(self.shape[axis]) == 1}
    if removed == dims and all(isinstance(self.shape[axis], int) for axis in removed):
        return NotImplemented
    if not removed:
        return self.clone()
    return self.reshape([size for axis, size in enumerate(self.shape) if axis not in removed])


def example(size: Any) -> int | None:
    """Returns a size of the example's; None if it depends on values."""
    return size if isinstance(size, int) else size.node.hint


for _name in ("dim", "dims"):
    decomposes(f"aten::squeeze.{_name}", without=WRONG, when="a size that is not 1, or dynamic and 1 in the example")(
        _squeeze
    )


@decomposes("aten::squeeze", without=REFUSED_BY_OPENVINO, when="a size that is not constant")
def squeeze(self: Tensor) -> Any:
    """Names the axes: ONNX's Squeeze without axes also removes dynamic ones that are 1, and OpenVINO refuses it."""
    if all(isinstance(size, int) for size in self.shape):
        return NotImplemented
    axes = [axis for axis, size in enumerate(self.shape) if isinstance(size, int) and size == 1]
    return aten.squeeze.dims(self, axes) if axes else self.clone()


@decomposes("prims::view_of")
def view_of(a: Tensor) -> Any:
    return a.clone()


def _triangle(lower: bool) -> Callable[..., Any]:
    def call(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, **how: Any) -> Any:
        def border(at: Any) -> Any:
            return max(0, min(at, col))

        total = sum(border(i + 1 + offset) if lower else col - border(i + offset) for i in range(row))
        rows = torch.arange(row, device=device)
        first = torch.zeros_like(rows) if lower else (rows + offset).clamp(0, col)
        last = (rows + (offset + 1)).clamp(0, col) if lower else torch.full_like(rows, col)
        counts = last - first
        which = repeat_interleave(counts, output_size=total)
        starts = counts.cumsum(0) - counts - first  # of the elements in the list, less the column of the first one
        column = torch.arange(total, device=device) - starts.index_select(0, which)
        return torch.stack([which, column]).to(dtype or torch.int64)

    return call


for _name in ("tril", "triu"):
    decomposes(f"aten::{_name}_indices")(_triangle(_name == "tril"))


@decomposes("aten::im2col", without=REFUSED, when="an empty tensor, or sizes that are not constant")
def im2col(
    self: Tensor, kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> Any:
    if all(isinstance(size, int) and size > 0 for size in self.shape):
        return NotImplemented
    blocks = aten.constant_pad_nd(self, [pad for pad in reversed(padding) for _ in range(2)], 0.0)
    # Each axis becomes two: the element of the kernel, and the position of the kernel.
    for axis, (kernel, step, jump) in zip((-2, -1), zip(kernel_size, dilation, stride, strict=True), strict=True):
        size = blocks.shape[axis]
        positions = (size - step * (kernel - 1) - 1) // jump + 1
        at = torch.arange(kernel, device=self.device).unsqueeze(1) * step
        at = at + torch.arange(positions, device=self.device) * jump
        rest = blocks.shape[axis + 1 :] if axis == -2 else []
        flat = blocks.index_select(axis, at.reshape(-1))
        blocks = flat.reshape([*blocks.shape[:axis], kernel, positions, *rest])
    blocks = blocks.transpose(-2, -3)  # [..., C, rows and columns of the kernel, rows and columns of positions]
    rows, columns = kernel_size
    return blocks.reshape([*self.shape[:-3], self.shape[-3] * rows * columns, blocks.shape[-2] * blocks.shape[-1]])


@decomposes("aten::convolution", when="padding that is not constant, or an output padding as large as the stride")
def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[Any],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[Any], groups: int,
) -> Any:  # fmt: skip
    if transposed:
        return _transposed_convolution(input, weight, bias, stride, padding, dilation, output_padding, groups)
    if all(isinstance(pad, int) for pad in padding):
        return NotImplemented
    padded = aten.constant_pad_nd(input, [pad for pad in reversed(padding) for _ in range(2)], 0.0)
    none = [0] * len(padding)
    return aten.convolution(padded, weight, bias, stride, none, dilation, False, output_padding, groups)


def _transposed_convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[Any],
    dilation: Sequence[int], output_padding: Sequence[Any], groups: int,
) -> Any:  # fmt: skip
    """ONNX's paddings are constants, and ONNX Runtime refuses an output padding as large as the stride.

    A result of the largest output padding is cut. If that is too large, the whole result is computed, and cut or padded
    with zeros.
    """
    most = [
        more if isinstance(more, int) else max(step, jump) - 1
        for more, step, jump in zip(output_padding, stride, dilation, strict=True)
    ]
    if all(isinstance(pad, int) for pad in padding) and all(p < step for p, step in zip(most, stride, strict=True)):
        if all(isinstance(more, int) for more in output_padding):
            return NotImplemented
        result = aten.convolution(input, weight, bias, stride, padding, dilation, True, most, groups)
        for axis, (more, largest) in enumerate(zip(output_padding, most, strict=True), -len(stride)):
            if not isinstance(more, int):
                result = result.narrow(axis, 0, result.shape[axis] + (more - largest))
        return result
    none = [0] * len(stride)
    whole = aten.convolution(input, weight, None, stride, none, dilation, True, none, groups)
    ends = [(-pad, more - pad) for pad, more in zip(padding, output_padding, strict=True)]
    result = aten.constant_pad_nd(whole, [end for pair in reversed(ends) for end in pair], 0.0)
    return result if bias is None else result + bias.reshape([-1] + [1] * len(stride))


@decomposes("aten::constant_pad_nd", when="complex numbers")
def constant_pad_nd(self: Tensor, pad: Sequence[int], value: Any = 0) -> Any:
    if not self.dtype.is_complex or value != 0:
        return NotImplemented
    return torch.view_as_complex(aten.constant_pad_nd(torch.view_as_real(self), [0, 0, *pad], 0.0))


@decomposes("aten::_conj_physical", when="complex numbers")
def conj_physical(self: Tensor) -> Any:
    if not self.dtype.is_complex:
        return NotImplemented
    parts = torch.view_as_real(self)
    return torch.view_as_complex(torch.stack([parts.select(-1, 0), -parts.select(-1, 1)], -1))


@decomposes("aten::nonzero_static")
def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Any:
    flat = (self != 0).reshape(-1)
    rank = flat.to(torch.int64).cumsum(0) - 1
    kept = flat & (rank < size)
    # The others are written to a last element, which is dropped.
    slot = torch.where(kept, rank, torch.full_like(rank, size))
    position = torch.arange(flat.shape[0], device=self.device)
    found = torch.full([size + 1], -1, dtype=torch.int64, device=self.device).scatter(0, slot, position)[:size]
    exists = found >= 0
    if self.dim() == 0 or any(isinstance(extent, int) and extent == 0 for extent in self.shape):
        return torch.full([size, self.dim()], fill_value, dtype=torch.int64, device=self.device)
    columns: list[Tensor] = []
    for extent in reversed(self.shape):
        line = torch.div(found, extent, rounding_mode="floor")
        columns.insert(0, torch.where(exists, found - line * extent, torch.full_like(found, fill_value)))
        found = line
    return torch.stack(columns, 1)


_COMPARED = frozenset((torch.bool, torch.uint8, torch.int32, torch.int64, torch.float32, torch.float64))


@decomposes("aten::kron", without=WRONG, when="sizes that are not constant")
def kron(input: Tensor, other: Tensor) -> Any:
    rank = max(input.dim(), other.dim())
    a, b = (x.reshape([1] * (rank - x.dim()) + list(x.shape)) for x in (input, other))
    if all(isinstance(size, int) for size in (*a.shape, *b.shape)):
        return NotImplemented
    a, b = a.reshape([n for size in a.shape for n in (size, 1)]), b.reshape([n for size in b.shape for n in (1, size)])
    sizes = [m * n for m, n in zip(a.shape[::2], b.shape[1::2], strict=True)]
    return (a * b).reshape(sizes)


@decomposes("aten::unique_consecutive", nodes=("find_indices",))
def unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    if dim is not None and self.dim() > 0:
        return _unique_slices(self, dim, return_inverse, return_counts)
    flat = self.reshape(-1)
    wide = torch.float32 if self.dtype.is_floating_point else torch.int32
    at = found_indices(flat if self.dtype in _COMPARED else flat.to(wide), "run_starts")
    inverse = counts = torch.zeros([0], dtype=torch.int64, device=self.device)
    if return_inverse:
        marks = torch.zeros_like(flat, dtype=torch.int64)
        marks = torch.scatter(marks, 0, at, torch.ones_like(at))
        inverse = (marks.cumsum(0) - 1).reshape(self.shape)
    if return_counts:
        end = torch.full([1], flat.shape[0], dtype=torch.int64, device=self.device)
        counts = torch.cat([at[1:], end]) - at
    return torch.gather(flat, 0, at), inverse, counts


def _unique_slices(self: Tensor, dim: int, return_inverse: bool, return_counts: bool) -> Any:
    """Numbers the runs of equal slices, and removes those of equal numbers."""
    rows = self.movedim(dim, 0).flatten(1) if self.dim() > 1 else self.unsqueeze(1)
    changes = (rows[1:] != rows[:-1]).any(1).to(torch.int64)
    first = torch.zeros([1], dtype=torch.int64, device=self.device)
    run = torch.cat([first, changes]).cumsum(0).narrow(0, 0, rows.shape[0])
    at = found_indices(run, "run_starts")
    none = torch.zeros([0], dtype=torch.int64, device=self.device)
    counts = none
    if return_counts:
        end = torch.full([1], 1, dtype=torch.int64, device=self.device) * rows.shape[0]
        counts = torch.cat([at[1:], end]) - at
    return self.index_select(dim, at), run if return_inverse else none, counts


@decomposes("aten::roll", when="shifts that are sizes, or an empty tensor")
def roll(self: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    if any(isinstance(size, int) and size == 0 for size in self.shape):
        return self.clone()
    if not dims or all(isinstance(shift, int) for shift in shifts):
        return NotImplemented
    for shift, dim in zip(shifts, dims, strict=True):
        size = self.shape[dim]
        at = torch.arange(size, device=self.device) - shift % size
        self = self.index_select(dim, torch.where(at < 0, at + size, at))
    return self


@decomposes("aten::sort", without=REFUSED, when="booleans and integers of 8 or 16 bits")
def sort(self: Tensor, dim: int = -1, descending: bool = False) -> Any:
    if self.dtype not in (torch.bool, torch.uint8, torch.int8, torch.int16):
        return NotImplemented
    values, index = aten.sort.default(self.to(torch.int32), dim, descending)
    return values.to(self.dtype), index


@decomposes("aten::pixel_shuffle", without=REFUSED, when="integers and booleans")
def pixel_shuffle(self: Tensor, upscale_factor: int) -> Any:
    if self.dtype.is_floating_point or self.dtype.is_complex:
        return NotImplemented
    blocks = self.unflatten(-3, [-1, upscale_factor, upscale_factor])
    rank = blocks.dim()  # [..., channel, row in a block, column in a block, row, column]
    return blocks.permute([*range(rank - 4), rank - 2, rank - 4, rank - 1, rank - 3]).flatten(-4, -3).flatten(-2)


def _mixed(operation: Callable[..., Any]) -> Callable[..., Any]:
    """An alias of an operator that promotes types, which the exporter forgets for the alias."""

    def call(self: Tensor, other: Any, **given: Any) -> Any:
        same = isinstance(other, Tensor) and self.dtype == other.dtype
        return NotImplemented if same else operation(self, other, **given)

    return call


_ALIASES: dict[str, Any] = {
    "divide": torch.div, "true_divide": torch.div, "multiply": torch.mul, "subtract": torch.sub, "greater": torch.gt,
    "greater_equal": torch.ge, "less": torch.lt, "less_equal": torch.le,
}  # fmt: skip
for _alias, _operation in _ALIASES.items():
    decomposes(f"aten::{_alias}.Tensor", without=REFUSED, when="operands of two types")(_mixed(_operation))


@decomposes("aten::uniform")
def uniform(self: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None, **named: Any) -> Any:
    low, high = named.get("from", low), named.get("to", high)
    return torch.rand_like(self) * (high - low) + low


@decomposes("aten::native_dropout", without=REFUSED, when="p=1")
def native_dropout(input: Tensor, p: float, train: bool | None) -> Any:
    if p != 1 or not train:
        return NotImplemented
    return torch.zeros_like(input), torch.zeros_like(input, dtype=torch.bool)


@decomposes("aten::rrelu_with_noise_functional")
def rrelu(
    self: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Any:
    if not training:
        return torch.where(self >= 0, self, self * ((lower + upper) / 2)), noise.clone()
    slope = torch.rand_like(self) * (upper - lower) + lower
    slope = torch.where(self > 0, torch.ones_like(self), slope)
    return self * slope, slope


@decomposes("aten::unfold_backward", without=REFUSED)
def unfold_backward(grad_in: Tensor, input_sizes: Sequence[int], dim: int, size: int, step: int) -> Any:
    """Adds overlapping frames, as torch.istft does."""
    if not isinstance(size, int) or not isinstance(step, int):
        return NotImplemented
    rank = len(input_sizes)
    if rank == 0:
        return grad_in.reshape(())
    dim = dim % rank
    frames = grad_in.movedim(dim, -2)  # [..., frame, element]
    count, length = frames.shape[-2], input_sizes[dim]
    parts = -(-size // step)
    # Part j of frame i is added to block i + j of the output.
    cells = aten.constant_pad_nd(frames, [0, parts * step - size], 0).unflatten(-1, [parts, step])
    total = None
    for j in range(parts):
        shifted = aten.constant_pad_nd(cells.select(-2, j), [0, 0, j, parts - 1 - j], 0)
        total = shifted if total is None else total + shifted
    assert total is not None  # a frame has at least one element
    line = total.flatten(-2)
    return aten.constant_pad_nd(line, [0, length - (count + parts - 1) * step], 0).movedim(-1, dim)


@decomposes("aten::_assert_tensor_metadata")
def assert_tensor_metadata(a: Tensor, *args: Any, **given: Any) -> None:
    """A check of the capture, which has no result."""
