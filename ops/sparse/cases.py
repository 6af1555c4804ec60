# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
import with_spconv
from benchmark import Call, Contest, call
from contenders import bytes_of, normal, session, with_torch
from inputs import gaussian
from synthetic_scenes import voxels as scene_voxels
from torch import Tensor

import polyop.functional as ops

SPARSE_SHAPE = (41, 1440, 1440)


def lidar_voxels() -> np.ndarray:
    return scene_voxels(60_000, SPARSE_SHAPE, (0.2, 0.075, 0.075))


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


def sparse_pairs(threads: int, operator: str, subm: bool) -> Contest:
    implicit = operator.endswith("implicit_gemm")
    name, outputs = ("GetIndicePairsImplicitGemm", 5) if implicit else ("GetIndicePairs", 4)
    indices = lidar_voxels()
    names = [f"y{o}" for o in range(outputs)]
    ours = session(f"autoware::{name}", {"indices": indices}, threads, names, attributes=sparse_attributes(subm))
    rivals = {"torch sort + searchsorted": lambda: [submanifold_table(indices)]} if subm and implicit else {}
    if threads == 1:
        rivals["spconv"] = with_spconv.pairs_of(indices, sparse_attributes(subm))
    moved = bytes_of(indices) * 2 + 27 * 60_000 * (4 if implicit else 8)
    return Contest(ours, rivals, moved, same=same_pairs)


def sparse_products(threads: int, operator: str) -> Contest:
    """SubMConv3d of 64 to 64 channels, compared with the same products in torch and with one matrix product of the same
    size.
    """
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
    moved, flops = bytes_of(features, filters, features), 2.0 * pairs * channels * channels
    return Contest(ours, rivals, moved, flops, 1e-3, yardstick=("torch.mm of as many products", product))


def sparse_voxels() -> Tensor:
    """Returns 100,000 voxels around a surface, as a scanner sees them: a 3x3x3 window has 10 of them on average."""
    y, x = torch.meshgrid(torch.arange(224), torch.arange(224), indexing="ij")
    height = ((y * 0.05).sin() * 4 + (x * 0.03).cos() * 4 + 12).long()
    both = [torch.stack([y * 0, height + up, y, x], -1).flatten(0, 1) for up in (0, 1)]
    return torch.cat(both)[:100_000].int().contiguous()


def sparse(operator: str, channels: int, dtype: torch.dtype) -> Call:
    voxels, shape = sparse_voxels(), [32, 224, 224]
    features = torch.randn(len(voxels), channels).to(dtype)
    filters = (torch.randn(channels, 3, 3, 3, channels) * 0.05).to(dtype)
    _, pairs, counts, found = ops.get_indice_pairs(voxels, 1, shape, [3] * 3, subm=True)
    if operator == "indice_conv":
        table = [pairs, counts, found]
    else:
        _, *table, _ = ops.get_indice_pairs_implicit_gemm(voxels, 1, shape, [3] * 3, subm=True)
    # With subm=True, positions after the centre have the counts of their mirror images; the centre has every voxel.
    lengths = counts.tolist()
    lengths = [lengths[i] if i < 13 else len(voxels) if i == 13 else lengths[26 - i] for i in range(27)]
    rows = [(pairs[0, i, :n].long(), pairs[1, i, :n].long()) for i, n in enumerate(lengths)]
    rows[13] = (torch.arange(len(voxels)), torch.arange(len(voxels)))

    def gathered(features: Tensor, filters: Tensor) -> Tensor:
        """Gathers, multiplies and adds each position of the filter, as the first sparse convolutions did."""
        to = features.new_zeros(len(voxels), channels)
        for (source, target), part in zip(rows, filters.flatten(1, 3).unbind(1), strict=True):
            to = to.index_add(0, target, features[source] @ part.t())
        return to

    function = getattr(torch.ops.polyop, operator)
    rest = [] if operator == "indice_conv" else [None]
    return Call(
        lambda t, w: function(t, w, *table, *rest, is_subm=1),
        [features, filters],
        {"torch": gathered},
        also_reads=[t for t in table if t.dim()],
        flops=2.0 * sum(len(s) for s, _ in rows) * channels * channels,
    )


def tables(operator: str) -> Contest:
    voxels = sparse_voxels()
    run = getattr(ops, operator)
    return Contest(lambda: run(voxels, 1, [32, 224, 224], [3] * 3, subm=True), reads=[voxels])


def slab(n: int) -> tuple[Tensor, list[int]]:
    """Returns distinct voxels of a slab in which one of ten is filled."""
    side = max(2, round((n * 2.5) ** 0.5))
    at = torch.randperm(side * side * 4, generator=torch.Generator().manual_seed(5))[:n]
    return torch.stack([at * 0, at % 4, at // 4 // side, at // 4 % side], 1).int(), [4, side, side]


def pairs(operator: str, n: int) -> Call:
    indices, shape = slab(n)
    return call(operator, indices, batch_size=1, spatial_shape=shape, ksize=[3, 3, 3], stride=[1, 1, 1], subm=1)


def convolution(operator: str, n: int) -> Call:
    features, filters = gaussian(n, 16), gaussian(16, 3, 3, 3, 16)
    if operator == "indice_conv":
        _, lists, number, active = pairs("get_indice_pairs", n).run()
        return call(operator, features, filters, lists, number, active, is_subm=1)
    _, table, mask, order, _ = pairs("get_indice_pairs_implicit_gemm", n).run()
    return call(operator, features, filters, table, mask, order, None, is_subm=1)


def random_voxels(count: int = 30_000) -> Tensor:
    positions = torch.randperm(16 * 200 * 176)[:count]
    return torch.stack([positions * 0, positions // (200 * 176), positions // 176 % 200, positions % 176], 1).int()
