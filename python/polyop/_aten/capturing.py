# SPDX-License-Identifier: Apache-2.0
"""Functions and conditions that stop an export while PyTorch captures the program, because they depend on values.

During the capture these functions replace PyTorch's. They compute the same, without checks of values; what only raises
an error for bad input is missing from an exported file anyway. Conditions on buffers and on sizes take one branch.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv, free_unbacked_symbols
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from polyop._aten import fft, numbers, packed, pooling, ranges, resampling
from polyop._aten.checks import value_of_condition
from polyop._aten.ctc import ctc_loss
from polyop._aten.integers import integer_of, length_of
from polyop._aten.linalg import geqrf, lstsq
from polyop._aten.linear import multi_dot
from polyop._aten.patches import replaced
from polyop._aten.quantized import fake_quantize, grouped_mm
from polyop._aten.shapes import kron
from polyop._aten.statistics import histogram, histogram_count, histogramdd, histogramdd_bin_edges


def _gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    if not isinstance(var, Tensor):
        var = torch.full_like(input, var)
    elif var.dim() == input.dim() - 1 and tuple(input.shape[:-1]) == tuple(var.shape):
        var = var.unsqueeze(-1)
    var = var.clamp(min=eps)
    loss = (torch.log(var) + (input - target) ** 2 / var) / 2
    if full:
        loss = loss + math.log(2 * math.pi) / 2
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    rows = input.reshape(1, -1) if input.dim() < 2 else input
    real = rows.dtype.to_real()
    weights = fweights.to(real) if fweights is not None else None
    if aweights is not None:
        weights = aweights.to(real) * (1 if weights is None else weights)
    if weights is None:
        total: Any = rows.shape[1]
        mean = rows.mean(1, keepdim=True)
        scaled = centred = rows - mean
        norm: Any = max(total - correction, 0) if isinstance(total, int) else total - correction
    else:
        total = weights.sum()
        mean = (rows * weights).sum(1, keepdim=True) / total
        centred = rows - mean
        scaled = centred * weights
        share: Any = 1 if aweights is None else (weights * aweights).sum() / total
        norm = (total - correction * share).clamp(min=0)
    return (torch.matmul(scaled, centred.mH if rows.dtype.is_complex else centred.mT) / norm).squeeze()


def _corrcoef(input: Tensor) -> Tensor:
    covariance = _cov(input)
    if covariance.dim() == 0:
        return covariance / covariance
    variance = covariance.diagonal()
    deviation = (variance.real if variance.dtype.is_complex else variance).sqrt()
    result = covariance / deviation.unsqueeze(1) / deviation
    if not result.dtype.is_complex:
        return result.clamp(-1, 1)
    return torch.complex(result.real.clamp(-1, 1), result.imag.clamp(-1, 1))


def _equal(input: Tensor, other: Tensor) -> Any:
    if input.dim() != other.dim() or any(a != b for a, b in zip(input.shape, other.shape, strict=True)):
        return False
    return (input == other).all()


def _allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    return torch.isclose(input, other, rtol, atol, equal_nan).all()


def _have_constant_sizes(*tensors: Any) -> bool:
    """Says whether PyTorch can compute the sizes of an operator's results although it has no fake kernel for it."""
    return all(isinstance(size, int) for tensor in tensors if isinstance(tensor, Tensor) for size in tensor.shape)


def _geqrf(input: Tensor) -> Any:
    if input.dtype.is_complex or _have_constant_sizes(input):
        return NotImplemented
    return torch.return_types.geqrf(geqrf(input))


def _histogram(input: Tensor, bins: Any, *, weight: Tensor | None = None, density: bool = False, **limits: Any) -> Any:
    if _have_constant_sizes(input, bins, weight):
        return NotImplemented
    function: Any = histogram if isinstance(bins, Tensor) else histogram_count
    return torch.return_types.histogram(function(input, bins, weight=weight, density=density, **limits))


def _histogramdd(
    input: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    bins = [bins] * input.shape[-1] if isinstance(bins, int) else list(bins)
    if _have_constant_sizes(input, weight, *bins):
        return NotImplemented
    edges = bins if isinstance(bins[0], Tensor) else histogramdd_bin_edges(input, bins, range=range)
    return torch.return_types.histogramdd((histogramdd(input, edges, weight=weight, density=density), tuple(edges)))


def _narrow(input: Tensor, dim: int, start: Any, length: int) -> Any:
    if not isinstance(start, Tensor):
        return NotImplemented
    start = torch.where(start < 0, start + input.shape[dim], start)
    return input.index_select(dim, start + torch.arange(length, device=input.device))


def _pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    lengths = [sequence.shape[0] for sequence in sequences]
    if all(isinstance(length, int) for length in lengths):
        return NotImplemented
    longest = functools.reduce(torch.sym_max, lengths)
    padded = []
    for sequence, length in zip(sequences, lengths, strict=True):
        ends = [0, longest - length] if padding_side == "right" else [longest - length, 0]
        padded.append(functional.pad(sequence, [0, 0] * (sequence.dim() - 1) + ends, value=padding_value))
    return torch.stack(padded, 0 if batch_first else 1)


def _one_hot(tensor: Tensor, num_classes: int = -1) -> Any:
    if num_classes != -1:
        return NotImplemented
    classes = (tensor.max() + 1).item()
    torch._check(classes >= 0)
    return (tensor.unsqueeze(-1) == torch.arange(classes, device=tensor.device)).to(torch.int64)


def _bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Any:
    indices, last = input.to(torch.int64), minlength - 1
    # ONNX Runtime finds the maximum of 32-bit integers several times as fast. An index that wraps around is not in the
    # range of the result, so that it is an error of the file.
    narrow = input.to(torch.int32)
    if not (isinstance(input.shape[0], int) and input.shape[0] > 0):  # the maximum of no elements is not defined
        narrow = torch.cat([narrow, torch.full([1], -1, dtype=torch.int32, device=input.device)])
    largest = narrow.max().to(torch.int64).clamp(min=last)
    bins: Any = (largest + 1).item()
    torch._check(bins >= 0)
    if weights is None:
        counted = torch.ones_like(indices)
    else:
        counted = weights if weights.dtype == torch.float32 else weights.to(torch.float64)
    return torch.zeros([bins], dtype=counted.dtype, device=input.device).scatter_add(0, indices, counted)


def _fake_quantize(input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Any:
    if all(isinstance(size, int) for size in input.shape) and not isinstance(scale, Tensor):
        return NotImplemented  # PyTorch's operator has no fake kernel for sizes that are not constant
    return fake_quantize(input, scale, zero_point, quant_min, quant_max)


def _is_true(condition: Tensor) -> bool:
    """Replaces bool(condition)."""
    try:
        return Tensor.__bool__(condition)
    except (GuardOnDataDependentSymNode, DataDependentOutputException):
        value = value_of_condition()
        if value is None:
            raise
        return value


def _number(value: Tensor) -> Any:
    number = numbers.integer_in(value)
    return NotImplemented if number is None else number


def _tensor(data: Any, **given: Any) -> Any:
    """Creates a tensor of a size, or of a number computed from sizes, which PyTorch's functions take for a constant."""
    if not isinstance(data, (torch.SymInt, torch.SymFloat)):
        return NotImplemented
    number: Any = data
    result = torch.full((), number, **given)
    return numbers.noted(result, (data, 1)) if result.dtype == torch.int64 else result


def _linear_cross_entropy(*args: Any, options: Any = None, **given: Any) -> Any:
    """Computes the loss of all rows at once: the parts in which PyTorch computes it are a matter of memory."""
    return NotImplemented if options is None else functional.linear_cross_entropy(*args, **given)


_REPLACED: dict[Any, Callable[..., Any]] = {
    functional.gaussian_nll_loss: _gaussian_nll_loss,
    torch.cov: _cov,
    Tensor.cov: _cov,
    torch.corrcoef: _corrcoef,
    Tensor.corrcoef: _corrcoef,
    torch.equal: _equal,
    Tensor.equal: _equal,
    torch.allclose: _allclose,
    Tensor.allclose: _allclose,
    torch.geqrf: _geqrf,
    Tensor.geqrf: _geqrf,
    torch.histogram: _histogram,
    Tensor.histogram: _histogram,
    torch.histogramdd: _histogramdd,
    torch.narrow: _narrow,
    Tensor.narrow: _narrow,
    functional.one_hot: _one_hot,
    torch._C._nn.pad_sequence: _pad_sequence,
    torch.bincount: _bincount,
    Tensor.bincount: _bincount,
    functional.ctc_loss: ctc_loss,
    torch.fake_quantize_per_tensor_affine: _fake_quantize,
    torch._grouped_mm: grouped_mm,  # its fake kernel refuses float32
    torch.linalg.lstsq: lstsq,
    torch.linalg.multi_dot: multi_dot,
    torch.kron: kron,
    Tensor.kron: kron,
    Tensor.__bool__: _is_true,
    Tensor.__int__: integer_of,
    Tensor.__index__: _number,
    Tensor.item: _number,
    torch.tensor: _tensor,
    torch.as_tensor: _tensor,
    Tensor.__len__: length_of,
    **fft.REPLACED,
    **packed.REPLACED,
    **pooling.REPLACED,
    **ranges.REPLACED,
    **resampling.REPLACED,
}
if hasattr(functional, "grouped_mm"):
    _REPLACED[functional.grouped_mm] = grouped_mm
if hasattr(functional, "linear_cross_entropy"):
    _REPLACED[functional.linear_cross_entropy] = _linear_cross_entropy


_OF_INTEGERS = (functional.pad, Tensor.__getitem__)


class Capturing(TorchFunctionMode):
    """In a `with` block, calls these functions instead of PyTorch's."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        replacement = _REPLACED.get(func)
        if replacement is not None:
            result = replacement(*args, **(kwargs or {}))
            if result is not NotImplemented:
                return result
        number = numbers.of_sizes(func, args, kwargs or {})
        if func in _OF_INTEGERS:
            args, kwargs = (numbers.without_tensors(part) for part in (tuple(args), kwargs))
        result = func(*args, **(kwargs or {}))
        if func in (torch.arange, torch.tensor):
            _know_list(result, func, args, kwargs or {})
        return result if number is None else numbers.noted(result, number)


def _know_list(constant: Tensor, create: Callable[..., Tensor], args: Any, kwargs: dict[str, Any]) -> None:
    """Lets `tolist` of a small constant return its numbers: PyTorch's depends on the values of a tensor."""
    if any(isinstance(leaf, (Tensor, torch.SymInt, torch.SymFloat)) for leaf in pytree.tree_leaves((args, kwargs))):
        return
    if constant.numel() > _MAX_KNOWN:
        return
    with _disable_current_modes():
        values = create(*args, **{**kwargs, "device": "cpu"}).tolist()
    version = constant._version

    def tolist() -> Any:
        changed = constant._version != version
        return type(constant).tolist(constant) if changed else copy.deepcopy(values)

    constant.tolist = tolist  # type: ignore[method-assign]


_MAX_KNOWN = 64
"""The most elements of a buffer whose values are known."""


@contextmanager
def known_buffers(model: torch.nn.Module) -> Iterator[None]:
    """In a `with` block, a Python condition can depend on an element of a small buffer of the model.

    A file has the values of buffers as constants. PyTorch computes with the values of small constants while it captures
    a program, but does not take buffers for them.
    """
    known = {id(buffer) for buffer in model.buffers() if buffer.numel() <= _MAX_KNOWN}

    def from_tensor(
        convert: Callable[..., Any], mode: FakeTensorMode, tensor: Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        fake = convert(mode, tensor, *args, **kwargs)
        if id(tensor) in known and fake.constant is None:
            fake.constant = tensor.detach().clone()  # the program may write to it
            mode.fake_tensor_converter.add_constant_storage_mapping(fake)
        return fake

    with replaced({"torch._subclasses.fake_tensor:FakeTensorMode.from_tensor": from_tensor}):
        yield


@contextmanager
def sizes_above_one(note: Callable[[], None]) -> Iterator[None]:
    """In a `with` block, a Python condition on sizes that depend on values of tensors takes the branch for sizes of 2
    or more, if that is the same for all of them. PyTorch does so for the conditions in its own functions, and stops at
    others. Calls `note` then.
    """

    def evaluate_expr(evaluate: Callable[..., Any], env: ShapeEnv, condition: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return evaluate(env, condition, *args, **kwargs)
        except GuardOnDataDependentSymNode:
            sizes = free_unbacked_symbols(condition) <= env.size_like
            if (value := value_of_condition()) is not None:
                return value
            assumed = env._maybe_evaluate_static(condition, size_oblivious=True) if sizes else None
            if assumed is None:
                raise
        note()
        return assumed

    with replaced({"torch.fx.experimental.symbolic_shapes:ShapeEnv.evaluate_expr": evaluate_expr}):
        yield
