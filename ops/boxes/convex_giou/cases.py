# SPDX-License-Identifier: Apache-2.0
from typing import NamedTuple

import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import bytes_of, session, with_torch
from inputs import MILLION
from torch import Tensor

from ops.boxes.cases import quadrilaterals, sets

cases = Cases(__file__)


@cases.cpu("500 sets of 9 points, with gradients")
def _(threads: int) -> Contest:
    rng = np.random.default_rng(43)
    middles, angles = rng.uniform(0, 1000, (500, 1, 2)), np.sort(rng.uniform(0, 6.2, (500, 4)), 1)
    sets = (middles + rng.uniform(-20, 20, (500, 9, 2))).reshape(500, 18).astype(np.float32)
    around = middles + 25 * np.stack([np.cos(angles), np.sin(angles)], 2)
    polygons = around.reshape(500, 8).astype(np.float32)
    ours = session("polyop::ConvexGIoU", {"pointsets": sets, "polygons": polygons}, threads)
    points, corners = torch.from_numpy(sets), torch.from_numpy(polygons)
    theirs = with_torch(lambda: giou_with_gradients(points, corners))
    return Contest(ours, {"torch formulation": theirs}, bytes_of(sets, polygons) + 500 * 19 * 4, tolerance=1e-3)


class Polygons(NamedTuple):
    start: Tensor
    end: Tensor
    there: Tensor


def _cross(a: Tensor, b: Tensor) -> Tensor:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def of_corners(points: Tensor) -> Polygons:
    """Returns polygons from corners [..., 8], convex, in either direction."""
    start = points.unflatten(-1, (4, 2))
    end = start.roll(-1, -2)
    backwards = (_cross(start, end).sum(-1) < 0)[..., None, None]
    there = torch.ones(start.shape[:-1], dtype=torch.bool, device=points.device)
    return Polygons(torch.where(backwards, end, start), torch.where(backwards, start, end), there)


def convex_hull(points: Tensor, max_edges: int) -> Polygons:
    """Returns the hull of points [..., P, 2], with at most `max_edges` edges."""
    count = points.shape[-2]
    fixed = points.detach()
    a, b = fixed[..., :, None, None, :], fixed[..., None, :, None, :]
    others = fixed[..., None, None, :, :]
    side = _cross(b - a, others - a)
    along = ((others - a) * (b - a)).sum(-1)
    length = ((b - a) ** 2).sum(-1)
    on_edge = (side == 0) & (along >= 0) & (along <= length)
    edge = ((side > 0) | on_edge).all(-1) & (length[..., 0] > 0)
    same = (fixed[..., :, None, :] == fixed[..., None, :, :]).all(-1)
    first = ~(same & torch.ones(count, count, dtype=torch.bool, device=points.device).tril(-1)).any(-1)
    edge = edge & first[..., :, None] & first[..., None, :]
    there, index = edge.flatten(-2).to(torch.uint8).topk(min(max_edges, count * count), -1)

    def of(index: Tensor) -> Tensor:
        return points.gather(-2, index[..., None].expand(*index.shape, 2))

    return Polygons(of(index // count), of(index % count), there.bool())


def area(polygons: Polygons) -> Tensor:
    return torch.where(polygons.there, _cross(polygons.start, polygons.end), 0).sum(-1) / 2


def _distances(points: Tensor, lines: Polygons) -> Tensor:
    """Returns how far points [..., E, 2] lie to the left of each line [..., L]:

    [..., E, L], times the line's length.
    """
    direction = (lines.end - lines.start)[..., None, :, :]
    return _cross(direction, points[..., :, None, :] - lines.start[..., None, :, :])


def _clipped(polygons: Polygons, by: Polygons, on_line: Tensor) -> Tensor:
    """Returns twice the area below the parts of edges inside `by`. on_line [..., E, L]:

    1 where the edge lies on the line and is included, -1 where it lies on it and is not, otherwise 0.
    """
    at_start, at_end = _distances(polygons.start, by), _distances(polygons.end, by)
    fall = at_start - at_end
    cut = at_start / torch.where(fall == 0, 1, fall)
    lines = by.there[..., None, :] & (on_line == 0)
    enter = torch.where(lines & (at_start < 0) & (at_end >= 0), cut, 0).amax(-1)
    leave = torch.where(lines & (at_start >= 0) & (at_end < 0), cut, 1).amin(-1)
    outside = (lines & (at_start < 0) & (at_end < 0)).any(-1) | (by.there[..., None, :] & (on_line == -1)).any(-1)
    along = polygons.end - polygons.start
    part = _cross(polygons.start + enter[..., None] * along, polygons.start + leave[..., None] * along)
    return torch.where(polygons.there & ~outside & (enter < leave), part, 0).sum(-1)


def intersection(a: Polygons, b: Polygons) -> Tensor:
    """Returns the intersection area of convex polygons; leading dimensions broadcast.

    An edge of both polygons is taken from `a`.
    """
    lead = torch.broadcast_shapes(a.start.shape[:-2], b.start.shape[:-2])
    a, b = (Polygons(*(t.expand(*lead, *t.shape[t.ndim - 2 + (t is p.there) :]) for t in p)) for p in (a, b))
    origin = a.start.detach()[..., :1, :]  # areas of polygons far from 0 would lose digits
    a, b = (Polygons(p.start - origin, p.end - origin, p.there) for p in (a, b))
    along_a, along_b = a.end - a.start, b.end - b.start
    size = torch.maximum(along_a.abs().amax((-1, -2)), along_b.abs().amax((-1, -2))).detach()[..., None, None]
    tiny = 1e-12 * size * size
    collinear = ((_distances(a.start, b).abs() <= tiny) & (_distances(a.end, b).abs() <= tiny)) | (
        (_distances(b.start, a).abs() <= tiny) & (_distances(b.end, a).abs() <= tiny)
    ).mT
    forth = (along_a[..., :, None, :] * along_b[..., None, :, :]).sum(-1) > 0
    of_a = _clipped(a, b, torch.where(collinear, torch.where(forth, 1, -1), 0))
    of_b = _clipped(b, a, torch.where(collinear, -1, 0).mT)
    return (of_a + of_b).clamp(min=0) / 2


def giou_with_gradients(pointsets: Tensor, polygons: Tensor) -> Tensor:
    """Returns the gradient of each GIoU of nine points [N, 18] and a quadrilateral [N, 8] with respect to the points,
    and the GIoU: [N, 19].
    """
    with torch.inference_mode(False), torch.enable_grad():
        points, corners = pointsets.double().clone().requires_grad_(), polygons.double().clone()
        hulls, quads = convex_hull(points.unflatten(-1, (9, 2)), 9), of_corners(corners)
        shared = intersection(hulls, quads)
        united = area(hulls) + area(quads) - shared
        around = area(convex_hull(torch.cat([points, corners], 1).unflatten(-1, (13, 2)), 13))
        giou = shared / united - (around - united) / around
        return torch.cat([torch.autograd.grad(giou.sum(), points)[0], giou.detach()[:, None]], 1).float()


cases.growth("sets and a quadrilateral of each", 1000, MILLION)(
    lambda n: call("convex_giou", sets(n), quadrilaterals(n))
)
