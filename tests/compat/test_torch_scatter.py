# SPDX-License-Identifier: Apache-2.0
"""polyop.compat.torch_scatter against loops over elements. The package's own tests pass, too (docs/compat.md)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from polyop.compat import torch_scatter as ts

REDUCE: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda t: t.sum(0),
    "mul": lambda t: t.prod(0),
    "mean": lambda t: t.mean(0) if t.is_floating_point() else t.sum(0).div(t.shape[0], rounding_mode="floor"),
    "min": lambda t: t.min(0)[0],
    "max": lambda t: t.max(0)[0],
}
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64]


def naive(src: Tensor, index: Tensor, reduce: str, size: int) -> Tensor:
    """Reduces the rows of `src` that have the same index."""
    empty = 1 if reduce == "mul" else 0
    rows = [src[index == i] for i in range(size)]
    reduced = [REDUCE[reduce](r) if r.shape[0] else torch.full_like(src[0], empty) for r in rows]
    return torch.stack(reduced).to(src.dtype)


@pytest.mark.parametrize(("reduce", "dtype"), list(itertools.product(REDUCE, TYPES)))
def test_reductions(reduce: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    src = torch.randint(-4, 5, (40, 3, 5)).to(dtype)
    index = torch.randint(0, 9, (40,))
    index[index == 4] = 5  # a segment without rows
    ordered = index.sort()[0]
    expected, of_ordered = naive(src, index, reduce, 10), naive(src, ordered, reduce, 10)
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype.is_floating_point and dtype.itemsize == 2 else {}
    torch.testing.assert_close(ts.scatter(src, index, 0, dim_size=10, reduce=reduce), expected, **tolerance)
    moved = ts.scatter(src.movedim(0, 1), index, 1, dim_size=10, reduce=reduce)
    torch.testing.assert_close(moved.movedim(1, 0), expected, **tolerance)
    if reduce != "mul":
        indptr = torch.searchsorted(ordered, torch.arange(11))
        torch.testing.assert_close(ts.segment_csr(src, indptr, reduce=reduce), of_ordered, **tolerance)
        torch.testing.assert_close(ts.segment_coo(src, ordered, dim_size=10, reduce=reduce), of_ordered, **tolerance)


@pytest.mark.parametrize("function", [ts.scatter_min, ts.scatter_max])
def test_positions(function: Callable[..., tuple[Tensor, Tensor]]) -> None:
    src = torch.tensor([3.0, 1, 3, 1, 7])
    index = torch.tensor([0, 0, 0, 0, 2])
    values, position = function(src, index)
    assert values.tolist() == [1 if function is ts.scatter_min else 3, 0, 7]
    assert position.tolist() == [1 if function is ts.scatter_min else 0, 5, 4]


def first_extremes(src: Tensor, index: Tensor, out: Tensor, is_max: bool) -> tuple[Tensor, Tensor]:
    """torch_scatter's loop on the CPU: an element counts if it is larger than those before it, which NaN never is."""
    values, position = out.clone(), torch.full(out.shape, len(src))
    for at, i in enumerate(index.tolist()):
        if src[at] > values[i] if is_max else src[at] < values[i]:
            values[i], position[i] = src[at], at
    return values, position


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("reduce", ["min", "max"])
def test_nan_and_infinity_among_the_values(reduce: str, dtype: torch.dtype) -> None:
    """All functions agree, with and without a gradient, which belongs to the elements that were found."""
    nan, inf, is_max = torch.nan, torch.inf, reduce == "max"
    groups = [
        [nan, 1, 2],
        [3, nan, 3],
        [nan, nan],
        [inf, nan, 1],
        [-inf, 4],
        [-inf, -inf],
        [inf, inf, nan],
        [],
        [nan, 0],
    ]
    src = torch.tensor([value for group in groups for value in group], dtype=dtype)
    index = torch.tensor([i for i, group in enumerate(groups) for _ in group])
    indptr = torch.searchsorted(index, torch.arange(len(groups) + 1))
    best, position = first_extremes(src, index, torch.full((9,), -inf if is_max else inf, dtype=dtype), is_max)
    best[position == len(src)] = 0
    pairs: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
        "scatter": lambda t: getattr(ts, f"scatter_{reduce}")(t, index),
        "coo": lambda t: getattr(ts, f"segment_{reduce}_coo")(t, index),
        "csr": lambda t: getattr(ts, f"segment_{reduce}_csr")(t, indptr),
    }
    values: dict[str, Callable[[Tensor], Tensor]] = {
        "scatter": lambda t: ts.scatter(t, index, reduce=reduce),
        "coo": lambda t: ts.segment_coo(t, index, reduce=reduce),
        "csr": lambda t: ts.segment_csr(t, indptr, reduce=reduce),
        "scripted": lambda t: torch.jit.script(ts.scatter)(t, index, reduce=reduce),
        "traced": lambda t: torch.jit.trace(
            lambda x: ts.scatter(x, index, reduce=reduce), torch.rand(len(src)).to(dtype)
        )(t),
    }
    expected = torch.zeros_like(src)
    expected[position[position < len(src)]] = 1
    for name, function in pairs.items():
        found, at = function(src)
        assert torch.equal(found, best), name
        assert torch.equal(at, position), name
    for name, of_values in values.items():
        assert torch.equal(of_values(src), best), name
        leaf = src.clone().requires_grad_()
        found = of_values(leaf)
        assert torch.equal(found.detach(), best), name
        if name != "traced":  # of values without a gradient
            assert torch.equal(torch.autograd.grad(found.sum(), leaf)[0], expected), name
    out = torch.tensor([5, nan, 1, 0, nan, -inf, 2, 7, 0], dtype=dtype)
    reduced, at = getattr(ts, f"scatter_{reduce}")(src, index, out=(given := out.clone()))
    expected_out, expected_at = first_extremes(src, index, out, is_max)
    assert reduced is given
    torch.testing.assert_close(reduced, expected_out, equal_nan=True, rtol=0, atol=0)
    assert torch.equal(at, expected_at)
    reduced = ts.scatter(src, index, out=out.clone(), reduce=reduce)
    torch.testing.assert_close(reduced, expected_out, equal_nan=True, rtol=0, atol=0)


def test_extremes_of_integers_at_their_limits() -> None:
    for dtype in (torch.uint8, torch.int8, torch.int32, torch.int64):
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        src = torch.tensor([high, low, low + 1, high - 1], dtype=dtype)
        assert ts.scatter(src, torch.tensor([0, 0, 2, 2]), reduce="max").tolist() == [high, 0, high - 1]
        assert ts.scatter(src, torch.tensor([0, 0, 2, 2]), reduce="min").tolist() == [low, 0, low + 1]


@pytest.mark.parametrize("reduce", REDUCE)
def test_gradients(reduce: str) -> None:
    torch.manual_seed(0)
    src = torch.rand(12, 2, dtype=torch.float64, requires_grad=True)
    index = torch.randint(0, 4, (12,))
    assert torch.autograd.gradcheck(lambda t: ts.scatter(t, index, 0, dim_size=6, reduce=reduce), src)
    if reduce != "mul":
        indptr = torch.tensor([1, 4, 4, 9])
        assert torch.autograd.gradcheck(lambda t: ts.segment_csr(t, indptr, reduce=reduce), src)


def test_gathers_undo_segments() -> None:
    src = torch.rand(3, 4)
    indptr = torch.tensor([0, 2, 2, 5])
    expected = src[[0, 0, 2, 2, 2]]
    assert torch.equal(ts.gather_csr(src, indptr), expected)
    assert torch.equal(ts.gather_coo(src, torch.tensor([0, 0, 2, 2, 2])), expected)


def test_composites() -> None:
    torch.manual_seed(0)
    src, index = torch.randn(30) * 5, torch.randint(0, 4, (30,))
    with_nan = ts.scatter_logsumexp(torch.cat([src, torch.tensor([torch.nan])]), torch.cat([index, index[:1]]))
    torch.testing.assert_close(with_nan, ts.scatter_logsumexp(src, index))
    for i in range(4):
        part = src[index == i]
        torch.testing.assert_close(ts.scatter_softmax(src, index)[index == i], part.softmax(0))
        torch.testing.assert_close(ts.scatter_log_softmax(src, index)[index == i], part.log_softmax(0))
        torch.testing.assert_close(ts.scatter_logsumexp(src, index)[i], part.logsumexp(0))
        torch.testing.assert_close(ts.scatter_std(src, index)[i], part.std())


def test_out_takes_part() -> None:
    src, index = torch.tensor([1.0, 5.0]), torch.tensor([0, 0])
    assert ts.scatter(src, index, out=torch.tensor([10.0])).tolist() == [16]
    values, position = ts.scatter_max(src, index, out=torch.tensor([10.0]))
    assert (values.tolist(), position.tolist()) == ([10], [2])


def test_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"^scatter: expected reduce 'sum', .*, got 'median'"):
        ts.scatter(torch.rand(3), torch.zeros(3, dtype=torch.long), reduce="median")
    with pytest.raises(RuntimeError, match="index"):
        ts.scatter(torch.rand(3), torch.tensor([0, 1, 9]), dim_size=3)
    with pytest.raises(RuntimeError, match="polyop::segment_csr"):
        ts.segment_csr(torch.rand(3), torch.tensor([0, 9]))
