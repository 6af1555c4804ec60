# SPDX-License-Identifier: Apache-2.0
"""Points on a floor and on the sides of boxes, for detectors of mmdet3d."""

from __future__ import annotations

import torch
from torch import Tensor


def surfaces(boxes: Tensor, count: int) -> Tensor:
    """Returns points [len(boxes) * count, 3] on the sides of boxes (x, y, bottom, length, width, height, yaw)."""
    points = torch.rand(len(boxes), count, 3) - 0.5
    axis = torch.randint(3, (len(boxes), count, 1))
    points.scatter_(2, axis, points.gather(2, axis).sign() * 0.5)
    points = (points + torch.tensor([0, 0, 0.5])) * boxes[:, None, 3:6]
    c, s = boxes[:, 6].cos(), boxes[:, 6].sin()
    turn = torch.stack([torch.stack([c, s], 1), torch.stack([-s, c], 1)], 1)
    points[..., :2] = points[..., :2] @ turn
    return (points + boxes[:, None, :3]).flatten(0, 1)


STREET = torch.tensor(
    [
        [8.0, -3, -1.7, 3.9, 1.6, 1.5, 0.1],
        [14.0, 4, -1.7, 4.2, 1.7, 1.6, 1.4],
        [20.0, -6, -1.7, 3.7, 1.6, 1.5, 0.0],
        [11.0, 8, -1.7, 0.8, 0.6, 1.7, 0.7],
    ]
)
ROOM = torch.tensor(
    [[1.0, 1.5, 0, 2.0, 1.5, 0.6, 0.1], [3.0, 3, 0, 0.6, 0.6, 0.9, 1.0], [3.2, 1, 0, 1.0, 0.7, 0.8, 0.0]]
)


def cloud(boxes: Tensor, reach: float, channels: int, count: int = 5000) -> Tensor:
    """Returns `count` points: three fifths on a floor, the others on boxes.

    Channels after x, y, z are random numbers.
    """
    low = float(boxes[0, 2])
    floor = torch.rand(count * 3 // 5, 3) * torch.tensor([reach, reach, 0.02])
    floor[:, 2] += low
    if reach > 10:
        floor[:, 1] -= reach / 2
    points = torch.cat([floor, surfaces(boxes, count * 2 // 5 // len(boxes))])
    return torch.cat([points, torch.rand(len(points), channels - 3)], 1)
