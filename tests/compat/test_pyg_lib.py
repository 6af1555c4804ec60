# SPDX-License-Identifier: Apache-2.0
"""pyg_lib, compared with loops. PyTorch Geometric's and pyg_lib's own tests pass, too (docs/compat.md)."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from polyop.compat.pyg_lib import ops, sampler


def clouds() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Points and queries of three clouds, one of them without points of x, and their ends."""
    torch.manual_seed(0)
    return torch.randn(60, 3), torch.randn(25, 3), torch.tensor([0, 20, 20, 60]), torch.tensor([0, 10, 12, 25])


def of_queries(x: Tensor, y: Tensor, ends_x: Tensor, ends_y: Tensor) -> list[list[tuple[float, int]]]:
    """The distances and indices of the points of each query's cloud, nearest first."""
    result = []
    for cloud in range(len(ends_x) - 1):
        points = range(int(ends_x[cloud]), int(ends_x[cloud + 1]))
        for query in range(int(ends_y[cloud]), int(ends_y[cloud + 1])):
            result.append(sorted((float((x[i] - y[query]).double().norm()), i) for i in points))
    return result


def pairs(edges: Tensor) -> set[tuple[int, ...]]:
    return set(map(tuple, edges.t().tolist()))


def test_neighbours() -> None:
    x, y, ends_x, ends_y = clouds()
    ranked = of_queries(x, y, ends_x, ends_y)
    expected = {(q, i) for q, found in enumerate(ranked) for _, i in found[:4]}
    assert pairs(torch.ops.pyg.knn(x, y, ends_x, ends_y, 4, False, 1)) == expected
    assert pairs(ops.knn(x.double(), y.double(), 4, ends_x, ends_y)) == expected
    near = {(q, i) for q, found in enumerate(ranked) for distance, i in found if distance < 0.9}
    assert pairs(torch.ops.pyg.radius(x, y, ends_x, ends_y, 0.9, 60, 1, False)) == near
    itself = torch.ops.pyg.radius(x, x, None, None, 0.9, 60, 1, True)
    assert bool((itself[0] != itself[1]).all())
    last = torch.tensor([0, 0, 15])
    assert torch.ops.pyg.nearest(y[10:], x[:40], last, torch.tensor([0, 20, 40])).tolist() == [
        found[0][1] for found in of_queries(x[:40], y[10:], torch.tensor([0, 20, 40]), last)
    ]
    unit = torch.nn.functional.normalize
    angles = unit(y.double()) @ unit(x.double()).t()
    assert pairs(ops.knn(x, y, 3, cosine=True)) == {
        (q, i) for q, row in enumerate(angles.topk(3)[1].tolist()) for i in row
    }


def test_samples_and_clusters() -> None:
    x, _, ends, _ = clouds()
    chosen = torch.ops.pyg.fps(x, ends, 0.25, False)
    assert chosen.tolist()[0] == 0
    assert chosen.tolist()[5] == 20
    assert (chosen < 20).sum() == 5
    assert len(chosen) == 15
    pos = torch.tensor([[0.1, 0.2], [1.2, 0.1], [0.9, 2.4]])
    assert torch.ops.pyg.grid_cluster(
        pos, torch.tensor([1.0, 1.0]), torch.zeros(2), torch.tensor([2.0, 3.0])
    ).tolist() == [
        0,
        1,
        6,
    ]
    rowptr, col = torch.tensor([0, 1, 3, 4, 4]), torch.tensor([1, 0, 2, 1])
    cluster = torch.ops.pyg.graclus_cluster(rowptr, col, torch.tensor([1.0, 1.0, 5.0, 5.0])).tolist()
    assert cluster[3] == 3
    assert cluster in ([0, 1, 1, 3], [0, 0, 2, 3])  # vertex 0 may be the first
    walks = torch.ops.pyg.random_walk(rowptr, col, torch.tensor([0, 3]), 3, 1.0, 1.0)
    assert walks[1].tolist() == [3, 3, 3, 3]
    assert all(b in col[rowptr[a] : rowptr[a + 1]].tolist() for a, b in itertools.pairwise(walks[0].tolist()))


def test_products() -> None:
    torch.manual_seed(0)
    inputs, ptr = torch.randn(8, 4, requires_grad=True), torch.tensor([0, 5, 5, 8])
    matrices, bias = torch.randn(3, 4, 6, requires_grad=True), torch.randn(3, 6)
    expected = torch.stack([inputs[i] @ matrices[k] + bias[k] for i, k in enumerate([0] * 5 + [2] * 3)])
    found = ops.segment_matmul(inputs, ptr, matrices, bias)
    torch.testing.assert_close(found, expected)
    for got, want in zip(
        torch.autograd.grad(found.sum(), (inputs, matrices)),
        torch.autograd.grad(expected.sum(), (inputs, matrices)),
        strict=True,
    ):
        torch.testing.assert_close(got, want)
    for got, (a, b) in zip(
        torch.ops.pyg.grouped_matmul([inputs[:2], inputs[2:]], [matrices[0], matrices[1]]),
        ((inputs[:2], matrices[0]), (inputs[2:], matrices[1])),
        strict=True,
    ):
        torch.testing.assert_close(got, a @ b)
    index = torch.tensor([3, 3, 0])
    assert torch.equal(torch.ops.pyg.sampled_op(inputs, inputs[:3], index, None, "sub"), inputs[index] - inputs[:3])
    assert torch.equal(ops.sampled_mul(inputs, inputs[:3], index), inputs[index] * inputs[:3])


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_of_segments(dim: int) -> None:
    src = torch.randn(6, 6, 6, dtype=torch.double, requires_grad=True)
    ptr = torch.tensor([0, 2, 2, 5, 6])
    found = ops.softmax_csr(src, ptr, dim)
    expected = torch.cat([part.softmax(dim) for part in src.split([2, 3, 1], dim)], dim)
    torch.testing.assert_close(found, expected)
    grad = torch.randn_like(found)
    torch.testing.assert_close(*(torch.autograd.grad(result, src, grad)[0] for result in (found, expected)))


def test_reductions_that_differ_from_torch_scatter() -> None:
    src, index = torch.tensor([1.0, 4.0, 2.0, 7.0]), torch.tensor([0, 0, 2, 0])
    expected = [float(torch.tensor([1.0, 4.0, 7.0]).std()), 0.0, 0.0]
    torch.testing.assert_close(ops.scatter_std(src, index), torch.tensor(expected))
    out = torch.full((3,), 9.0)
    ops.scatter_logsumexp(src, index, out=out)
    torch.testing.assert_close(out, torch.tensor([math.log(math.e + math.e**4 + math.e**7), 9.0, 2.0]))
    assert torch.equal(torch.ops.pyg.scatter_max(src, index, 0, None, 3)[1], torch.tensor([3, 4, 2]))


def b_spline(v: float, degree: int, piece: int) -> float:
    """The closed forms of the uniform B-splines' pieces."""
    return [
        [1 - v, v],
        [0.5 * (1 - v) ** 2, 0.5 + v - v * v, 0.5 * v * v],
        [(1 - v) ** 3 / 6, (3 * v**3 - 6 * v * v + 4) / 6, (-3 * v**3 + 3 * v * v + 3 * v + 1) / 6, v**3 / 6],
    ][degree - 1][piece]


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_splines(degree: int) -> None:
    torch.manual_seed(0)
    pseudo, sizes, is_open = torch.rand(7, 2, dtype=torch.double), torch.tensor([5, 6]), torch.tensor([1, 0])
    basis, number = torch.ops.pyg.spline_basis(pseudo, sizes, is_open.byte(), degree)
    for edge, point in enumerate(pseudo.tolist()):
        for column, (k1, k0) in enumerate(itertools.product(range(degree + 1), repeat=2)):
            positions = [v * (int(s) - degree * int(o)) for v, s, o in zip(point, sizes, is_open, strict=True)]
            value = math.prod(b_spline(p % 1, degree, k) for p, k in zip(positions, (k0, k1), strict=True))
            assert float(basis[edge, column]) == pytest.approx(value)
            cells = [(int(p) + k) % int(s) for p, k, s in zip(positions, (k0, k1), sizes, strict=True)]
            assert int(number[edge, column]) == cells[0] + 5 * cells[1]
    x, weight = torch.rand(7, 3, dtype=torch.double), torch.rand(30, 3, 4, dtype=torch.double)
    found = torch.ops.pyg.spline_weighting(x, weight, basis, number)
    expected = sum(basis[2, s] * (x[2] @ weight[number[2, s]]) for s in range(basis.shape[1]))
    torch.testing.assert_close(found[2], expected)


def cycle() -> tuple[Tensor, Tensor]:
    """A ring of six vertices, each with an edge to both neighbours."""
    col = [[(i - 1) % 6, (i + 1) % 6] for i in range(6)]
    return torch.arange(0, 13, 2), torch.tensor([sorted(c) for c in col]).flatten()


def test_all_neighbours() -> None:
    """By hand: the neighbours of 2 are 1 and 3, those of 3 are 2 and 4."""
    row, col, node, edge, nodes, edges = torch.ops.pyg.neighbor_sample(*cycle(), torch.tensor([2, 3]), [-1, -1])
    assert row.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert col.tolist() == [2, 1, 0, 3, 4, 0, 1, 5]
    assert node.tolist() == [2, 3, 1, 4, 0, 5]
    assert edge.tolist() == [4, 5, 6, 7, 2, 3, 8, 9]
    assert (nodes, edges) == ([2, 2, 2], [4, 4])
    swapped = torch.ops.pyg.neighbor_sample(*cycle(), torch.tensor([2, 3]), [-1, -1], csc=True)
    assert torch.equal(swapped[0], col)
    assert torch.equal(swapped[1], row)
    trees = torch.ops.pyg.neighbor_sample(*cycle(), torch.tensor([2, 3]), [2], disjoint=True)[2]
    assert trees.tolist() == [[0, 2], [1, 3], [0, 1], [0, 3], [1, 2], [1, 4]]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_some_neighbours(replace: bool, weighted: bool) -> None:
    torch.manual_seed(0)
    rowptr = torch.tensor([0, 5, 6, 6, 6, 6, 6])
    col = torch.tensor([1, 2, 3, 4, 5, 0])
    weight = torch.tensor([1.0, 0.0, 0.0, 2.0, 3.0, 1.0]) if weighted else None
    counts = torch.zeros(6)
    for _ in range(200):
        row, column, node, edge, *_ = sampler.neighbor_sample(
            rowptr, col, torch.tensor([0, 1]), [3], edge_weight=weight, replace=replace
        )
        assert (row == 0).sum() == 3
        assert (row == 1).sum() == (3 if replace else 1)
        assert torch.equal(node[column], col[edge])
        assert replace or len(edge.unique()) == len(edge)
        counts += edge[row == 0].bincount(minlength=6)
    if not weighted:
        assert bool((counts[:5] > 80).all())
    elif replace:
        torch.testing.assert_close(counts[:5] / 600, torch.tensor([1, 0, 0, 2, 3]) / 6, atol=0.06, rtol=0)
    else:
        assert counts[:5].tolist() == [200, 0, 0, 200, 200]


def test_neighbours_by_time() -> None:
    rowptr, col = torch.tensor([0, 4, 4, 4, 4, 4]), torch.tensor([1, 2, 3, 4])
    time = torch.tensor([10, 1, 2, 3, 30])
    sample = torch.ops.pyg.neighbor_sample
    args = (rowptr, col, torch.tensor([0]))
    assert sample(*args, [-1], node_time=time, disjoint=True)[3].tolist() == [0, 1, 2]
    assert sample(*args, [2], node_time=time, disjoint=True, temporal_strategy="last")[3].tolist() == [1, 2]
    of_edges = sample(*args, [-1], edge_time=torch.arange(4), seed_time=torch.tensor([1]), disjoint=True)
    assert of_edges[3].tolist() == [0, 1]
    with pytest.raises(ValueError, match="disjoint: expected True for samples by time"):
        sample(*args, [1], node_time=time)


def test_neighbours_of_types() -> None:
    kinds = [("user", "rates", "film"), ("film", "of", "user")]
    graphs = {
        kinds[0]: (torch.tensor([0, 2, 3]), torch.tensor([1, 0, 2])),
        kinds[1]: (torch.arange(4), torch.tensor([1, 1, 0])),
    }
    rows, columns, nodes, edges, per_hop, _ = sampler.hetero_neighbor_sample(
        {k: v[0] for k, v in graphs.items()},
        {k: v[1] for k, v in graphs.items()},
        {"user": torch.tensor([0])},
        {kind: [-1, -1] for kind in kinds},
    )
    assert {k: v.tolist() for k, v in nodes.items()} == {"user": [0, 1], "film": [1, 0]}
    assert rows[kinds[0]].tolist() == [0, 0]
    assert columns[kinds[1]].tolist() == [1, 1]
    assert edges is not None
    assert edges[kinds[1]].tolist() == [1, 0]
    assert per_hop == {"user": [1, 0, 1], "film": [0, 2, 0]}


def test_subgraphs() -> None:
    rowptr, col = cycle()
    ends, columns, edges = torch.ops.pyg.subgraph(rowptr, col, torch.tensor([3, 2, 5]), True)
    assert ends.tolist() == [0, 1, 2, 2]
    assert columns.tolist() == [1, 0]
    assert edges.tolist() == [6, 5]
    assert ops.edge_sample(torch.tensor([1]), rowptr, 1)[0] in (2, 3)


def test_wrong_arguments() -> None:
    x, y, ends, _ = clouds()
    with pytest.raises(ValueError, match=r"knn: ptr_y: expected ascending numbers from 0 to 25, got \[0, 20, 20, 60\]"):
        torch.ops.pyg.knn(x, y, ends, ends, 4)
    with pytest.raises(ValueError, match="expected both ptr_x and ptr_y"):
        ops.radius(x, y, 1.0, ends)
    with pytest.raises(ValueError, match="nearest: y: expected a point in each cloud"):
        ops.nearest(y, x, torch.tensor([0, 10, 12, 25]), ends)
