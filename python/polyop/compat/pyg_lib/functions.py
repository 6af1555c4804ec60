# SPDX-License-Identifier: Apache-2.0
"""What the functions of pyg_lib.ops and torch.ops.pyg compute."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from polyop.compat.torch_cluster.fps import fps as _fps
from polyop.compat.torch_cluster.graclus import graclus_cluster as _graclus
from polyop.compat.torch_cluster.grid import grid_cluster as _grid
from polyop.compat.torch_cluster.knn import knn_in_clouds
from polyop.compat.torch_cluster.radius import radius_in_clouds
from polyop.compat.torch_cluster.sampler import edge_sample
from polyop.compat.torch_scatter import composite
from polyop.compat.torch_scatter.composite import scatter_softmax
from polyop.compat.torch_scatter.scatter import (
    scatter,
    scatter_max,
    scatter_mean,
    scatter_min,
    scatter_mul,
    scatter_sum,
)
from polyop.compat.torch_scatter.segment_coo import (
    gather_coo,
    segment_coo,
    segment_max_coo,
    segment_mean_coo,
    segment_min_coo,
    segment_sum_coo,
)
from polyop.compat.torch_scatter.segment_csr import (
    gather_csr,
    segment_csr,
    segment_max_csr,
    segment_mean_csr,
    segment_min_csr,
    segment_sum_csr,
)
from polyop.compat.torch_scatter.utils import broadcast

__all__ = [
    "edge_sample", "fps", "gather_coo", "gather_csr", "graclus_cluster", "grid_cluster", "grouped_matmul", "index_sort",
    "knn", "nearest", "radius", "sampled_add", "sampled_div", "sampled_mul", "sampled_op", "sampled_sub", "scatter",
    "scatter_add", "scatter_log_softmax", "scatter_logsumexp", "scatter_max", "scatter_mean", "scatter_min",
    "scatter_mul", "scatter_softmax", "scatter_std", "scatter_sum", "segment_add_coo", "segment_add_csr", "segment_coo",
    "segment_csr", "segment_matmul", "segment_max_coo", "segment_max_csr", "segment_mean_coo", "segment_mean_csr",
    "segment_min_coo", "segment_min_csr", "segment_sum_coo", "segment_sum_csr", "softmax_csr", "spline_basis",
    "spline_weighting",
]  # fmt: skip

# ---- points ------------------------------------------------------------------------------------------------------


def _ends(function: str, name: str, ptr: Tensor | None, count: int) -> Tensor:
    """Returns the ends of the clouds of `count` points, from 0 on. Without `ptr` there is one cloud."""
    if ptr is None:
        return torch.tensor([0, count])
    ends = ptr.cpu().long()
    if ends.dim() != 1 or ends.numel() < 1 or int(ends[0]) != 0 or int(ends[-1]) != count or (ends.diff() < 0).any():
        raise ValueError(f"{function}: {name}: expected ascending numbers from 0 to {count}, got {ptr.tolist()}")
    return ends


def _clouds(
    function: str, x: Tensor, y: Tensor, ptr_x: Tensor | None, ptr_y: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if (ptr_x is None) != (ptr_y is None):
        raise ValueError(f"{function}: expected both ptr_x and ptr_y, or neither")
    x, y = (t.reshape(t.size(0), -1).contiguous() for t in (x, y))
    if x.size(1) != y.size(1):
        raise ValueError(f"{function}: y: expected points of {x.size(1)} dimensions, got {y.size(1)}")
    ends_x, ends_y = _ends(function, "ptr_x", ptr_x, x.size(0)), _ends(function, "ptr_y", ptr_y, y.size(0))
    if ends_x.numel() != ends_y.numel():
        raise ValueError(f"{function}: ptr_y: expected {ends_x.numel()} elements, got {ends_y.numel()}")
    return x, y, ends_x, ends_y


def knn(
    x: Tensor, y: Tensor, k: int = 1, ptr_x: Tensor | None = None, ptr_y: Tensor | None = None, cosine: bool = False,
    num_workers: int = 1,
) -> Tensor:  # fmt: skip
    """The k points of x [N, F] nearest to each of y [M, F], within the same cloud: indices [2, E], of y and of x."""
    del num_workers  # PyTorch's number of threads holds
    x, y, ends_x, ends_y = _clouds("knn", x, y, ptr_x, ptr_y)
    return knn_in_clouds(x, y, k, ends_x, ends_y, cosine)


def radius(
    x: Tensor, y: Tensor, r: float = 1.0, ptr_x: Tensor | None = None, ptr_y: Tensor | None = None,
    max_num_neighbors: int = 32, num_workers: int = 1, ignore_same_index: bool = False,
) -> Tensor:  # fmt: skip
    """The first `max_num_neighbors` points of x [N, F] closer than r to each of y [M, F], within the same cloud."""
    del num_workers
    x, y, ends_x, ends_y = _clouds("radius", x, y, ptr_x, ptr_y)
    return radius_in_clouds(x, y, r, ends_x, ends_y, max_num_neighbors, ignore_same_index)


def nearest(x: Tensor, y: Tensor, ptr_x: Tensor | None = None, ptr_y: Tensor | None = None) -> Tensor:
    """The index of the point of y [M, F] nearest to each of x [N, F], within the same cloud -> [N]."""
    x, y, ends_x, ends_y = _clouds("nearest", x, y, ptr_x, ptr_y)
    if ((ends_x.diff() > 0) & (ends_y.diff() == 0)).any():
        raise ValueError("nearest: y: expected a point in each cloud that has points of x")
    return knn_in_clouds(y, x, 1, ends_y, ends_x, False)[1]


def fps(src: Tensor, ptr: Tensor, ratio: float = 0.5, random_start: bool = True) -> Tensor:
    """Indices of points of src [N, F] that are far from each other: a share of the points of each cloud."""
    return _fps(src, None, ratio, random_start, ptr=_ends("fps", "ptr", ptr, src.size(0)))


def grid_cluster(pos: Tensor, size: Tensor, start: Tensor | None = None, end: Tensor | None = None) -> Tensor:
    """The number of each point's cell: pos [N, D], size [D] -> [N]."""
    return _grid(pos.reshape(pos.size(0), -1), size, start, end)


def _rows(rowptr: Tensor) -> Tensor:
    return torch.arange(rowptr.numel() - 1, dtype=rowptr.dtype, device=rowptr.device).repeat_interleave(rowptr.diff())


def graclus_cluster(rowptr: Tensor, col: Tensor, weight: Tensor | None = None) -> Tensor:
    """Matches each vertex with one free neighbour at most -> the smaller index of each pair."""
    return _graclus(_rows(rowptr), col, weight, rowptr.numel() - 1)


# ---- products ----------------------------------------------------------------------------------------------------


def grouped_matmul(
    inputs: Sequence[Tensor], others: Sequence[Tensor], biases: Sequence[Tensor] | None = None
) -> list[Tensor]:
    """The product of each pair of matrices, [N_i, K_i] and [K_i, M_i], plus a bias."""
    if len(inputs) != len(others) or (biases is not None and len(biases) != len(inputs)):
        raise ValueError("grouped_matmul: expected as many matrices in others, and biases, as in inputs")
    products = [a @ b for a, b in zip(inputs, others, strict=True)]
    return products if biases is None else [a + b for a, b in zip(products, biases, strict=True)]


def segment_matmul(inputs: Tensor, ptr: Tensor, other: Tensor) -> Tensor:
    """Rows [ptr[i], ptr[i + 1]) of `inputs` times other[i]: [N, K], [B, K, M] -> [N, M]."""
    sizes = _ends("segment_matmul", "ptr", ptr, inputs.size(0)).diff().tolist()
    if len(sizes) != other.size(0):
        raise ValueError(f"segment_matmul: other: expected {len(sizes)} matrices, got {other.size(0)}")
    parts = [part @ matrix for part, matrix in zip(inputs.split(sizes), other, strict=True)]
    return torch.cat(parts) if parts else inputs.new_zeros(0, other.size(2))


_OPERATIONS = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}


def sampled_op(
    left: Tensor, right: Tensor, left_index: Tensor | None = None, right_index: Tensor | None = None, op: str = "add"
) -> Tensor:
    """left[left_index] op right[right_index], by rows."""
    if op not in _OPERATIONS:
        raise ValueError(f"sampled_op: expected op {', '.join(_OPERATIONS)}, got '{op}'")
    left = left if left_index is None else left.index_select(0, left_index)
    right = right if right_index is None else right.index_select(0, right_index)
    return _OPERATIONS[op](left, right)


def sampled_add(
    left: Tensor, right: Tensor, left_index: Tensor | None = None, right_index: Tensor | None = None
) -> Tensor:
    """left[left_index] + right[right_index]."""
    return sampled_op(left, right, left_index, right_index, "add")


def sampled_sub(
    left: Tensor, right: Tensor, left_index: Tensor | None = None, right_index: Tensor | None = None
) -> Tensor:
    """left[left_index] - right[right_index]."""
    return sampled_op(left, right, left_index, right_index, "sub")


def sampled_mul(
    left: Tensor, right: Tensor, left_index: Tensor | None = None, right_index: Tensor | None = None
) -> Tensor:
    """left[left_index] * right[right_index]."""
    return sampled_op(left, right, left_index, right_index, "mul")


def sampled_div(
    left: Tensor, right: Tensor, left_index: Tensor | None = None, right_index: Tensor | None = None
) -> Tensor:
    """left[left_index] / right[right_index]."""
    return sampled_op(left, right, left_index, right_index, "div")


# ---- groups ------------------------------------------------------------------------------------------------------

scatter_add, segment_add_coo, segment_add_csr = scatter_sum, segment_sum_coo, segment_sum_csr


def index_sort(inputs: Tensor, max_value: int | None = None) -> tuple[Tensor, Tensor]:
    """The elements of a vector in ascending order and their positions; those of equal elements ascend."""
    del max_value
    if inputs.dim() != 1:
        raise ValueError(f"index_sort: inputs: expected one dimension, got {list(inputs.shape)}")
    return torch.sort(inputs, stable=True)


def softmax_csr(src: Tensor, ptr: Tensor, dim: int = 0) -> Tensor:
    """The softmax of the elements [ptr[i], ptr[i + 1]) along a dimension."""
    _ends("softmax_csr", "ptr", ptr, src.size(dim))
    return scatter_softmax(src, _rows(ptr), dim, ptr.numel() - 1)


def _check_floating(function: str, src: Tensor) -> None:
    if not src.is_floating_point():
        raise ValueError(f"{function}: src: expected a floating-point type, got {src.dtype}")


def _of_elements(groups: Tensor, index: Tensor, src: Tensor, dim: int) -> Tensor:
    """Returns the value of each element's group, in the shape of `src`."""
    return groups.gather(dim, broadcast(index, src, dim))


def scatter_std(
    src: Tensor,
    index: Tensor,
    dim: int = -1,
    out: Tensor | None = None,
    dim_size: int | None = None,
    unbiased: bool = True,
) -> Tensor:
    """Standard deviations. Other than that of torch_scatter, it adds nothing to the number of elements."""
    _check_floating("scatter_std", src)
    dim_size = dim_size if out is None else out.size(dim)
    count = scatter_sum(torch.ones_like(src), index, dim, None, dim_size)
    mean = scatter_mean(src, index, dim, None, dim_size)
    squares = (src - _of_elements(mean, index, src, dim)).square()
    return (scatter_sum(squares, index, dim, out, dim_size) / (count - int(unbiased)).clamp(min=1)).sqrt()


def scatter_log_softmax(
    src: Tensor, index: Tensor, dim: int = -1, dim_size: int | None = None, eps: float = 1e-12
) -> Tensor:
    """The logarithm of the softmax of the elements with the same index. `eps` is added to the sums."""
    return composite.scatter_log_softmax(src, index, dim, eps, dim_size)


def scatter_logsumexp(
    src: Tensor,
    index: Tensor,
    dim: int = -1,
    out: Tensor | None = None,
    dim_size: int | None = None,
    eps: float = 1e-12,
) -> Tensor:
    """log(sum(exp(src)) + eps), without overflow; 0 for an index without elements, or what `out` has there."""
    _check_floating("scatter_logsumexp", src)
    if out is None:
        return composite.scatter_logsumexp(src, index, dim, None, dim_size, eps)
    result = composite.scatter_logsumexp(src, index, dim, None, out.size(dim), eps)
    is_there = scatter_sum(src.isfinite().to(src.dtype), index, dim, None, out.size(dim)) > 0
    return out.copy_(torch.where(is_there, result, out))


# ---- splines -----------------------------------------------------------------------------------------------------


def spline_basis(pseudo: Tensor, kernel_size: Tensor, is_open_spline: Tensor, degree: int = 1) -> tuple[Tensor, Tensor]:
    """Coordinates [E, D] in [0, 1] -> the values of the (degree + 1)^D basis functions at each, and their numbers.

    B-splines are uniform; a closed one (is_open_spline 0) is periodic.
    """
    if degree not in (1, 2, 3):
        raise ValueError(f"spline_basis: degree: expected 1, 2 or 3, got {degree}")
    if not pseudo.size(1) == kernel_size.numel() == is_open_spline.numel():
        raise ValueError(f"spline_basis: expected a kernel_size and is_open_spline for each of {pseudo.size(1)} axes")
    basis = pseudo.new_ones(len(pseudo), 1)
    number = torch.zeros(len(pseudo), 1, dtype=kernel_size.dtype, device=pseudo.device)
    stride = 1
    for axis, (size, is_open) in enumerate(zip(kernel_size.tolist(), is_open_spline.tolist(), strict=True)):
        position = pseudo[:, axis] * (size - degree * is_open)
        first = position.detach().floor()
        part = torch.arange(degree + 1, device=pseudo.device)
        values = _b_spline(position - first, degree)
        index = (first.to(number.dtype)[:, None] + part) % size
        basis = (values[:, :, None] * basis[:, None]).flatten(1)  # the first axis varies fastest
        number = (index[:, :, None] * stride + number[:, None]).flatten(1)
        stride *= size
    return basis, number


def _b_spline(v: Tensor, degree: int) -> Tensor:
    """The pieces of a uniform B-spline at v in [0, 1), [E] -> [E, degree + 1], by Cox and de Boor's recursion."""
    pieces = torch.ones_like(v)[:, None]
    for order in range(1, degree + 1):
        left = (v[:, None] + torch.arange(order - 1, -1, -1, device=v.device)) / order
        zero = torch.zeros_like(v)[:, None]
        pieces = torch.cat([(1 - left) * pieces, zero], 1) + torch.cat([zero, left * pieces], 1)
    return pieces


def spline_weighting(x: Tensor, weight: Tensor, basis: Tensor, weight_index: Tensor) -> Tensor:
    """Sums of products x [E, K] @ weight[weight_index], weight [W, K, M], by the basis [E, S] -> [E, M]."""
    if x.size(1) != weight.size(1):
        raise ValueError(f"spline_weighting: weight: expected {x.size(1)} rows, got {list(weight.shape)}")
    rows = max(1, (1 << 22) // max(1, math.prod(weight.shape[1:])))  # matrices in memory at once
    parts = [
        torch.einsum("ek,eskm,es->em", a, weight[index], b)
        for a, b, index in zip(x.split(rows), basis.split(rows), weight_index.split(rows), strict=True)
    ]
    return torch.cat(parts) if parts else x.new_zeros(0, weight.size(2))
