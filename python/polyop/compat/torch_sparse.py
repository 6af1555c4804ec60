# SPDX-License-Identifier: Apache-2.0
"""The functions of torch_sparse on indices [2, E] and values, with its names and arguments. Indices of results are
sorted by row, then by column.

Its class SparseTensor is not here: PyTorch Geometric does without it, by edge_index or torch.sparse tensors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.compat import torch_scatter
from polyop.compat._ranges import ranges

__version__ = "0.6.18"  # whose functions these are

__all__ = ["coalesce", "eye", "spadd", "spmm", "spspmm", "transpose"]


def __getattr__(name: str) -> object:
    if name in ("SparseStorage", "SparseTensor"):
        raise ImportError(
            f"polyop's torch_sparse has no {name}, only {', '.join(__all__)}; PyTorch Geometric 2.3 and newer use "
            "torch.sparse tensors instead: torch_geometric.transforms.ToSparseTensor(layout=torch.sparse_csr)"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _check(function: str, index: Tensor, m: int, n: int) -> None:
    if index.dim() != 2 or index.shape[0] != 2:
        raise ValueError(f"{function}: index: expected shape [2, E], got {list(index.shape)}")
    for row, (name, size) in zip(index, (("rows", m), ("columns", n)), strict=True):
        if row.numel() > 0 and not 0 <= int(row.min()) <= int(row.max()) < size:
            raise ValueError(
                f"{function}: index: expected {name} in [0, {size}), got {int(row.min())} to {int(row.max())}"
            )


def coalesce(index: Tensor, value: Tensor | None, m: int, n: int, op: str = "add") -> tuple[Tensor, Tensor | None]:
    """Sorts the elements of a matrix [m, n] and reduces those of the same index: "add", "mean", "min" or "max"."""
    _check("coalesce", index, m, n)
    numbers, group = (index[0] * n + index[1]).unique(return_inverse=True)
    result = torch.stack([numbers // max(n, 1), numbers % max(n, 1)])
    if value is None:
        return result, None
    return result, torch_scatter.scatter(value, group, 0, None, numbers.numel(), op)


def transpose(
    index: Tensor, value: Tensor | None, m: int, n: int, coalesced: bool = True
) -> tuple[Tensor, Tensor | None]:
    """The transpose of a matrix [m, n]."""
    swapped = index.flip(0)
    return coalesce(swapped, value, n, m) if coalesced else (swapped, value)


def spmm(index: Tensor, value: Tensor, m: int, n: int, matrix: Tensor) -> Tensor:
    """A matrix [m, n] times a dense one [..., n, K] or [n] -> [..., m, K]."""
    _check("spmm", index, m, n)
    matrix = matrix if matrix.dim() > 1 else matrix[:, None]
    if matrix.shape[-2] != n:
        raise ValueError(f"spmm: matrix: expected {n} rows, got {list(matrix.shape)}")
    products = matrix.index_select(-2, index[1]) * value[:, None]
    return products.new_zeros(*matrix.shape[:-2], m, matrix.shape[-1]).index_add(-2, index[0], products)


def spspmm(
    indexA: Tensor, valueA: Tensor, indexB: Tensor, valueB: Tensor, m: int, k: int, n: int,  # noqa: N803
    coalesced: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """A matrix [m, k] times a matrix [k, n]. `coalesced` has no effect: any order is accepted."""
    del coalesced
    _check("spspmm", indexA, m, k)
    _check("spspmm", indexB, k, n)
    order = indexB[0].argsort(stable=True)
    row, column, value = indexB[0, order], indexB[1, order], valueB[order]
    inner = indexA[1].contiguous()
    other, own = ranges(torch.searchsorted(row, inner), torch.searchsorted(row, inner, right=True))
    index = torch.stack([indexA[0, own], column[other]])
    result, product = coalesce(index, valueA[own] * value[other], m, n)
    assert product is not None
    return result, product


def spadd(
    indexA: Tensor, valueA: Tensor, indexB: Tensor, valueB: Tensor, m: int, n: int,  # noqa: N803
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """The sum of two matrices [m, n]."""
    return coalesce(torch.cat([indexA, indexB], 1), torch.cat([valueA, valueB]), m, n)


def eye(m: int, dtype: torch.dtype | None = None, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """The identity [m, m]."""
    diagonal = torch.arange(m, device=device)
    return torch.stack([diagonal, diagonal]), torch.ones(m, dtype=dtype, device=device)
