# SPDX-License-Identifier: Apache-2.0
"""`mmcv.ops` on boxes and polygons with polyop as its compiled module, compared with NumPy in double precision."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest
import torch

from polyop.compat.mmcv_ext.boxes import line_nms_forward
from tests.support.openmmlab import mmcv_ops


@pytest.fixture(scope="module")
def ops() -> Iterator[ModuleType]:
    with mmcv_ops() as module:
        yield module


def cross(o: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    return float((a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]))


def area(points: list) -> float:
    if len(points) < 3:
        return 0.0
    x, y = np.asarray(points).T
    return 0.5 * float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))


def hull(points: np.ndarray) -> list:
    """Andrew's monotone chain, counter-clockwise."""
    ordered = sorted(map(tuple, points))
    chains = []
    for sequence in (ordered, ordered[::-1]):
        chain: list = []
        for p in sequence:
            while len(chain) > 1 and cross(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        chains += chain[:-1]
    return chains


def clipped(subject: list, clip: list) -> list:
    """Sutherland-Hodgman clipping."""
    for a, b in zip(clip, clip[1:] + clip[:1], strict=True):
        kept = []
        for p, q in zip(subject, subject[1:] + subject[:1], strict=True):
            side_p, side_q = cross(a, b, p), cross(a, b, q)
            if side_p >= 0:
                kept.append(p)
            if side_p * side_q < 0:
                part = side_p / (side_p - side_q)
                kept.append((p[0] + part * (q[0] - p[0]), p[1] + part * (q[1] - p[1])))
        subject = kept
        if not subject:
            return []
    return subject


def corners(box: np.ndarray) -> list:
    x, y, w, h, angle = (float(v) for v in box)
    c, s = math.cos(angle), math.sin(angle)
    return [
        (x + c * i * w - s * j * h, y + s * i * w + c * j * h)
        for i, j in ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))
    ]


def iou(a: list, b: list, mode: str = "iou") -> float:
    shared = area(clipped(a, b))
    return shared / (area(a) + area(b) - shared if mode == "iou" else area(a))


def rotated_boxes(count: int, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    return torch.tensor(
        np.column_stack([rng.uniform(0, 20, (count, 2)), rng.uniform(1, 12, (count, 2)), rng.uniform(-4, 4, count)])
    )


@pytest.mark.parametrize("mode", ["iou", "iof"])
def test_box_iou_rotated(ops: ModuleType, mode: str) -> None:
    a, b = rotated_boxes(30, 1), rotated_boxes(17, 2)
    b[0] = a[0]  # equal boxes, and boxes that share a side from inside and from outside
    b[1] = torch.tensor([5.0, 5, 4, 2, 0])
    a[1] = torch.tensor([6.0, 5, 2, 2, 0])
    a[2] = torch.tensor([8.0, 5, 2, 2, 0])
    a[3] = torch.tensor([5.0, 5, 2, 4, math.pi / 2])
    want = np.array([[iou(corners(x), corners(y), mode) for y in b] for x in a])
    assert want[1, 1] == pytest.approx(0.5 if mode == "iou" else 1)
    assert want[2, 1] == 0
    np.testing.assert_allclose(ops.box_iou_rotated(a, b, mode), want, atol=1e-9)
    aligned = ops.box_iou_rotated(a[:17].float(), b.float(), mode, aligned=True)
    np.testing.assert_allclose(aligned, want.diagonal(), atol=1e-5)
    flipped = a.clone(), b.clone()
    for boxes in flipped:
        boxes[:, 4] *= -1
    np.testing.assert_allclose(ops.box_iou_rotated(*flipped, mode, clockwise=False), want, atol=1e-9)


def left(order: list[int], overlaps: np.ndarray, threshold: float) -> list[int]:
    """Returns the kept boxes: those that no better kept box overlaps by more than the threshold."""
    kept: list[int] = []
    for i in order:
        if all(overlaps[i, j] <= threshold for j in kept):
            kept.append(i)
    return kept


def test_box_iou_quadri_and_nms_quadri(ops: ModuleType) -> None:
    boxes = torch.tensor(np.array([np.array(corners(b)).ravel() for b in rotated_boxes(40, 3)]))
    backwards = boxes.view(-1, 4, 2).flip(1).reshape(-1, 8)
    polygons = [corners(b) for b in rotated_boxes(40, 3)]
    want = np.array([[iou(x, y) for y in polygons] for x in polygons])
    np.testing.assert_allclose(ops.box_iou_quadri(boxes, backwards), want, atol=1e-9)
    scores = torch.rand(40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for labels in (None, torch.arange(40) % 3):  # MMCV's kernels ignore them
        dets, kept = ops.nms_quadri(boxes, scores, 0.2, labels)
        assert kept.tolist() == left(scores.argsort(descending=True).tolist(), want, 0.2)
        assert torch.equal(dets, torch.cat([boxes, scores[:, None]], 1)[kept])


def test_nms_rotated(ops: ModuleType) -> None:
    boxes = rotated_boxes(60, 4)
    scores = torch.rand(60, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    polygons = [corners(b) for b in boxes.numpy()]
    want = np.array([[iou(x, y) for y in polygons] for x in polygons])
    for labels in (None, torch.arange(60) % 2):  # MMCV's kernels ignore them
        _, kept = ops.nms_rotated(boxes, scores, 0.3, labels)
        assert kept.tolist() == left(scores.argsort(descending=True).tolist(), want, 0.3)


def upright(count: int, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    first = rng.uniform(0, 20, (count, 2))
    return torch.tensor(np.hstack([first, first + rng.uniform(1, 10, (count, 2))]), dtype=torch.float32)


def share(a: np.ndarray, b: np.ndarray, mode: str, offset: int) -> float:
    w, h = (max(0.0, min(a[i + 2], b[i + 2]) - max(a[i], b[i]) + offset) for i in (0, 1))
    of_a, of_b = ((x[2] - x[0] + offset) * (x[3] - x[1] + offset) for x in (a, b))
    return w * h / (of_a + of_b - w * h if mode == "iou" else of_a)


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("mode", ["iou", "iof"])
def test_bbox_overlaps(ops: ModuleType, mode: str, offset: int) -> None:
    a, b = upright(12, 5), upright(9, 6)
    want = np.array([[share(x, y, mode, offset) for y in b.double().numpy()] for x in a.double().numpy()])
    np.testing.assert_allclose(ops.bbox_overlaps(a, b, mode, offset=offset), want, rtol=1e-5, atol=1e-6)
    aligned = ops.bbox_overlaps(a[:9], b, mode, aligned=True, offset=offset)
    np.testing.assert_allclose(aligned, want[:9].diagonal(), rtol=1e-5, atol=1e-6)


def test_nms_of_all_kinds(ops: ModuleType) -> None:
    boxes = upright(80, 7)
    scores = torch.rand(80, generator=torch.Generator().manual_seed(2))
    table = np.array([[share(x, y, "iou", 0) for y in boxes.double().numpy()] for x in boxes.double().numpy()])
    order = scores.argsort(descending=True).tolist()
    expected, groups = [], {}
    for i in order:
        rival = next((j for j in expected if table[i, j] > 0.4), None)
        if rival is None:
            expected.append(i)
            groups[i] = [i]
        else:
            groups[rival].append(i)
    dets, kept = ops.nms(boxes, scores, 0.4)
    assert kept.tolist() == expected
    assert torch.equal(dets, torch.cat([boxes, scores[:, None]], 1)[kept])
    matched = ops.nms_match(torch.cat([boxes, scores[:, None]], 1), 0.4)
    assert [m.tolist() for m in matched] == list(groups.values())

    soft, kept = ops.soft_nms(boxes, scores, 0.4, sigma=0.5, min_score=0.05, method="gaussian")
    remaining, falling, want = list(range(80)), scores.double().numpy().copy(), []
    while remaining:
        best = max(remaining, key=lambda i: falling[i])
        remaining.remove(best)
        want.append((best, falling[best]))
        for i in remaining:
            falling[i] *= math.exp(-(table[i, best] ** 2) / 0.5)
        remaining = [i for i in remaining if falling[i] >= 0.05]
    assert kept.tolist() == [i for i, _ in want]
    np.testing.assert_allclose(soft[:, 4], [s for _, s in want], rtol=1e-4)


def test_line_nms() -> None:
    """Lanes of CLRNet, which onedl-mmcv's mmcv.ops has, row by row."""
    generator = torch.Generator().manual_seed(7)
    lanes = torch.rand(60, 77, generator=generator) * 0.1 + torch.randint(0, 4, (60, 1), generator=generator)
    lanes[:, 2], lanes[:, 4] = torch.rand(60, generator=generator), torch.randint(0, 80, (60,), generator=generator)
    scores = torch.rand(60, generator=generator)
    spans = [(int(lane[2] * 71 + 0.5), int(lane[4])) for lane in lanes]
    rows = [set(range(first, min(first + length, 72))) for first, length in spans]
    expected, parents = [], [0] * 60
    for i in scores.argsort(descending=True).tolist():
        if parents[i]:
            continue
        expected.append(i)
        later = [j for j in range(60) if scores[j] < scores[i] and rows[i] & rows[j]]
        for j in later:
            distances = [abs(float(lanes[i, 5 + row] - lanes[j, 5 + row])) for row in rows[i] & rows[j]]
            if np.mean(distances) < 0.034:
                parents[j] = len(expected)
        parents[i] = len(expected)
    keep, count, parent = line_nms_forward(lanes, scores, 0.034, 60)
    assert 3 < len(expected) < 50
    assert keep[: int(count)].tolist() == expected
    assert parent.tolist() == parents
    keep, count, _ = line_nms_forward(lanes, scores, 0.034, 3)
    assert (int(count), keep.tolist()) == (3, [*expected[:3], *[0] * 57])
    with pytest.raises(ValueError, match=r"boxes: expected shape \[n, 77\], got \[2, 5\]"):
        line_nms_forward(torch.zeros(2, 5), torch.zeros(2), 0.5, 2)


def test_boxes3d(ops: ModuleType) -> None:
    boxes = torch.zeros(40, 7)
    boxes[:, [0, 1, 3, 4, 6]] = rotated_boxes(40, 8).float()
    boxes[:, 5] = 2
    scores = torch.rand(40, generator=torch.Generator().manual_seed(3))
    polygons = [corners(b) for b in boxes[:, [0, 1, 3, 4, 6]].numpy()]
    shared = np.array([[area(clipped(x, y)) for y in polygons] for x in polygons])
    np.testing.assert_allclose(ops.boxes_overlap_bev(boxes, boxes), shared, atol=2e-3)
    own = shared.diagonal()
    flat = shared / (own[:, None] + own - shared)
    np.testing.assert_allclose(ops.boxes_iou3d(boxes, boxes), flat, atol=1e-4)
    order = scores.argsort(descending=True).tolist()
    assert ops.nms3d(boxes, scores, 0.2).tolist() == left(order, flat, 0.2)
    around = boxes[:, [0, 1, 0, 1]].double() + boxes[:, [3, 4, 3, 4]].double() / 2 * torch.tensor([-1, -1, 1, 1])
    straight = np.array([[share(x, y, "iou", 0) for y in around.numpy()] for x in around.numpy()])
    assert ops.nms3d_normal(boxes, scores, 0.2).tolist() == left(order, straight, 0.2)


def nine_points(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 10, (count, 9, 2))


def giou(points: np.ndarray, quad: list) -> float:
    own = hull(points)
    shared = area(clipped(own, quad))
    united = area(own) + area(quad) - shared
    around = area(hull(np.vstack([points, quad])))
    return shared / united - (around - united) / around


def test_convex_iou_and_giou(ops: ModuleType) -> None:
    points = nine_points(6, 9)
    points[0, 3] = points[0, 5]  # a repeated point, and three points on a line
    points[1, :3] = [[0, 0], [0, 4], [0, 10]]
    quads = [corners(b) for b in rotated_boxes(4, 10)]
    flat = torch.tensor(np.array(quads).reshape(4, 8))
    sets = torch.tensor(points.reshape(6, 18))
    want = [[iou(hull(p), q) for q in quads] for p in points]
    np.testing.assert_allclose(ops.convex_iou(sets, flat), want, atol=1e-9)

    value, gradient = ops.convex_giou(sets[2:], flat)
    np.testing.assert_allclose(value, [giou(p, q) for p, q in zip(points[2:], quads, strict=True)], atol=1e-9)
    step = 1e-6
    for n in range(4):
        for i in range(18):
            ends = []
            for sign in (1, -1):
                moved = points[2 + n].copy()
                moved[i // 2, i % 2] += sign * step
                ends.append(giou(moved, quads[n]))
            assert gradient[n, i].item() == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)


def test_min_area_polygons(ops: ModuleType) -> None:
    points = nine_points(20, 11)
    got = ops.min_area_polygons(torch.tensor(points.reshape(20, 18))).view(20, 4, 2).numpy()
    for set_, rectangle in zip(points, got, strict=True):
        sides = np.roll(rectangle, -1, 0) - rectangle
        np.testing.assert_allclose((sides * np.roll(sides, -1, 0)).sum(1), 0, atol=1e-9)
        best = math.inf
        for angle in np.linspace(0, math.pi / 2, 2001):
            axes = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
            best = min(best, float(np.prod(np.ptp(set_ @ axes.T, 0))))
        assert abs(area(list(rectangle))) <= best * (1 + 1e-9)
        around = list(rectangle) if area(list(rectangle)) > 0 else list(rectangle[::-1])
        for a, b in zip(around, around[1:] + around[:1], strict=True):
            assert min(cross(a, b, p) for p in set_) > -1e-7


def test_points_in_polygons(ops: ModuleType) -> None:
    points = torch.tensor(np.random.default_rng(12).uniform(0, 20, (200, 2)), dtype=torch.float32)
    quads = [corners(b) for b in rotated_boxes(7, 13)]
    got = ops.points_in_polygons(points, torch.tensor(np.array(quads).reshape(7, 8), dtype=torch.float32))
    want = [
        [min(cross(a, b, p) for a, b in zip(q, q[1:] + q[:1], strict=True)) > 0 for q in quads] for p in points.numpy()
    ]
    assert got.tolist() == np.array(want, dtype=float).tolist()


def test_diff_iou_rotated(ops: ModuleType) -> None:
    a, b = rotated_boxes(24, 14).float(), rotated_boxes(24, 15).float()
    b[0] = a[0]
    want = [iou(corners(x), corners(y)) for x, y in zip(a.numpy(), b.numpy(), strict=True)]
    leaf = a[None].clone().requires_grad_()
    got = ops.diff_iou_rotated_2d(leaf, b[None])
    np.testing.assert_allclose(got[0].detach(), want, atol=1e-4)
    got[0, 1:].sum().backward()
    assert torch.isfinite(leaf.grad).all()
    assert (leaf.grad[0, np.array(want) > 0.05][1:].abs().sum(-1) > 0).all()
    space = torch.cat([a[:, :2], torch.zeros(24, 1), a[:, 2:4], torch.ones(24, 1), a[:, 4:]], 1)
    other = torch.cat([b[:, :2], torch.zeros(24, 1), b[:, 2:4], torch.ones(24, 1), b[:, 4:]], 1)
    np.testing.assert_allclose(ops.diff_iou_rotated_3d(space[None], other[None])[0], want, atol=1e-4)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_gradients_of_diff_iou_rotated_are_those_of_mmcvs_composition(ops: ModuleType, dimensions: int) -> None:
    module = import_module("mmcv.ops.diff_iou_rotated")
    rng = np.random.default_rng(16)
    sizes, angles = rng.uniform(0.3, 4, (2, 1, 500, dimensions)), rng.uniform(-7, 7, (2, 1, 500, 1))
    rows = np.concatenate([rng.uniform(0, 4, sizes.shape), sizes, angles], 3)

    def composed(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        flat = [0, 1, *range(dimensions, dimensions + 2), -1]
        shared, _ = module.oriented_box_intersection_2d(*(module.box2corners(t[..., flat]) for t in (a, b)))
        if dimensions == 3:
            upper = torch.min(a[..., 2] + a[..., 5] / 2, b[..., 2] + b[..., 5] / 2)
            lower = torch.max(a[..., 2] - a[..., 5] / 2, b[..., 2] - b[..., 5] / 2)
            shared = shared * (upper - lower).clamp(min=0)
        volumes = (t[..., dimensions : 2 * dimensions].prod(2) for t in (a, b))
        return shared / (sum(volumes) - shared)

    grad = torch.from_numpy(rng.normal(size=(1, 500)))
    ours = ops.diff_iou_rotated_2d if dimensions == 2 else ops.diff_iou_rotated_3d
    exact = [torch.from_numpy(t).requires_grad_() for t in rows]
    want = composed(*exact)
    assert 0.3 < (want > 0).double().mean() < 0.9
    for dtype, tolerance in ((torch.float64, 1e-6), (torch.float32, 1e-4)):
        boxes = [t.detach().to(dtype).requires_grad_() for t in exact]
        got = ours(*boxes)
        torch.testing.assert_close(got.double(), want, rtol=tolerance, atol=tolerance)
        of_want = torch.autograd.grad(want, exact, grad, retain_graph=True)
        for a, b in zip(torch.autograd.grad(got, boxes, grad.to(dtype)), of_want, strict=True):
            torch.testing.assert_close(a.double(), b, rtol=tolerance, atol=tolerance)
