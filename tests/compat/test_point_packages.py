# SPDX-License-Identifier: Apache-2.0
"""knn_cuda, chamfer, chamferdist, pointops, pointnet2_cuda and bev_pool_v2_ext, compared with loops."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from polyop.compat import bev_pool_v2_ext, chamfer, chamferdist, knn_cuda, pointnet2_cuda, pointops, pointops_cuda
from tests.support.processes import environment, run


@pytest.mark.parametrize("axes", [3, 5])
def test_knn_cuda(axes: int) -> None:
    torch.manual_seed(0)
    ref, query = torch.rand(2, 30, axes), torch.rand(2, 7, axes)
    expected, index = torch.cdist(query.double(), ref.double()).topk(4, largest=False)
    distances, found = knn_cuda.KNN(4, transpose_mode=True)(ref, query)
    torch.testing.assert_close(distances, expected.float())
    assert torch.equal(found, index)
    distances, found = knn_cuda.KNN(4)(ref.mT, query.mT)
    assert torch.equal(found, index.mT)
    assert torch.equal(knn_cuda.knn(ref[0].mT, query[0].mT, 4)[1], index[0].mT)
    with pytest.raises(ValueError, match="k: expected 1 to 30, the number of points, got 31"):
        knn_cuda.KNN(31)(ref.mT, query.mT)


def test_chamfer() -> None:
    torch.manual_seed(0)
    a, b = torch.rand(2, 8, 3, requires_grad=True), torch.rand(2, 11, 3, requires_grad=True)
    squares = torch.cdist(a, b).square()
    of_a, of_b, _, index_b = chamfer.forward(a.detach(), b.detach())
    torch.testing.assert_close(of_a, squares.min(2)[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(of_b, squares.min(1)[0], rtol=1e-4, atol=1e-5)
    assert torch.equal(index_b.long(), squares.min(1)[1])
    grads = torch.rand(2, 8), torch.rand(2, 11)
    found = chamfer.backward(a.detach(), b.detach(), *chamfer.forward(a.detach(), b.detach())[2:], *grads)
    total = ((a[:, :, None] - b[:, None]).square().sum(3).min(2)[0] * grads[0]).sum()
    total = total + ((a[:, :, None] - b[:, None]).square().sum(3).min(1)[0] * grads[1]).sum()
    for got, want in zip(found, torch.autograd.grad(total, (a, b)), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_chamferdist() -> None:
    torch.manual_seed(0)
    a, b = (torch.rand(2, n, 4, dtype=torch.double, requires_grad=True) for n in (6, 9))
    squares = (a[:, :, None] - b[:, None]).square().sum(3)
    layer = chamferdist.ChamferDistance()
    for options, expected in (
        ({}, squares.min(2)[0].sum(1).mean()),
        ({"reverse": True}, squares.min(1)[0].sum(1).mean()),
        ({"bidirectional": True, "point_reduction": "mean"}, squares.min(2)[0].mean() + squares.min(1)[0].mean()),
    ):
        found = layer(a, b, **options)
        torch.testing.assert_close(found, expected)
        for got, want in zip(
            torch.autograd.grad(found, (a, b)), torch.autograd.grad(expected, (a, b), retain_graph=True), strict=True
        ):
            torch.testing.assert_close(got, want)
    lengths = torch.tensor([2, 9])
    found = chamferdist.knn_points(a, b, torch.tensor([6, 3]), lengths, K=3, return_nn=True)
    assert found.idx[0, :, 2].tolist() == [0] * 6
    assert found.dists[1, 3:].eq(0).all()
    assert torch.equal(found.idx[1, :3], squares[1, :3].topk(3, largest=False)[1])
    assert found.knn is not None
    assert torch.equal(found.knn[0, :, :2], b[0][found.idx[0, :, :2]])
    assert found.knn[0, :, 2].eq(0).all()
    assert torch.equal(chamferdist.knn_gather(b, found.idx, lengths)[0], found.knn[0])


def stacked() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.rand(30, 3), torch.tensor([12, 30]), torch.rand(9, 3), torch.tensor([4, 9])


def test_pointops() -> None:
    xyz, offset, queries, new_offset = stacked()
    idx, distances = pointops.knn_query(14, xyz, offset, queries, new_offset)
    for row, (first, last) in ((1, (0, 12)), (7, (12, 30))):
        near = torch.cdist(queries[row : row + 1].double(), xyz[first:last].double())[0]
        count = min(14, last - first)
        order = near.argsort()[:count]
        assert idx[row].tolist() == (order + first).tolist() + [-1] * (14 - count)
        torch.testing.assert_close(distances[row, :count].double(), near[order], rtol=1e-4, atol=1e-5)
        assert distances[row, count:].eq(1e5).all()
    inside, _ = pointops.ball_query(4, 0.5, 0.2, xyz, offset, queries, new_offset)
    near = torch.cdist(queries[5].double()[None], xyz[12:].double())[0]
    candidates = [i for i in near.argsort().tolist() if 0.2 <= near[i] < 0.5]
    step = len(candidates) / 4 if len(candidates) > 4 else 1
    chosen = [candidates[int(step * i)] + 12 if step * i < len(candidates) else -1 for i in range(4)]
    assert inside[5].tolist() == chosen
    random, _ = pointops.random_ball_query(4, 0.5, 0.2, xyz, offset, queries, new_offset)
    assert {i - 12 for i in random[5].tolist() if i >= 0} <= set(candidates)
    sampled = pointops.farthest_point_sampling(xyz, offset, torch.tensor([3, 5])).tolist()
    assert (sampled[0], sampled[3]) == (0, 12)
    assert len(set(sampled)) == 5
    features = torch.rand(30, 6)
    grouped = pointops.grouping(idx, features, xyz, queries, with_xyz=True)
    assert grouped[1, 13].eq(0).all()
    torch.testing.assert_close(grouped[7, 2], torch.cat([xyz[idx[7, 2]] - queries[7], features[idx[7, 2]]]))
    few, distance = pointops.knn_query(3, xyz, offset, queries, new_offset)
    weight = 1 / (distance[4] + 1e-8)
    expected = (features[few[4].long()] * (weight / weight.sum())[:, None]).sum(0)
    torch.testing.assert_close(pointops.interpolation(xyz, queries, features, offset, new_offset)[4], expected)
    spread = pointops.query_and_group(3, xyz, queries, features, None, offset, new_offset, dilation=1)[1]
    assert torch.equal(spread[7], idx[7, [0, 2, 4]])
    assert pointops.offset2batch(offset).bincount().tolist() == [12, 18]
    assert torch.equal(pointops.batch2offset(pointops.offset2batch(offset)), offset.int())


def test_layers_of_pointops() -> None:
    torch.manual_seed(0)
    n, samples, channels, shares = 5, 3, 4, 2
    input, position = torch.rand(n, channels), torch.rand(n, samples, channels)
    weight, idx = torch.rand(n, samples, channels // shares), torch.randint(0, n, (n, samples))
    found = pointops.aggregation(input, position, weight, idx)
    expected = torch.zeros(n, channels)
    for i in range(n):
        for s in range(samples):
            for c in range(channels):
                expected[i, c] += (input[idx[i, s], c] + position[i, s, c]) * weight[i, s, c % (channels // shares)]
    torch.testing.assert_close(found, expected)
    output = torch.zeros(n, channels)
    pointops_cuda.aggregation_forward_cuda(n, samples, channels, 2, input, position, weight, idx, output)
    torch.testing.assert_close(output, expected)
    leaves = [t.clone().requires_grad_() for t in (input, position, weight)]
    grad = torch.rand(n, channels)
    of_formula = torch.autograd.grad(pointops.aggregation(*leaves, idx), leaves, grad)
    into = [torch.zeros_like(t) for t in leaves]
    pointops_cuda.aggregation_backward_cuda(n, samples, channels, 2, input, position, weight, idx, grad, *into)
    for got, want in zip(into, of_formula, strict=True):
        torch.testing.assert_close(got, want)
    queries, keys, scale = torch.rand(n, 2, 3), torch.rand(n, 2, 3), torch.rand(3)
    target, refer = torch.tensor([0, 0, 4]), torch.tensor([1, 2, 2])
    relation = pointops.attention_relation_step(queries, keys, scale, target, refer)
    torch.testing.assert_close(relation[1, 1], (queries[0, 1] * keys[2, 1] * scale).sum())
    fused = pointops.attention_fusion_step(relation, keys, target, refer)
    torch.testing.assert_close(fused[0], relation[0][:, None] * keys[1] + relation[1][:, None] * keys[2])


def test_the_compiled_part_of_pointops() -> None:
    xyz, offset, queries, new_offset = stacked()
    idx, squares = torch.zeros(9, 14, dtype=torch.int32), torch.zeros(9, 14)
    pointops_cuda.knnquery_cuda(9, 14, xyz, queries, offset.int(), new_offset.int(), idx, squares)
    assert idx[0, 12:].tolist() == [0, 0]
    assert idx[8].min() >= 12
    torch.testing.assert_close(squares[8, 3], (xyz[idx[8, 3]] - queries[8]).square().sum())
    features = torch.rand(30, 6)
    few, weight = idx[:, :3].contiguous(), torch.rand(9, 3)
    output, grad = torch.zeros(9, 6), torch.zeros(30, 6)
    pointops_cuda.interpolation_forward_cuda(9, 6, 3, features, few, weight, output)
    torch.testing.assert_close(output[2], (features[few[2].long()] * weight[2][:, None]).sum(0))
    pointops_cuda.interpolation_backward_cuda(9, 6, 3, torch.ones(9, 6), few, weight, grad)
    sums = torch.zeros(30).index_add_(0, few.flatten().long(), weight.flatten())
    torch.testing.assert_close(grad[:, 0], sums)


def test_pointnet2_cuda() -> None:
    torch.manual_seed(0)
    points, idx = torch.rand(2, 20, 3), torch.zeros(2, 4, dtype=torch.int32)
    pointnet2_cuda.furthest_point_sampling_wrapper(2, 20, 4, points, torch.full((2, 20), 1e10), idx)
    assert idx[:, 0].tolist() == [0, 0]
    assert len(set(idx[0].tolist())) == 4
    features, out = torch.rand(2, 5, 20), torch.zeros(2, 5, 4)
    pointnet2_cuda.gather_points_wrapper(2, 5, 20, 4, features, idx, out)
    assert torch.equal(out[1, :, 3], features[1, :, idx[1, 3]])


def test_python_code_that_allocates_on_a_gpu(tmp_path: Path) -> None:
    """That of Pointnet2.PyTorch and Point Transformer, in whichever package it is."""
    (tmp_path / "lib/pointnet2").mkdir(parents=True)
    (tmp_path / "lib/pointnet2/pointnet2_utils.py").write_text(
        "import torch, pointnet2_cuda as p\n"
        "def sample(xyz, n):\n"
        "  idx = torch.cuda.IntTensor(1, n)\n"
        "  p.furthest_point_sampling_wrapper(1, len(xyz[0]), n, xyz, torch.cuda.FloatTensor(1, 9), idx)\n"
        "  return idx\n"
    )
    code = (
        "import polyop.compat as c, torch; c.install('pointnet2_cuda')\n"
        "from lib.pointnet2.pointnet2_utils import sample\n"
        "print(sample(torch.eye(3)[None], 2).tolist())"
    )
    assert run(sys.executable, "-c", code, env=environment(tmp_path)).strip() in ("[[0, 1]]", "[[0, 2]]")


def test_bev_pool_v2() -> None:
    torch.manual_seed(0)
    depth, feat = torch.rand(1, 2, 3, 2, 4), torch.rand(1, 2, 2, 4, 5)
    ranks_depth = torch.randperm(48)[:20]
    ranks_feat = ranks_depth // 24 * 8 + ranks_depth % 8
    ranks_bev = torch.randint(0, 12, (20,)).sort()[0]
    starts = torch.tensor([0, *((ranks_bev[1:] != ranks_bev[:-1]).nonzero()[:, 0] + 1).tolist()])
    lengths = torch.diff(starts, append=torch.tensor([20]))
    out = torch.zeros(1, 2, 2, 3, 5)
    ranks = (ranks_depth.int(), ranks_feat.int(), ranks_bev.int())
    bev_pool_v2_ext.bev_pool_v2_forward(depth, feat, out, *ranks, lengths.int(), starts.int())
    leaves = [depth.clone().requires_grad_(), feat.clone().requires_grad_()]
    rows = leaves[0].flatten()[ranks_depth][:, None] * leaves[1].flatten(0, -2)[ranks_feat]
    expected = torch.zeros(12, 5).index_add(0, ranks_bev, rows).view(out.shape)
    torch.testing.assert_close(out, expected)
    grad = torch.rand_like(out)
    order = ranks_feat.argsort()
    sorted_ranks = tuple(r[order].int() for r in (ranks_depth, ranks_feat, ranks_bev))
    begins = torch.tensor([0, *((sorted_ranks[1].diff() != 0).nonzero()[:, 0] + 1).tolist()])
    found = torch.zeros_like(depth), torch.zeros_like(feat)
    sizes = torch.diff(begins, append=torch.tensor([20]))
    bev_pool_v2_ext.bev_pool_v2_backward(grad, *found, depth, feat, *sorted_ranks, sizes.int(), begins.int())
    for got, want in zip(found, torch.autograd.grad(expected, leaves, grad), strict=True):
        torch.testing.assert_close(got, want)


def test_a_compiled_part_in_any_package(tmp_path: Path) -> None:
    (tmp_path / "plugin/ops").mkdir(parents=True)
    (tmp_path / "plugin/ops/__init__.py").write_text("from . import bev_pool_v2_ext")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/__init__.py").write_text("")
    (tmp_path / "own/bev_pool_v2_ext.py").write_text("mine = 1")
    code = (
        "import polyop.compat as c; c.install('bev_pool_v2_ext')\n"
        "from plugin.ops import bev_pool_v2_ext as a; import bev_pool_v2_ext as b; from own import bev_pool_v2_ext as d\n"
        "print(a is b, a.__spec__.name, d.mine)"
    )
    said = run(sys.executable, "-c", code, env=environment(tmp_path)).strip()
    assert said == "True polyop.compat.bev_pool_v2_ext 1"
