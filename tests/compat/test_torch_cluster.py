# SPDX-License-Identifier: Apache-2.0
"""polyop.compat.torch_cluster against SciPy's trees and loops. The package's own tests pass, too (docs/compat.md)."""

from __future__ import annotations

import pytest
import scipy.spatial
import torch

from polyop.compat import torch_cluster as tc

CASES = [(torch.float32, 3), (torch.float32, 2), (torch.float64, 3), (torch.float32, 7)]


def clouds(dtype: torch.dtype, dimensions: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns points of three clouds, one of them without points, and their numbers."""
    torch.manual_seed(0)
    return torch.randn(300, dimensions, dtype=dtype), torch.tensor([0] * 100 + [2] * 200)


@pytest.mark.parametrize(("dtype", "dimensions"), CASES)
def test_knn(dtype: torch.dtype, dimensions: int) -> None:
    x, batch = clouds(dtype, dimensions)
    rows, columns = tc.knn(x, x, 5, batch, batch)
    for cloud in (0, 2):
        first = int((batch < cloud).sum())
        part = x[batch == cloud].double()
        _, expected = scipy.spatial.cKDTree(part).query(part, k=5)
        found = columns[batch[rows] == cloud].reshape(-1, 5) - first
        assert found.tolist() == expected.tolist()
    assert rows.tolist() == torch.arange(300).repeat_interleave(5).tolist()


@pytest.mark.parametrize(("dtype", "dimensions"), CASES)
def test_radius(dtype: torch.dtype, dimensions: int) -> None:
    x, batch = clouds(dtype, dimensions)
    rows, columns = tc.radius(x, x, 0.8, batch, batch, max_num_neighbors=300)
    expected = set()
    for cloud in (0, 2):
        first = int((batch < cloud).sum())
        part = x[batch == cloud].double()
        for i, neighbours in enumerate(scipy.spatial.cKDTree(part).query_ball_point(part, 0.8)):
            expected |= {(first + i, first + j) for j in neighbours}
    assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == expected
    few = tc.radius(x, x, 0.8, batch, batch, max_num_neighbors=3, ignore_same_index=True)
    assert bool((few[0] != few[1]).all())
    assert 1 <= int(few[0].bincount().max()) <= 3


def test_graphs() -> None:
    x, batch = clouds(torch.float32, 3)
    for flow in ("source_to_target", "target_to_source"):
        graph = tc.knn_graph(x, 4, batch, flow=flow)
        centres = graph[1] if flow == "source_to_target" else graph[0]
        assert graph.shape == (2, 1200)
        assert bool((centres.bincount() == 4).all())
        assert bool((graph[0] != graph[1]).all())
    assert set(map(tuple, tc.radius_graph(x, 0.5, batch).t().tolist())) == set(
        map(tuple, tc.radius_graph(x, 0.5, batch, flow="target_to_source").t().tolist())
    )


def test_furthest_points() -> None:
    x, batch = clouds(torch.float32, 3)
    index = tc.fps(x, batch, 0.1, random_start=False)
    assert index.shape == (30,)
    assert index[0] == 0
    assert index[10] == 100
    assert torch.equal(index, tc.fps(x.double(), batch, 0.1, random_start=False))
    assert bool((tc.fps(x, batch, 0.1)[10:] >= 100).all())


def test_nearest_and_grid() -> None:
    x, y = torch.rand(50, 3), torch.rand(20, 3)
    assert torch.equal(tc.nearest(x, y), torch.cdist(x, y).argmin(1))
    cells = tc.grid_cluster(x, torch.tensor([0.5, 0.5, 0.5]), torch.zeros(3), torch.ones(3))
    assert torch.equal(cells, ((x / 0.5).long() * torch.tensor([1, 3, 9])).sum(1))


def test_walks_follow_edges() -> None:
    torch.manual_seed(0)
    row, col = torch.tensor([0, 1, 1, 2, 3]), torch.tensor([1, 0, 2, 1, 3])
    edges = set(zip(row.tolist(), col.tolist(), strict=True))
    for p, q in ((1.0, 1.0), (0.25, 4.0)):
        walks, taken = tc.random_walk(row, col, torch.arange(5), 8, p, q, num_nodes=5, return_edge_indices=True)
        for walk, numbers in zip(walks.tolist(), taken.tolist(), strict=True):
            for here, there, number in zip(walk, walk[1:], numbers, strict=False):
                assert (here, there) in edges if number >= 0 else here == there == 4
    # A vertex that returns at once with a probability of 1 / p: nearly always for a small p.
    walks = tc.random_walk(row, col, torch.zeros(500, dtype=torch.long), 2, 0.01, 1.0)
    assert float((walks[:, 2] == 0).float().mean()) > 0.9


def test_pairs_are_neighbours() -> None:
    row, col = torch.randint(0, 30, (2, 100))
    cluster = tc.graclus_cluster(torch.cat([row, col]), torch.cat([col, row]), num_nodes=30)
    edges = set(zip(torch.cat([row, col]).tolist(), torch.cat([col, row]).tolist(), strict=True))
    for name in cluster.unique().tolist():
        members = (cluster == name).nonzero()[:, 0].tolist()
        assert members[0] == name
        assert len(members) == 1 or (len(members) == 2 and tuple(members) in edges)


def test_what_is_wrong() -> None:
    x, batch = clouds(torch.float32, 3)
    with pytest.raises(ValueError, match="flow: expected"):
        tc.knn_graph(x, 2, flow="up")
    with pytest.raises(ValueError, match="expected a batch index for each point"):
        tc.knn(x, x, 2, batch[:5], batch)
    with pytest.raises(ValueError, match="neighbor_sampler: expected a positive size, got 0"):
        tc.neighbor_sampler(torch.tensor([0]), torch.tensor([0, 3]), 0)
