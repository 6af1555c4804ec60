# SPDX-License-Identifier: Apache-2.0
"""Finds nearest neighbours in a point cloud by segments, in PyTorch and, by both exporters, in ONNX Runtime and
OpenVINO. Draws the clusters.

The cloud has two segments: a mug (body, bottom and handle) and a torus, sampled from their surfaces with noise. The
queries are points that are far from each other. If a segment has fewer points than requested neighbours, the rest
is -1.

python examples/knn_query/main.py [FOLDER]     writes the models and knn_clusters.png into FOLDER
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import matplotlib
import numpy as np
import onnx
import torch
from torch import Tensor, nn

import polyop

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runtimes import BOTH, RUNTIMES

matplotlib.use("Agg")
import matplotlib.pyplot as plt

NEIGHBOURS = 48


def torus(count: int, large: float, small: float, generator: torch.Generator, arc: float = 1.0) -> Tensor:
    u, v = torch.rand(2, count, generator=generator) * 2 * torch.pi
    u = u * arc
    ring = large + small * v.cos()
    return torch.stack([ring * u.cos(), small * v.sin(), ring * u.sin()], 1)


def mug(count: int, generator: torch.Generator) -> Tensor:
    angle = torch.rand(count // 2, generator=generator) * 2 * torch.pi
    body = torch.stack([angle.cos(), angle.sin(), torch.rand(count // 2, generator=generator) * 2.4 - 1.2], 1)
    angle = torch.rand(count // 4, generator=generator) * 2 * torch.pi
    radius = torch.rand(count // 4, generator=generator).sqrt()
    bottom = torch.stack([radius * angle.cos(), radius * angle.sin(), torch.full((count // 4,), -1.2)], 1)
    handle = torus(count - len(body) - len(bottom), 0.7, 0.12, generator, arc=0.5)
    handle = torch.stack([handle[:, 2] + 1.0, handle[:, 1], handle[:, 0]], 1)
    return torch.cat([body, bottom, handle])


def cloud() -> tuple[Tensor, Tensor]:
    """Returns points [n, 3] and the end of each segment."""
    generator = torch.Generator().manual_seed(3)
    parts = [mug(2400, generator), torus(1200, 1.0, 0.35, generator) + torch.tensor([4.0, 0, 0])]
    points = torch.cat(parts)
    points += torch.randn(points.shape, generator=generator) * 0.01
    return points, torch.tensor(np.cumsum([len(p) for p in parts]), dtype=torch.int32)


def far_apart(points: Tensor, count: int) -> Tensor:
    """Furthest-point sampling: the next point is the one with the largest distance from the previous ones."""
    chosen, distance = [0], torch.full((len(points),), torch.inf)
    for _ in range(count - 1):
        distance = torch.minimum(distance, (points - points[chosen[-1]]).square().sum(1))
        chosen.append(int(distance.argmax()))
    return points[chosen]


class Neighbours(nn.Module):
    """The number of neighbours is an input of the node, so one model serves all of them."""

    def forward(
        self,
        nsample: Tensor,
        xyz: Tensor,
        offset: Tensor,
        new_xyz: Tensor | None = None,
        new_offset: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        return polyop.knn_query(nsample, xyz, offset, new_xyz, new_offset)


def brute_force(
    count: int, xyz: np.ndarray, ends: np.ndarray, queries: np.ndarray, query_ends: np.ndarray
) -> np.ndarray:
    """Squared distances of the neighbours [m, count] in double precision; infinity where there are too few."""
    found = np.full((len(queries), count), np.inf)
    begin = query_begin = 0
    for end, query_end in zip(ends, query_ends, strict=True):
        between = queries[query_begin:query_end, None].astype(np.float64) - xyz[None, begin:end]
        nearest = np.sort(np.square(between).sum(-1), 1)[:, :count]
        found[query_begin:query_end, : nearest.shape[1]] = nearest
        begin, query_begin = end, query_end
    return found


def draw(path: Path, points: Tensor, centres: Tensor, index: Tensor) -> None:
    figure = plt.figure(figsize=(8, 4.4))
    axes = figure.add_axes((-0.1, -0.59, 1.2, 2.18), projection="3d")  # larger than the figure, to crop the margins
    owned = torch.zeros(len(points), dtype=torch.bool)
    owned[index.reshape(-1).long()] = True
    axes.scatter(*points[~owned].T, s=1, color="#c4c4c4", alpha=0.5)
    colours = plt.colormaps["tab20"](np.arange(len(centres)) % 20)
    for of_centre, colour in zip(index.long(), colours, strict=True):
        axes.scatter(*points[of_centre].T, s=8, color=colour)
    axes.scatter(*centres.T, s=45, color="black", marker="x", depthshade=False)
    axes.set_box_aspect(np.ptp(points.numpy(), 0), zoom=0.85)
    axes.set_axis_off()
    axes.view_init(elev=22, azim=-72)
    figure.suptitle(f"{index.shape[1]} nearest points of each cross, two segments (custom::knnquery)")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    points, ends = cloud()
    begins = [0, *ends.tolist()[:-1]]
    chosen = [far_apart(points[b:e], 10) for b, e in zip(begins, ends.tolist(), strict=True)]
    centres, centre_ends = torch.cat(chosen), torch.tensor([10, 20], dtype=torch.int32)
    count = torch.tensor(NEIGHBOURS)
    calls = {"with_new_xyz": (count, points, ends, centres, centre_ends), "among_themselves": (count, points, ends)}
    names = ["nsample", "xyz", "offset", "new_xyz", "new_offset"]
    for name, tensors in calls.items():
        for exporter in ("dynamo", "torchscript"):
            path = folder / f"knn_{name}_{exporter}.onnx"
            polyop.export(
                Neighbours(), tensors, path, exporter=exporter, input_names=names[: len(tensors)],
                output_names=["index", "distance"], domain="custom", verbose=False,
            )  # fmt: skip
            (node,) = (n for n in onnx.load(path).graph.node if n.domain == "custom")
            queries, query_ends = (tensors[3], tensors[4]) if len(tensors) == 5 else (points, ends)
            feeds = dict(zip(names, (t.numpy() for t in tensors), strict=False))
            want = brute_force(NEIGHBOURS, points.numpy(), ends.numpy(), queries.numpy(), query_ends.numpy())
            for load in RUNTIMES.values():
                index, distance = load(path)(feeds)
                np.testing.assert_allclose(distance.astype(np.float64) ** 2, want, atol=1e-4)
            found = f"{index.shape[0]} x {index.shape[1]} neighbours"
            print(f"{name:17} {exporter:12} {node.domain}::{node.op_type}: {found} in {BOTH}")

    few = torch.tensor([5, len(points)], dtype=torch.int32)  # a segment of 5 points
    index, _ = polyop.knn_query(8, points, few)
    assert (index[:5, 5:] == -1).all()
    assert (index[:5, :5] >= 0).all()
    print("a segment of 5 points, 8 neighbours requested: the last 3 of each are -1")
    index, _ = polyop.knn_query(NEIGHBOURS, points, ends, centres, centre_ends)
    draw(folder / "knn_clusters.png", points, centres, index)
    print(f"image: {folder / 'knn_clusters.png'}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
