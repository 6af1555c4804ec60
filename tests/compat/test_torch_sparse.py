# SPDX-License-Identifier: Apache-2.0
"""torch_sparse, compared with dense matrices."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from polyop.compat import torch_sparse


def matrix(m: int, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Elements in any order, some of them twice."""
    generator = torch.Generator().manual_seed(seed)
    index = torch.stack([torch.randint(0, size, (25,), generator=generator) for size in (m, n)])
    return index, torch.rand(25, dtype=torch.double, generator=generator).requires_grad_()


def dense(index: Tensor, value: Tensor, m: int, n: int) -> Tensor:
    return torch.zeros(m, n, dtype=value.dtype).index_put(tuple(index), value, accumulate=True)


def check_sorted(index: Tensor, n: int) -> None:
    assert bool((torch.diff(index[0] * n + index[1]) > 0).all())


def test_products_and_sums() -> None:
    (a, of_a), (b, of_b), (c, of_c) = matrix(6, 8, 0), matrix(8, 5, 1), matrix(6, 8, 2)
    wide = dense(a, of_a, 6, 8)
    index, value = torch_sparse.spspmm(a, of_a, b, of_b, 6, 8, 5)
    check_sorted(index, 5)
    expected = wide @ dense(b, of_b, 8, 5)
    torch.testing.assert_close(dense(index, value, 6, 5), expected)
    for got, want in zip(
        torch.autograd.grad(dense(index, value, 6, 5).square().sum(), (of_a, of_b), retain_graph=True),
        torch.autograd.grad(expected.square().sum(), (of_a, of_b), retain_graph=True),
        strict=True,
    ):
        torch.testing.assert_close(got, want)
    for right in (torch.rand(8, 3, dtype=torch.double), torch.rand(2, 8, 3, dtype=torch.double)):
        torch.testing.assert_close(torch_sparse.spmm(a, of_a, 6, 8, right), wide @ right)
    index, value = torch_sparse.spadd(a, of_a, c, of_c, 6, 8)
    check_sorted(index, 8)
    torch.testing.assert_close(dense(index, value, 6, 8), wide + dense(c, of_c, 6, 8))
    index, value = torch_sparse.transpose(a, of_a, 6, 8)
    check_sorted(index, 6)
    torch.testing.assert_close(dense(index, value, 8, 6), wide.t())
    assert torch.equal(torch_sparse.transpose(a, of_a, 6, 8, coalesced=False)[0], a.flip(0))
    assert torch.equal(dense(*torch_sparse.eye(4), 4, 4), torch.eye(4))


@pytest.mark.parametrize(("op", "expected"), [("add", 6.0), ("mean", 3.0), ("min", 2.0), ("max", 4.0)])
def test_elements_of_the_same_index(op: str, expected: float) -> None:
    index = torch.tensor([[1, 0, 1], [2, 1, 2]])
    found, value = torch_sparse.coalesce(index, torch.tensor([2.0, 7.0, 4.0]), 2, 3, op)
    assert found.tolist() == [[0, 1], [1, 2]]
    assert value is not None
    assert value.tolist() == [7.0, expected]
    assert torch_sparse.coalesce(index, None, 2, 3)[1] is None
    empty = torch_sparse.coalesce(index[:, :0], torch.zeros(0), 0, 0)[0]
    assert empty.shape == (2, 0)


def test_what_is_missing_or_wrong() -> None:
    with pytest.raises(ImportError, match="polyop's torch_sparse has no SparseTensor, only coalesce, eye, spadd"):
        _ = torch_sparse.SparseTensor
    assert not hasattr(torch_sparse, "partition")
    with pytest.raises(ValueError, match=r"spmm: index: expected columns in \[0, 2\), got 0 to 2"):
        torch_sparse.spmm(torch.tensor([[0, 1], [0, 2]]), torch.ones(2), 2, 2, torch.ones(2, 1))
