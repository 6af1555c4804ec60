# SPDX-License-Identifier: Apache-2.0
"""3-D boxes and rotated boxes: decoding, overlaps, suppression, and the points inside."""

from __future__ import annotations

import numpy as np
import torch
from harness import Case, Contest, bytes_of, normal, session, with_torch

from cases import convex_polygons
from polyop import formulas


def boxes3d(count: int, extent: float, seed: int = 30) -> np.ndarray:
    """Returns cars (x, y, z, dx, dy, dz, heading) at random positions in a square."""
    rng = np.random.default_rng(seed)
    position = rng.uniform(0, 1, (count, 3)) * [extent, extent, 2]
    size = rng.uniform(0.8, 1.2, (count, 3)) * [3.9, 1.6, 1.56]
    return np.concatenate([position, size, rng.uniform(-np.pi, np.pi, (count, 1))], 1).astype(np.float32)


def decode_bbox3d(scores_above: float) -> Case:
    """NVIDIA's PointPillars: 248 x 216 cells, 6 anchors, 3 classes."""

    def make(threads: int) -> Contest:
        height, width, anchors, classes = 248, 216, 6, 3
        cls = normal(31, 1, height, width, anchors * classes)
        box, direction = normal(32, 1, height, width, anchors * 7) * 0.1, normal(33, 1, height, width, anchors * 2)
        sizes = np.array([[3.9, 1.6, 1.56], [0.8, 0.6, 1.73], [1.76, 0.6, 1.73]], np.float32).repeat(2, 0)
        table = np.concatenate([sizes, np.tile(np.float32([[0], [1.57]]), (3, 1))], 1)
        bottoms = [-1.78, -0.6, -0.6]
        min_score = float(1 / (1 + np.exp(-np.quantile(cls.reshape(-1, classes).max(1), 1 - scores_above))))
        attributes = {
            "point_cloud_range": [0.0, -39.68, -3.0, 69.12, 39.68, 1.0], "anchors": table.ravel().tolist(),
            "anchor_bottom_height": bottoms, "dir_offset": 0.78539, "dir_limit_offset": 0.0, "num_dir_bins": 2,
            "score_thresh": min_score,
        }  # fmt: skip
        feeds = {"cls": cls, "box": box, "dir": direction}
        ours = session("polyop::DecodeBbox3DPlugin", feeds, threads, ["boxes", "num"], attributes=attributes)
        tc, tb, td = torch.from_numpy(cls), torch.from_numpy(box), torch.from_numpy(direction)
        y, x = torch.linspace(-39.68, 39.68, height), torch.linspace(0, 69.12, width)
        dx, dy, dz, rotation = torch.from_numpy(table).T
        z = dz / 2 + torch.tensor(bottoms).repeat_interleave(2)
        cell = torch.stack(torch.broadcast_tensors(x[None, :, None], y[:, None, None], z), -1).view(-1, 3)
        anchor = torch.stack([dx, dy, dz, rotation], -1).expand(height, width, anchors, 4).reshape(-1, 4)

        def formulation() -> torch.Tensor:
            score, label = tc.view(-1, classes).max(1)
            kept = (score.sigmoid() >= min_score).nonzero()[:, 0]
            b, a = tb.view(-1, 7)[kept], anchor[kept]
            scale = torch.stack([a[:, :2].norm(dim=1)] * 2 + [a[:, 2]], 1)
            turn = b[:, 6] + a[:, 3] - 0.78539
            which = (td.view(-1, 2)[kept, 0] <= td.view(-1, 2)[kept, 1]).float()
            yaw = turn - torch.floor(turn / torch.pi) * torch.pi + 0.78539 + torch.pi * which
            rest = [yaw, label[kept].float(), score[kept].sigmoid()]
            boxes = torch.cat([cell[kept] + b[:, :3] * scale, b[:, 3:6].exp() * a[:, :3], torch.stack(rest, 1)], 1)
            return torch.cat([boxes, boxes.new_zeros(len(cell) - len(boxes), 9)])[None]

        # Of `box` and `dir`, only the kept entries are read.
        moved = bytes_of(cls) + scores_above * bytes_of(box, direction) + height * width * anchors * 9 * 4
        return Contest(ours, {"torch formulation": with_torch(formulation)}, moved,
                       same=lambda a, b: np.mean(np.abs(a[0] - b[0]) > 1e-2) < 1e-3)  # fmt: skip

    return Case("decode_bbox3d", f"248x216, 6 anchors, 3 classes, {scores_above:.1%} kept", make)


def areas_shared(box: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Returns the intersection area of a box (x, y, w, h, angle) with each of others [K, 5], in torch: corners inside
    the other box and crossings of sides, sorted by angle.
    """

    def corners(boxes: torch.Tensor) -> torch.Tensor:
        c, s = boxes[:, 4].cos(), boxes[:, 4].sin()
        turn = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)
        unit = boxes.new_tensor([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
        return boxes[:, None, :2] + (unit * boxes[:, None, 2:4]) @ turn

    def inside(points: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
        at = points - boxes[:, None, :2]
        c, s = boxes[:, None, 4].cos(), boxes[:, None, 4].sin()
        along, across = at[..., 0] * c + at[..., 1] * s, at[..., 1] * c - at[..., 0] * s
        return (along.abs() <= boxes[:, None, 2] / 2) & (across.abs() <= boxes[:, None, 3] / 2)

    p, q = corners(box[None]).expand(len(others), -1, -1), corners(others)
    u, v = (p.roll(-1, 1) - p)[:, :, None], (q.roll(-1, 1) - q)[:, None]
    apart = q[:, None] - p[:, :, None]
    cross = u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]
    t = (apart[..., 0] * v[..., 1] - apart[..., 1] * v[..., 0]) / cross
    w = (apart[..., 0] * u[..., 1] - apart[..., 1] * u[..., 0]) / cross
    meets = (t >= 0) & (t <= 1) & (w >= 0) & (w <= 1)
    crossings = p[:, :, None] + torch.where(meets, t, 0)[..., None] * u
    points = torch.cat([p, q, crossings.flatten(1, 2)], 1)
    some = torch.cat([inside(p, others), inside(q, box[None]), meets.flatten(1)], 1)
    number = some.sum(1)
    middle = torch.where(some[..., None], points, 0).sum(1) / number.clamp(min=1)[:, None]
    points = torch.where(some[..., None], points - middle[:, None], 0)
    angle = torch.where(some, torch.atan2(points[..., 1], points[..., 0]), torch.inf)
    order = angle.argsort(1)
    points = points.gather(1, order[..., None].expand_as(points))
    points = torch.where((torch.arange(24) < number[:, None])[..., None], points, points[:, :1])
    after = points.roll(-1, 1)
    return (points[..., 0] * after[..., 1] - points[..., 1] * after[..., 0]).sum(1).abs() / 2


def nms3d(extent: float) -> Case:
    def make(threads: int) -> Contest:
        boxes = boxes3d(4096, extent)
        scores = (np.random.default_rng(34).permutation(4096) / 4096).astype(np.float32)
        ours = session("polyop::NMS3D", {"boxes": boxes, "scores": scores}, threads, attributes={"iou_threshold": 0.2})
        seen = np.ascontiguousarray(boxes[:, [0, 1, 3, 4, 6]])
        flat = session("mmdeploy::NMSRotated", {"boxes": seen, "scores": scores}, threads,
                       attributes={"iou_threshold": 0.2, "score_threshold": -1.0})  # fmt: skip
        t, area, reach = (torch.from_numpy(a) for a in (seen, seen[:, 2] * seen[:, 3], np.hypot(*seen[:, 2:4].T) / 2))

        def formulation() -> torch.Tensor:
            left, kept = torch.from_numpy(np.argsort(-scores)), []
            while len(left):
                best, left = left[0], left[1:]
                kept.append(best)
                stays = (t[left, :2] - t[best, :2]).square().sum(1) > (reach[left] + reach[best]).square()
                near = (~stays).nonzero()[:, 0]
                shared = areas_shared(t[best], t[left[near]])
                stays[near] = shared <= 0.2 * (area[best] + area[left[near]] - shared)
                left = left[stays]
            return torch.stack(kept)

        return Contest(ours, {"torch formulation": with_torch(formulation)}, same=lambda a, b: np.array_equal(a[0], b[0]),
                       yardstick=("polyop NMSRotated", flat))  # fmt: skip

    return Case("nms3d", f"4,096 boxes in {extent:.0f} x {extent:.0f} m", make)


def boxes_iou3d() -> Case:
    def make(threads: int) -> Contest:
        a, b = boxes3d(1000, 70, 35), boxes3d(500, 70, 36)
        ours = session("polyop::BoxesIoU3D", {"a": a, "b": b}, threads, attributes={"mode": 1})
        ta, tb = (torch.from_numpy(np.ascontiguousarray(t[:, [0, 1, 3, 4, 6]])) for t in (a, b))
        theirs = with_torch(lambda: torch.stack([areas_shared(box, tb) for box in ta]))
        return Contest(ours, {"torch formulation": theirs}, bytes_of(a, b) + 1000 * 500 * 4, tolerance=1e-3)

    return Case("boxes_iou3d", "1,000 x 500 boxes seen from above", make)


def box_iou_rotated() -> Case:
    def make(threads: int) -> Contest:
        a, b = (np.ascontiguousarray(boxes3d(n, 70, seed)[:, [0, 1, 3, 4, 6]]) for n, seed in ((2000, 37), (100, 38)))
        ours = session("polyop::BoxIoURotated", {"a": a, "b": b}, threads)
        ta, tb = torch.from_numpy(a), torch.from_numpy(b)
        area_a, area_b = (t[:, 2] * t[:, 3] for t in (ta, tb))

        def formulation() -> torch.Tensor:
            shared = torch.stack([areas_shared(box, ta) for box in tb], 1)
            return shared / (area_a[:, None] + area_b - shared)

        return Contest(ours, {"torch formulation": with_torch(formulation)}, bytes_of(a, b) + 2000 * 100 * 4,
                       tolerance=1e-3)  # fmt: skip

    return Case("box_iou_rotated", "2,000 x 100 boxes", make)


def points_in_polygons() -> Case:
    def make(threads: int) -> Contest:
        rng = np.random.default_rng(39)
        points = rng.uniform(0, 1024, (20000, 2)).astype(np.float32)
        middle, reach = rng.uniform(0, 1024, (64, 1, 2)), rng.uniform(10, 200, (64, 1, 1))
        turn = rng.uniform(0, 7, (64, 1)) + np.arange(4) * np.pi / 2
        polygons = middle + reach * np.stack([np.cos(turn), np.sin(turn)], -1)
        polygons = polygons.reshape(64, 8).astype(np.float32)
        ours = session("polyop::PointsInPolygons", {"points": points, "polygons": polygons}, threads)
        formula = formulas.find("points_in_polygons").formula
        tensors = torch.from_numpy(points), torch.from_numpy(polygons)
        return Contest(ours, {"torch formulation": with_torch(lambda: formula(*tensors))},
                       bytes_of(points, polygons) + 20000 * 64 * 4)  # fmt: skip

    return Case("points_in_polygons", "20,000 points, 64 quadrilaterals", make)


def min_area_polygons() -> Case:
    def make(threads: int) -> Contest:
        sets = normal(40, 20000, 18)
        ours = session("polyop::MinAreaPolygons", {"pointsets": sets}, threads)
        formula, tensor = formulas.find("min_area_polygons").formula, torch.from_numpy(sets)
        return Contest(ours, {"torch formulation": with_torch(lambda: formula(tensor))}, bytes_of(sets) + 20000 * 8 * 4)

    return Case("min_area_polygons", "20,000 sets of 9 points", make)


def convex_giou() -> Case:
    def make(threads: int) -> Contest:
        rng = np.random.default_rng(43)
        middles, angles = rng.uniform(0, 1000, (500, 1, 2)), np.sort(rng.uniform(0, 6.2, (500, 4)), 1)
        sets = (middles + rng.uniform(-20, 20, (500, 9, 2))).reshape(500, 18).astype(np.float32)
        around = middles + 25 * np.stack([np.cos(angles), np.sin(angles)], 2)
        polygons = around.reshape(500, 8).astype(np.float32)
        ours = session("polyop::ConvexGIoU", {"pointsets": sets, "polygons": polygons}, threads)
        points, corners = torch.from_numpy(sets), torch.from_numpy(polygons)
        theirs = with_torch(lambda: convex_polygons.convex_giou(points, corners))
        return Contest(ours, {"torch formulation": theirs}, bytes_of(sets, polygons) + 500 * 19 * 4, tolerance=1e-3)

    return Case("convex_giou", "500 sets of 9 points, with gradients", make)


def diff_iou_rotated() -> Case:
    def make(threads: int) -> Contest:
        a = boxes3d(20000, 70, 41)
        b = a + normal(42, 20000, 7) * np.float32([0.5, 0.5, 0.2, 0.1, 0.1, 0.1, 0.2])
        feeds = {"boxes_a": a[None], "boxes_b": b[None]}
        ours = session("polyop::DiffIoURotated", feeds, threads, attributes={"dimensions": 3})
        formula = formulas.find("diff_iou_rotated").formula
        tensors = [torch.from_numpy(t) for t in feeds.values()]
        return Contest(ours, {"torch formulation": with_torch(lambda: formula(*tensors, dimensions=3))},
                       bytes_of(a, b) + 20000 * 4, tolerance=1e-3)  # fmt: skip

    return Case("diff_iou_rotated", "20,000 pairs of 3-D boxes", make)


def diff_iou_rotated_sort_vertices() -> Case:
    def make(threads: int) -> Contest:
        mask = np.random.default_rng(44).random((1, 20000, 24)) < 0.25
        mask &= mask.cumsum(2) <= 8
        vertices = normal(45, 1, 20000, 24, 2) * mask[..., None]
        feeds = {"vertices": vertices, "mask": mask, "num_valid": mask.sum(2).astype(np.int32)}
        ours = session("polyop::DiffIoURotatedSortVertices", feeds, threads)
        tv, tm, tn = (torch.from_numpy(t) for t in feeds.values())

        def formulation() -> torch.Tensor:
            angle = torch.atan2(tv[..., 1], tv[..., 0])
            angle = torch.where(tm, torch.where(angle < 0, angle + 2 * torch.pi, angle), torch.inf)
            order = angle.sort(dim=-1, stable=True).indices[..., :9]
            count, position = tn[..., None], torch.arange(9)
            free = 8 + tm[..., 8:].to(torch.uint8).argmin(-1, keepdim=True)
            sorted_ = torch.where(position < count, order, torch.where(position == count, order[..., :1], free))
            return torch.where(count < 3, free, sorted_).to(torch.int32)

        return Contest(ours, {"torch formulation": with_torch(formulation)}, bytes_of(*feeds.values()) + 20000 * 36,
                       same=lambda a, b: (a[0] == b[0]).mean() > 0.9999)  # fmt: skip

    return Case("diff_iou_rotated_sort_vertices", "20,000 pairs of boxes", make)


def inside(points: torch.Tensor, boxes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns whether boxes [M, 7] contain points [N, 3], and the points' coordinates along the boxes' axes:

    [M, N], [M, N, 3].
    """
    at = points - boxes[:, None, :3]
    c, s = boxes[:, None, 6].cos(), boxes[:, None, 6].sin()
    half = boxes[:, None, 3:6] / 2
    position = torch.stack(
        [at[..., 0] * c + at[..., 1] * s, at[..., 1] * c - at[..., 0] * s, at[..., 2] - half[..., 2]], -1
    )
    return (position.abs() < half).all(-1), position + half


def points_near(boxes: np.ndarray, count: int) -> np.ndarray:
    """Returns points, half of them around boxes."""
    rng = np.random.default_rng(37)
    near = boxes[rng.integers(0, len(boxes), count // 2), :3] + rng.normal(0, 1, (count // 2, 3))
    return rng.permutation(np.concatenate([near, rng.uniform(0, 70, (count - count // 2, 3))])).astype(np.float32)


def roipoint_pool3d() -> Case:
    def make(threads: int) -> Contest:
        boxes = boxes3d(128, 70)
        points, features = points_near(boxes, 16384), normal(38, 16384, 128)
        feeds = {"points": points[None], "features": features[None], "boxes": boxes[None]}
        ours = session("polyop::RoIPointPool3d", feeds, threads, ["pooled", "empty"])
        tp, tb = torch.from_numpy(points), torch.from_numpy(boxes)
        both = torch.cat([tp, torch.from_numpy(features)], 1)

        def formulation() -> torch.Tensor:
            holds, _ = inside(tp, tb)
            number = holds.sum(1)
            first = torch.where(holds, torch.arange(16384), 16384).topk(512, largest=False, sorted=True).values
            rank = torch.arange(512) % number.clamp(1, 512)[:, None]
            rows = both[first.gather(1, rank).clamp(max=16383)]
            return torch.where((number > 0)[:, None, None], rows, 0)[None]

        moved = bytes_of(points, features) + 128 * 512 * 131 * 4
        return Contest(ours, {"torch formulation": with_torch(formulation)}, moved,
                       same=lambda a, b: np.mean(a[0] != b[0]) < 1e-3)  # fmt: skip

    return Case("roipoint_pool3d", "16,384 points, 128 channels, 128 boxes, 512 samples", make)


def roiaware_pool3d() -> Case:
    def make(threads: int) -> Contest:
        rois = boxes3d(128, 70)
        points, features = points_near(rois, 16384), normal(39, 16384, 16)
        ours = session("polyop::RoIAwarePool3d", {"rois": rois, "points": points, "features": features}, threads,
                       attributes={"out_size": [14, 14, 14], "max_pts_per_voxel": 128, "mode": "avg"})  # fmt: skip
        tp, tr, tf = (torch.from_numpy(t) for t in (points, rois, features))

        def formulation() -> torch.Tensor:  # no cell is full
            holds, position = inside(tp, tr)
            box, point = holds.nonzero(as_tuple=True)
            i, j, k = (position[box, point] / tr[box, 3:6] * 14).long().clamp(0, 13).T
            row = ((box * 14 + i) * 14 + j) * 14 + k
            number = torch.zeros(128 * 14**3).index_add_(0, row, torch.ones(len(row)))
            pooled = torch.zeros(128 * 14**3, 16).index_add_(0, row, tf[point])
            return (pooled / number.clamp(min=1)[:, None]).view(128, 14, 14, 14, 16)

        moved = bytes_of(points, features) + 128 * 14**3 * 16 * 4
        return Contest(ours, {"torch formulation": with_torch(formulation)}, moved,
                       same=lambda a, b: np.mean(np.abs(a[0] - b[0]) > 1e-3) < 1e-3)  # fmt: skip

    return Case("roiaware_pool3d", "16,384 points, 16 channels, 128 boxes, 14x14x14 cells, averages", make)


CASES = [
    decode_bbox3d(0.01),
    decode_bbox3d(0.2),
    nms3d(70),
    nms3d(200),
    boxes_iou3d(),
    box_iou_rotated(),
    points_in_polygons(),
    min_area_polygons(),
    convex_giou(),
    diff_iou_rotated(),
    diff_iou_rotated_sort_vertices(),
    roipoint_pool3d(),
    roiaware_pool3d(),
]
