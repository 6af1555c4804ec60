# SPDX-License-Identifier: Apache-2.0
"""MTCNN as one module: a pyramid of images, three networks, the crops between them and three suppressions.

The networks are those of facenet-pytorch, whose wheel has their weights. The steps between them follow its
`detect_face`, for a photo of a fixed size; the results are the package's.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import polyop

MIN_FACE = 20
FACTOR = 0.709  # between the levels of the pyramid
THRESHOLDS = (0.6, 0.7, 0.7)
CELL, STRIDE = 12, 2  # of the first network
MAX_CHAIN = 32  # of boxes that suppress each other in turn, in the last suppression


class Cascade(nn.Module):
    """Finds faces in a photo u8[1, H, W, 3]. The outputs are those of `polyop attach --flat`."""

    def __init__(self, pnet: nn.Module, rnet: nn.Module, onet: nn.Module) -> None:
        super().__init__()
        self.pnet, self.rnet, self.onet = pnet, rnet, onet

    def forward(self, photo: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        height, width = int(photo.shape[1]), int(photo.shape[2])
        sums = area_sums(photo[0].permute(2, 0, 1))
        boxes = self._proposals(sums, height, width)
        boxes, scores, moves, _ = self._refined(self.rnet, 24, sums, boxes, THRESHOLDS[1])
        kept = polyop.nms(boxes, scores, 0.7)
        boxes = square(moved(boxes[kept], moves[kept]))
        boxes, scores, moves, points = self._refined(self.onet, 48, sums, boxes, THRESHOLDS[2])
        size = boxes[:, 2:] - boxes[:, :2] + 1
        points = torch.stack([points[:, :5], points[:, 5:]], 2) * size[:, None] + boxes[:, None, :2] - 1
        boxes = moved(boxes, moves)
        kept = nested_nms(boxes, scores, 0.7)
        zeros = torch.zeros_like(scores[kept], dtype=torch.int32)
        return zeros, boxes[kept], scores[kept], zeros, points[kept]

    def _proposals(self, sums: Tensor, height: int, width: int) -> Tensor:
        """Returns the boxes of the first network, squares [K, 4]."""
        scale, levels = CELL / MIN_FACE, []
        while min(height, width) * scale >= CELL:
            levels.append(self._level(sums, height, width, scale))
            scale *= FACTOR
        rows = torch.cat(levels)
        rows = rows[polyop.nms(rows[:, :4], rows[:, 4], 0.7)]
        corners = rows[:, :4]
        size = corners[:, 2:] - corners[:, :2]
        return square(corners + rows[:, 5:] * torch.cat([size, size], 1))

    def _level(self, sums: Tensor, height: int, width: int, scale: float) -> Tensor:
        """Returns the proposals of a level: corners, score and offsets [K, 9]."""
        rows, columns = (bins(torch.tensor([0]), torch.tensor([n]), int(n * scale + 1)) for n in (height, width))
        moves, scores = self.pnet(normalized(averages(sums, rows, columns)))
        at = (scores[0, 1] >= THRESHOLDS[0]).nonzero()
        cells = at.flip(1).to(torch.float32)
        corners = torch.cat([(STRIDE * cells + 1) / scale, (STRIDE * cells + CELL) / scale], 1).floor()
        index = at[:, 0] * scores.shape[3] + at[:, 1]
        score, move = scores[0, 1].flatten()[index], moves[0].flatten(1)[:, index]
        rows_of_level = torch.cat([corners, score[:, None], move.T], 1)
        return rows_of_level[polyop.nms(corners, score, 0.5)]

    def _refined(
        self, network: nn.Module, side: int, sums: Tensor, boxes: Tensor, threshold: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Returns the boxes that the network accepts, their scores and offsets, and the points of the last network."""
        boxes = torch.cat([boxes, torch.ones(1, 4)])  # so that there is one: the networks have no empty batch
        height, width = sums.shape[1] - 1, sums.shape[2] - 1
        corners = boxes.to(torch.int64)  # towards zero
        near, far = corners[:, :2].clamp(min=1) - 1, corners[:, 2:]
        columns = bins(near[:, 0], far[:, 0].clamp(max=width), side)
        rows = bins(near[:, 1], far[:, 1].clamp(max=height), side)
        results = network(normalized(averages(sums, rows, columns)))
        moves, scores = results[0], results[-1][:, 1]
        is_box = torch.cat([torch.ones_like(scores[:-1]), torch.zeros(1)])
        kept = ((scores > threshold) & (is_box > 0)).nonzero()[:, 0]
        return boxes[kept], scores[kept], moves[kept], results[1][kept]


def normalized(pixels: Tensor) -> Tensor:
    return (pixels - 127.5) * 0.0078125


def area_sums(pixels: Tensor) -> Tensor:
    """Returns the sums [C, H + 1, W + 1] of the pixels above and to the left: of any rectangle in four steps."""
    sums = pixels.to(torch.int64).cumsum(1).cumsum(2)
    return torch.nn.functional.pad(sums, (1, 0, 1, 0))


def bins(begins: Tensor, ends: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Returns the first index and the end [K, count] of equal parts of ranges, as adaptive pooling has them."""
    parts, lengths = torch.arange(count), (ends - begins)[:, None]
    first = torch.div(parts * lengths, count, rounding_mode="floor")
    end = torch.div((parts + 1) * lengths + count - 1, count, rounding_mode="floor")
    return begins[:, None] + first, begins[:, None] + end


def averages(sums: Tensor, rows: tuple[Tensor, Tensor], columns: tuple[Tensor, Tensor]) -> Tensor:
    """Returns the mean pixel [K, C, count, count] of each part of K rectangles."""
    flat, width = sums.flatten(1), sums.shape[2]

    def at(y: Tensor, x: Tensor) -> Tensor:
        return flat[:, y[:, :, None] * width + x[:, None, :]]

    total = at(rows[1], columns[1]) - at(rows[0], columns[1]) - at(rows[1], columns[0]) + at(rows[0], columns[0])
    heights, widths = (rows[1] - rows[0])[:, :, None], (columns[1] - columns[0])[:, None, :]
    return (total.to(torch.float32) / heights / widths).transpose(0, 1)


def square(boxes: Tensor) -> Tensor:
    """Returns squares around boxes, with their centres."""
    size = boxes[:, 2:] - boxes[:, :2]
    side = size.amax(1, keepdim=True)
    near = boxes[:, :2] + size * 0.5 - side * 0.5
    return torch.cat([near, near + side], 1)


def moved(boxes: Tensor, moves: Tensor) -> Tensor:
    size = boxes[:, 2:] - boxes[:, :2] + 1
    return boxes + moves * torch.cat([size, size], 1)


def nested_nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Returns the kept boxes by descending score. The overlap is relative to the smaller box: faces in faces are
    suppressed. Repeats the suppression of all boxes until nothing changes, in chains of at most MAX_CHAIN boxes."""
    scores, order = scores.sort(descending=True)
    boxes = boxes[order]
    near = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    far = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = (far - near + 1).clamp(min=0).prod(2)
    area = (boxes[:, 2:] - boxes[:, :2] + 1).prod(1)
    rank = torch.arange(boxes.shape[0])
    suppresses = ((shared / torch.minimum(area[:, None], area[None])) > threshold) & (rank[None] < rank[:, None])
    kept = torch.ones_like(scores)
    for _ in range(MAX_CHAIN):
        kept = ((suppresses.to(torch.float32) * kept).sum(1) < 0.5).to(torch.float32)
    return order[kept.nonzero()[:, 0]]
