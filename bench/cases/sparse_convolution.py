# SPDX-License-Identifier: Apache-2.0
"""Sparse convolution."""

from __future__ import annotations

import numpy as np
import torch
from harness import Case, Contest, bytes_of, normal, session, with_torch

from cases import with_spconv
from cases.synthetic_scenes import voxels

SPARSE_SHAPE = (41, 1440, 1440)


def lidar_voxels() -> np.ndarray:
    return voxels(60_000, SPARSE_SHAPE, (0.2, 0.075, 0.075))


def sparse_attributes(subm: bool) -> dict[str, object]:
    step = {"stride": [1, 1, 1]} if subm else {"stride": [2, 2, 2], "padding": [1, 1, 1]}
    return {"batch_size": 1, "spatial_shape": list(SPARSE_SHAPE), "ksize": [3, 3, 3], "subm": int(subm), **step}


def submanifold_table(indices: np.ndarray) -> np.ndarray:
    """Returns the table in torch: each of the 27 neighbours is looked up among the sorted cells."""
    cells = torch.from_numpy(indices[:, 1:].astype(np.int64)) + 1
    extents = [n + 2 for n in SPARSE_SHAPE]
    strides = torch.tensor([extents[1] * extents[2], extents[2], 1])
    keys = (cells * strides).sum(1)
    ordered, rows = keys.sort()
    steps = torch.cartesian_prod(*[torch.arange(-1, 2)] * 3)
    neighbours = keys + (steps * strides).sum(1)[:, None]
    at = torch.searchsorted(ordered, neighbours).clamp_(max=len(keys) - 1)
    return torch.where(ordered[at] == neighbours, rows[at], -1).int().numpy()


def same_pairs(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    """Compares tables, or the number of pairs at each of the offsets that spconv lists, because its order differs."""
    if len(theirs) == 1:
        return np.array_equal(ours[1], theirs[0])
    counts = theirs[2][theirs[2] > 0]
    have = (ours[1] >= 0).reshape(-1, 27, ours[1].shape[-1])[0].sum(1)
    return np.array_equal(have[: len(counts)], counts)


def sparse_pairs(operator: str, subm: bool) -> Case:
    implicit = operator.endswith("implicit_gemm")
    name, outputs = ("GetIndicePairsImplicitGemm", 5) if implicit else ("GetIndicePairs", 4)

    def make(threads: int) -> Contest:
        indices = lidar_voxels()
        names = [f"y{o}" for o in range(outputs)]
        ours = session(f"autoware::{name}", {"indices": indices}, threads, names, attributes=sparse_attributes(subm))
        rivals = {"torch sort + searchsorted": lambda: [submanifold_table(indices)]} if subm and implicit else {}
        if threads == 1:
            rivals["spconv"] = with_spconv.pairs_of(indices, sparse_attributes(subm))
        moved = bytes_of(indices) * 2 + 27 * 60_000 * (4 if implicit else 8)
        return Contest(ours, rivals, moved, same=same_pairs)

    return Case(operator, f"street, 60,000 voxels, 3x3x3, {'submanifold' if subm else 'stride 2'}", make)


def sparse_products(operator: str) -> Case:
    """SubMConv3d of 64 to 64 channels, compared with the same products in torch and with one matrix product of the same
    size.
    """

    def make(threads: int) -> Contest:
        indices, channels = lidar_voxels(), 64
        features, filters = normal(32, len(indices), channels), normal(33, channels, 3, 3, 3, channels) / 20
        table = submanifold_table(indices)
        feeds = {"features": features, "filters": filters}
        if operator == "implicit_gemm":
            order = np.arange(len(indices), dtype=np.int32)
            feeds |= {"pairs": table, "mask": np.zeros((len(indices), 1), np.int32), "order": order}
            ours = session("autoware::ImplicitGemm", feeds, threads, attributes={"is_subm": 1})
        else:
            lists = session("autoware::GetIndicePairs", {"indices": indices}, threads, ["c", "p", "n", "o"],
                            attributes=sparse_attributes(True))  # fmt: skip
            spconv_lists = [value.numpy() for value in lists()]
            feeds |= {"pairs": spconv_lists[1], "counts": spconv_lists[2], "number": spconv_lists[3]}
            ours = session("autoware::IndiceConv", feeds, threads, attributes={"is_subm": 1})
        tf, tw = torch.from_numpy(features), torch.from_numpy(filters).view(channels, 27, channels)
        weights = [tw[:, k].T.contiguous() for k in range(27)]
        outs = [torch.from_numpy(np.nonzero(table[k] >= 0)[0]) for k in range(27)]
        ins = [torch.from_numpy(table[k][table[k] >= 0].astype(np.int64)) for k in range(27)]

        def formulation() -> torch.Tensor:
            out = torch.zeros(len(indices), channels)
            for k in range(27):
                out.index_add_(0, outs[k], tf[ins[k]] @ weights[k])
            return out

        pairs = int((table >= 0).sum())
        many, once = torch.randn(pairs, channels), torch.empty(pairs, channels)
        rivals = {"torch index_select + mm + index_add": with_torch(formulation)}
        if threads == 1:
            rivals["spconv"] = with_spconv.products(features, filters, indices, sparse_attributes(True))
        product = with_torch(lambda: torch.mm(many, weights[0], out=once))
        return Contest(
            ours,
            rivals,
            bytes_of(features, filters, features),
            2.0 * pairs * channels * channels,
            tolerance=1e-3,
            yardstick=("torch.mm of as many products", product),
        )

    return Case(operator, "street, 60,000 voxels, 3x3x3, submanifold, 64 to 64 channels", make)


CASES = [
    *(sparse_pairs("get_indice_pairs_implicit_gemm", subm) for subm in (True, False)),
    sparse_pairs("get_indice_pairs", True),
    *(sparse_products(operator) for operator in ("implicit_gemm", "indice_conv")),
]
