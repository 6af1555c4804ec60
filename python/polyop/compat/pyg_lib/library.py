# SPDX-License-Identifier: Apache-2.0
"""torch.ops.pyg, whose functions PyTorch Geometric calls directly. Gradients are those of PyTorch's operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from polyop.compat.pyg_lib import functions, sampler

__all__ = ["cuda_version", "register"]


def cuda_version() -> int:
    """Returns the version of CUDA as a number, 12060 for 12.6, or -1 without CUDA."""
    version = torch.version.cuda
    if version is None:
        return -1
    major, minor = version.split(".")[:2]
    return 1000 * int(major) + 10 * int(minor)


def _knn(
    x: Tensor, y: Tensor, ptr_x: Tensor | None = None, ptr_y: Tensor | None = None, k: int = 1, cosine: bool = False,
    num_workers: int = 1,
) -> Tensor:  # fmt: skip
    return functions.knn(x, y, k, ptr_x, ptr_y, cosine, num_workers)


def _radius(
    x: Tensor, y: Tensor, ptr_x: Tensor | None = None, ptr_y: Tensor | None = None, r: float = 1.0,
    max_num_neighbors: int = 32, num_workers: int = 1, ignore_same_index: bool = False,
) -> Tensor:  # fmt: skip
    return functions.radius(x, y, r, ptr_x, ptr_y, max_num_neighbors, num_workers, ignore_same_index)


_REDUCED = "(Tensor src, Tensor index, int dim=-1, Tensor? out=None, int? dim_size=None)"
_COO = "(Tensor src, Tensor index, Tensor? out=None, int? dim_size=None)"
_CSR = "(Tensor src, Tensor indptr, Tensor? out=None)"
_OPTIONS = (
    "bool csc=False, bool replace=False, bool directed=True, bool disjoint=False, str temporal_strategy='uniform', "
)
_SCHEMAS: dict[str, Callable[..., Any]] = {
    "cuda_version() -> int": cuda_version,
    "edge_sample(Tensor start, Tensor rowptr, int count=0, float factor=1.0) -> Tensor": functions.edge_sample,
    "fps(Tensor src, Tensor ptr, float ratio=0.5, bool random_start=True) -> Tensor": functions.fps,
    "graclus_cluster(Tensor rowptr, Tensor col, Tensor? weight=None) -> Tensor": functions.graclus_cluster,
    "grid_cluster(Tensor pos, Tensor size, Tensor? start=None, Tensor? end=None) -> Tensor": functions.grid_cluster,
    "grouped_matmul(Tensor[] input, Tensor[] other) -> Tensor[]": functions.grouped_matmul,
    "index_sort(Tensor indices, int? max=None) -> (Tensor, Tensor)": functions.index_sort,
    "knn(Tensor x, Tensor y, Tensor? ptr_x=None, Tensor? ptr_y=None, int k=1, bool cosine=False, int num_workers=1) "
    "-> Tensor": _knn,
    "nearest(Tensor x, Tensor y, Tensor? ptr_x=None, Tensor? ptr_y=None) -> Tensor": functions.nearest,
    "radius(Tensor x, Tensor y, Tensor? ptr_x=None, Tensor? ptr_y=None, float r=1.0, int max_num_neighbors=32, "
    "int num_workers=1, bool ignore_same_index=False) -> Tensor": _radius,
    "sampled_op(Tensor left, Tensor right, Tensor? left_index, Tensor? right_index, str op) -> Tensor": functions.sampled_op,
    "segment_matmul(Tensor input, Tensor ptr, Tensor other) -> Tensor": functions.segment_matmul,
    "softmax_csr(Tensor src, Tensor ptr, int dim=0) -> Tensor": functions.softmax_csr,
    "spline_basis(Tensor pseudo, Tensor kernel_size, Tensor is_open_spline, int degree=1) -> (Tensor, Tensor)": functions.spline_basis,
    "spline_weighting(Tensor x, Tensor weight, Tensor basis, Tensor weight_index) -> Tensor": functions.spline_weighting,
    f"scatter_sum{_REDUCED} -> Tensor": functions.scatter_sum,
    f"scatter_mul{_REDUCED} -> Tensor": functions.scatter_mul,
    f"scatter_mean{_REDUCED} -> Tensor": functions.scatter_mean,
    f"scatter_min{_REDUCED} -> (Tensor, Tensor)": functions.scatter_min,
    f"scatter_max{_REDUCED} -> (Tensor, Tensor)": functions.scatter_max,
    f"segment_sum_coo{_COO} -> Tensor": functions.segment_sum_coo,
    f"segment_mean_coo{_COO} -> Tensor": functions.segment_mean_coo,
    f"segment_min_coo{_COO} -> (Tensor, Tensor)": functions.segment_min_coo,
    f"segment_max_coo{_COO} -> (Tensor, Tensor)": functions.segment_max_coo,
    "gather_coo(Tensor src, Tensor index, Tensor? out=None) -> Tensor": functions.gather_coo,
    f"segment_sum_csr{_CSR} -> Tensor": functions.segment_sum_csr,
    f"segment_mean_csr{_CSR} -> Tensor": functions.segment_mean_csr,
    f"segment_min_csr{_CSR} -> (Tensor, Tensor)": functions.segment_min_csr,
    f"segment_max_csr{_CSR} -> (Tensor, Tensor)": functions.segment_max_csr,
    f"gather_csr{_CSR} -> Tensor": functions.gather_csr,
    "random_walk(Tensor rowptr, Tensor col, Tensor seed, int walk_length, float p, float q) -> Tensor": sampler.random_walk,
    "subgraph(Tensor rowptr, Tensor col, Tensor nodes, bool return_edge_id) -> (Tensor, Tensor, Tensor?)": sampler.subgraph,
    "neighbor_sample(Tensor rowptr, Tensor col, Tensor seed, int[] num_neighbors, Tensor? node_time=None, "
    f"Tensor? edge_time=None, Tensor? seed_time=None, Tensor? edge_weight=None, {_OPTIONS}bool return_edge_id=True) "
    "-> (Tensor, Tensor, Tensor, Tensor?, int[], int[])": sampler.neighbor_sample,
    "hetero_neighbor_sample(str[] node_types, (str, str, str)[] edge_types, Dict(str, Tensor) rowptr_dict, "
    "Dict(str, Tensor) col_dict, Dict(str, Tensor) seed_dict, Dict(str, int[]) num_neighbors_dict, "
    "Dict(str, Tensor)? node_time_dict=None, Dict(str, Tensor)? edge_time_dict=None, "
    "Dict(str, Tensor)? seed_time_dict=None, Dict(str, Tensor)? edge_weight_dict=None, "
    f"{_OPTIONS}bool return_edge_id=True) -> (Dict(str, Tensor), Dict(str, Tensor), Dict(str, Tensor), "
    "Dict(str, Tensor)?, Dict(str, int[]), Dict(str, int[]))": sampler.sample_of_types,
}
_library = torch.library.Library("pyg", "FRAGMENT")


def register() -> None:
    """Defines the operators that pyg_lib's own library has not defined."""
    for schema, function in _SCHEMAS.items():
        name = schema.partition("(")[0]
        if not hasattr(torch.ops.pyg, name):
            _library.define(schema)
            _library.impl(name, function, "CompositeImplicitAutograd")
