# SPDX-License-Identifier: Apache-2.0
"""Indices around 2^24, which float32 does not hold exactly, and around 2^31, on the GPU.

Results are compared with PyTorch, or with those of a part of the input.
"""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import polyop

BEYOND = 2**31
EXACT = 2**24
HALF = torch.float16


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """One test at a time uses much memory, also if several processes run tests."""
    with Path(tempfile.gettempdir(), "polyop-large-tests.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
        torch.cuda.empty_cache()


@pytest.fixture
def has_memory(not_run: Callable[[str], None]) -> Callable[[float], bool]:
    def check(gibibytes: float) -> bool:
        free = torch.cuda.mem_get_info()[0] / 2**30
        if free < gibibytes:
            not_run(f"the GPU has {free:.0f} GiB of free memory, and the test needs {gibibytes:.0f}")
        return free >= gibibytes

    return check


Memory = Callable[[float], bool]


def rand(*shape: int, dtype: torch.dtype = HALF) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.rand(*shape, dtype=dtype, device="cuda")


def expect_same(got: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=0)


def last_row(rows: int) -> torch.Tensor:
    return torch.tensor([[rows - 1, 0, rows - 3, rows - 2]], dtype=torch.int32, device="cuda")


def test_elementwise(has_memory: Memory) -> None:
    if not has_memory(16):
        return
    a, b = rand(BEYOND // 1024 + 3, 1024), rand(1, 1024)
    got = torch.ops.polyop.my_add(a, b)
    assert got.numel() > BEYOND
    for part in (slice(0, 3), slice(BEYOND // 1024 - 2, None)):
        torch.testing.assert_close(got[part], (2 * a[part].float() + b.float()).to(HALF))


def test_rows_of_a_gather(has_memory: Memory) -> None:
    if not has_memory(4):
        return
    rows = BEYOND // 1024 + 8
    data = torch.zeros(1, rows, 1024, dtype=torch.uint8, device="cuda")
    data[0, rows - 3 :] = torch.arange(1, 4, device="cuda")[:, None]
    got = torch.ops.polyop.gather_topk(data, last_row(rows))
    assert got[0, :, 0].tolist() == got[0, :, -1].tolist() == [3, 0, 1, 2]


def test_gather_points(has_memory: Memory) -> None:
    if not has_memory(8):
        return
    channels = 129
    features = rand(1, channels, BEYOND // channels + 2)
    assert features.numel() > BEYOND
    idx = last_row(features.shape[2])
    expect_same(polyop.gather_points(features, idx), features[:, :, idx[0].long()])


def test_segments(has_memory: Memory) -> None:
    if not has_memory(16):
        return
    src = rand(BEYOND // 64 + 9, 64)
    rows = len(src)
    indptr = torch.tensor([0, 5, rows - 7, rows - 7, rows - 3, rows], device="cuda")
    got = polyop.segment_csr(src, indptr, "sum")
    expected = torch.stack([src[:5].float().sum(0), src[-7:-3].float().sum(0), src[-3:].float().sum(0)]).to(HALF)
    torch.testing.assert_close(got[[0, 3, 4]], expected)
    assert not got[2].any()


def test_softmax(has_memory: Memory) -> None:
    if not has_memory(16):
        return
    x = rand(BEYOND // 65537 + 2, 65537)
    got = torch.ops.polyop.softmax(x, axis=1)
    for part in (slice(0, 2), slice(-2, None)):
        torch.testing.assert_close(got[part].float(), x[part].float().softmax(1), rtol=2e-3, atol=1e-7)


def test_grid_sampler_of_a_large_image(has_memory: Memory) -> None:
    if not has_memory(12):
        return
    x = rand(BEYOND // (64 * 1024 * 1031) + 2, 64, 1024, 1031)
    assert x.numel() > BEYOND
    grid = rand(len(x), 5, 3, 2) * 2.2 - 1.1
    expect_same(polyop.grid_sample(x, grid)[-1:], polyop.grid_sample(x[-1:], grid[-1:]))
    expected = F.grid_sample(x[-1:].float(), grid[-1:].float(), align_corners=False)
    torch.testing.assert_close(polyop.grid_sample(x, grid)[-1:].float(), expected, rtol=2e-2, atol=2e-2)


def test_grid_sampler_with_a_large_result(has_memory: Memory) -> None:
    if not has_memory(16):
        return
    x, grid = rand(1, 64, 5, 7), rand(1, BEYOND // (64 * 4099) + 2, 4099, 2) * 2.2 - 1.1
    got = polyop.grid_sample(x, grid)
    assert got.numel() > BEYOND
    expect_same(got[:, :, -2:], polyop.grid_sample(x, grid[:, -2:]))
    expected = F.grid_sample(x.float(), grid[:, -2:].float(), align_corners=False)
    torch.testing.assert_close(got[:, :, -2:].float(), expected, rtol=2e-2, atol=2e-2)


def test_roi_align_of_a_large_image(has_memory: Memory) -> None:
    if not has_memory(12):
        return
    x = rand(BEYOND // (64 * 1024 * 1031) + 2, 64, 1024, 1031)
    rois = torch.tensor([[len(x) - 1, 1000, 1000, 1030, 1023], [0, 3, 4, 50, 60]], dtype=HALF, device="cuda")
    got = polyop.roi_align(x, rois, (7, 7), 1.0, 2)
    zeroth = rois * torch.tensor([0, 1, 1, 1, 1], dtype=HALF, device="cuda")
    expect_same(got[:1], polyop.roi_align(x[-1:], zeroth[:1], (7, 7), 1.0, 2))
    expect_same(got[1:], polyop.roi_align(x[:1], zeroth[1:], (7, 7), 1.0, 2))
    assert got[0].any()


def test_roi_align_with_a_large_result(has_memory: Memory) -> None:
    if not has_memory(12):
        return
    count = BEYOND // (64 * 49) + 3
    x, corners = rand(1, 64, 9, 9), rand(count, 2) * 4
    rois = torch.cat([torch.zeros(count, 1, dtype=HALF, device="cuda"), corners, corners + 3], 1)
    got = polyop.roi_align(x, rois, (7, 7), 1.0, 2)
    assert got.numel() > BEYOND
    expect_same(got[-5:], polyop.roi_align(x, rois[-5:], (7, 7), 1.0, 2))
    assert got[-1].any()


def test_deformable_convolution(has_memory: Memory) -> None:
    """Each plane has more than 2^24 pixels, and all planes together more than 2^31."""
    if not has_memory(20):
        return
    side = 4099
    channels = BEYOND // side**2 + 2
    x, weight = rand(1, channels, side, side), rand(5, channels, 3, 3)
    assert x.numel() > BEYOND
    offset = (rand(1, 18, side - 2, side - 2) * 8).floor() / 4 - 1  # exact at any position
    mask = rand(1, 9, side - 2, side - 2)
    got = polyop.modulated_deform_conv2d(x, offset, mask, weight)
    part = slice(side - 12, None)
    expected = polyop.modulated_deform_conv2d(
        x[:, :, part, part], offset[:, :, part, part], mask[:, :, part, part], weight
    )
    torch.testing.assert_close(got[:, :, -6:, -6:], expected[:, :, -6:, -6:], rtol=2e-3, atol=2e-3)


def test_deformable_attention(has_memory: Memory) -> None:
    if not has_memory(8):
        return
    side, heads = 1024, 8
    size = BEYOND // (side * side * heads) + 8
    value = torch.zeros(1, side * side, heads, size, dtype=HALF, device="cuda")
    value[0, -1, -1, -1] = 2
    assert value.numel() > BEYOND
    shapes, starts = torch.tensor([[side, side]], device="cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
    locations = torch.ones(1, 1, heads, 1, 1, 2, dtype=HALF, device="cuda")  # a quarter of the last pixel
    weights = torch.ones(1, 1, heads, 1, 1, dtype=HALF, device="cuda")
    got = polyop.ms_deform_attn(value, shapes, starts, locations, weights)
    assert got[0, 0, -1] == 0.5
    assert int(got.count_nonzero()) == 1


def test_gradient_of_a_large_image(has_memory: Memory) -> None:
    if not has_memory(20):
        return
    x = rand(BEYOND // (64 * 1024 * 1031) + 2, 64, 1024, 1031).requires_grad_()
    rois = torch.tensor([[len(x) - 1, 1000, 1000, 1030, 1023]], dtype=HALF, device="cuda")
    polyop.roi_align(x, rois, (7, 7), 1.0, 2).sum().backward()
    part = x.detach()[-1:].clone().requires_grad_()
    polyop.roi_align(
        part, rois * torch.tensor([0, 1, 1, 1, 1], dtype=HALF, device="cuda"), (7, 7), 1.0, 2
    ).sum().backward()
    torch.testing.assert_close(x.grad[-1:], part.grad, rtol=2e-3, atol=2e-3)
    assert part.grad.any()
    assert not x.grad[0].any()


# ---- around 2^24 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [-1, 0, 1, 3])
def test_cumulative_maxima(extra: int) -> None:
    x = torch.arange(EXACT + extra, device="cuda").remainder(1009).float().repeat(2, 1)
    x[:, -2:] = torch.tensor([2000.0, 3000], device="cuda")
    got = polyop.cummax(x, 1)
    expected = torch.cummax(x, 1)
    expect_same(got[0], expected.values)
    assert got[1][:, -2:].tolist() == [[EXACT + extra - 2, EXACT + extra - 1]] * 2
    expect_same(x.gather(1, got[1]), got[0])


def test_nearest_neighbours_of_many_points() -> None:
    target = rand(1, EXACT + 3, 3, dtype=torch.float32)
    source = rand(1, 5, 3, dtype=torch.float32)
    dist, idx = torch.ops.polyop.three_nn(target, source)
    expected = torch.cdist(target[:, -7:].double(), source.double()).topk(3, largest=False)
    expect_same(idx[:, -7:].long(), expected.indices)
    reached = dist[:, -7:].double()
    squared = torch.allclose(reached, expected.values.square(), atol=1e-5)
    assert squared or torch.allclose(reached, expected.values, atol=1e-5)


def test_index_of_the_last_of_many_neighbours() -> None:
    source = torch.full((1, EXACT + 5, 3), 9.0, device="cuda")
    source[0, -3:] = torch.tensor([[0.0, 0, 0], [0, 0, 1], [0, 0, 3]], device="cuda")
    _, idx = torch.ops.polyop.three_nn(torch.zeros(1, 2, 3, device="cuda"), source)
    assert idx.tolist() == [[[EXACT + 2, EXACT + 3, EXACT + 4]] * 2]


@pytest.mark.parametrize("reduce", ["max", "sum"])
def test_voxels_of_many_points(reduce: str) -> None:
    count = EXACT + 5
    index = torch.arange(count, device="cuda")
    coors = torch.stack([index % 7, index % 11, index % 13], 1).int()
    feats = (index % 3).float()[:, None]
    voxel_feats, voxel_coors, point2voxel, counts = polyop.dynamic_scatter(feats, coors, reduce)
    assert len(voxel_feats) == 7 * 11 * 13
    expect_same(voxel_coors[point2voxel.long()], coors)
    expect_same(counts.long(), torch.bincount(point2voxel.long()))
    expected = torch.zeros(len(voxel_feats), dtype=torch.float64, device="cuda")
    if reduce == "sum":
        expected.index_add_(0, point2voxel.long(), feats[:, 0].double())
    else:
        expected += 2
    expect_same(voxel_feats[:, 0].double(), expected)


def test_suppression_of_many_boxes(has_memory: Memory) -> None:
    """Pairs of boxes: each box suppresses one other box."""
    if not has_memory(6):
        return
    pairs = 50_003
    corner = torch.stack([torch.arange(pairs) % 317, torch.arange(pairs) // 317], 1).float() * 10
    boxes = torch.cat([corner, corner + 8], 1).repeat_interleave(2, 0)
    scores = torch.randperm(2 * pairs, generator=torch.Generator().manual_seed(0)).float() / (2 * pairs)
    better = scores.view(pairs, 2).argmax(1) + 2 * torch.arange(pairs)
    expected = better[scores[better].argsort(descending=True)]
    got = polyop.nms(boxes.cuda(), scores.cuda(), 0.5)
    expect_same(got.cpu(), expected)


def test_a_plane_beyond_32_bits_is_refused(has_memory: Memory) -> None:
    if not has_memory(6):
        return
    x, grid = torch.empty(1, 1, 65536, 32769, dtype=HALF, device="cuda"), rand(1, 1, 1, 2)
    with pytest.raises(RuntimeError, match=r"'input': expected .* got shape \[1, 1, 65536, 32769\]"):
        polyop.grid_sample(x, grid)
