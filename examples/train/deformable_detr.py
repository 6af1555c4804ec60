# SPDX-License-Identifier: Apache-2.0
"""A small Deformable DETR: the encoder's best cells become queries, and each object is matched with one query.

The encoder refines the cells of one level with samples of all levels. Queries are distinct (Zhang et al., Dense
Distinct Query, 2023): suppression leaves few cells for each object, so that training needs minutes instead of days.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

import polyop
from boxes import centre_and_size, overlaps, pairwise, refine
from layers import CELLS, MIN_SCORE, STRIDES, WIDTH, DenseHead, Pyramid, convolution, focal_loss, mlp, start_rare, take
from scenes import CLASSES, SIZE, Targets

HEADS, POINTS = 4, 4


class Attention(nn.Module):
    """Attention of the queries [B, Q, WIDTH] to each other."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.value, self.output = (
            nn.Linear(WIDTH, 2 * WIDTH),
            nn.Linear(WIDTH, WIDTH),
            nn.Linear(WIDTH, WIDTH),
        )

    def forward(self, queries: Tensor, position: Tensor) -> Tensor:
        q, k = self.mix(queries + position).chunk(2, -1)
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in (q, k, self.value(queries)))
        return self.output(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Deformable attention to the pyramid and a feed-forward network; in a decoder, attention between queries first."""

    def __init__(self, decoder: bool) -> None:
        super().__init__()
        self.between = Attention() if decoder else None
        self.sample = polyop.MultiScaleDeformableAttention(
            WIDTH, HEADS, len(STRIDES), POINTS, dropout=0.0, batch_first=True
        )
        self.feed = mlp(WIDTH, 2 * WIDTH, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3 if decoder else 2))
        extents = torch.tensor([[SIZE // s, SIZE // s] for s in STRIDES])
        sizes = extents.prod(1)
        self.register_buffer("extents", extents, persistent=False)
        self.register_buffer("starts", sizes.cumsum(0) - sizes, persistent=False)

    def forward(self, queries: Tensor, position: Tensor, boxes: Tensor, memory: Tensor) -> Tensor:
        """Samples near `boxes` [B, Q, 4] of the memory [B, S, WIDTH]."""
        if self.between is not None:
            queries = self.norms[2](queries + self.between(queries, position))
        reference = torch.cat(centre_and_size(boxes), -1)[:, :, None].expand(-1, -1, len(STRIDES), -1) / SIZE
        queries = self.norms[0](
            self.sample(
                queries,
                value=memory,
                query_pos=position,
                reference_points=reference,
                spatial_shapes=self.extents,
                level_start_index=self.starts,
            )
        )
        return self.norms[1](queries + self.feed(queries))


class DeformableDetr(nn.Module):
    """Images [B, 3, SIZE, SIZE] in 0 … 1 -> boxes and scores [B, DETECTIONS, 5] and labels [B, DETECTIONS]; -1 is an
    unused row."""

    QUERIES, DETECTIONS, LAYERS = 24, 20, 2

    def __init__(self) -> None:
        super().__init__()
        self.pyramid = Pyramid()
        self.smooth = convolution(WIDTH, WIDTH)
        self.levels = nn.Parameter(torch.randn(len(STRIDES), WIDTH) * 0.1)
        self.encoder = Layer(decoder=False)
        self.proposer = DenseHead(len(CLASSES))
        self.position = mlp(4, WIDTH, WIDTH)
        self.decoder = nn.ModuleList(Layer(decoder=True) for _ in range(self.LAYERS))
        self.scores = nn.ModuleList(mlp(WIDTH, WIDTH, len(CLASSES)) for _ in range(self.LAYERS))
        self.deltas = nn.ModuleList(mlp(WIDTH, WIDTH, 4) for _ in range(self.LAYERS))
        for score in self.scores:
            start_rare(score)

    def select(self, logits: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the best boxes [B, QUERIES, 4] that differ, and the numbers [B, QUERIES] of their cells.

        If there are fewer, the others are empty boxes and cell 0.
        """
        best = logits.detach().sigmoid().amax(-1, keepdim=True)
        rows, _, index = torch.ops.polyop.batched_nms(
            boxes.detach()[:, :, None], best, keep_topk=self.QUERIES, iou_threshold=0.6, clip_boxes=0
        )
        return rows[..., :4], index.clamp(min=0)

    def predict(self, images: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Returns logits [B, N, CLASSES] and boxes [B, N, 4]: of all cells, then of the queries after each layer."""
        levels = self.pyramid(images)
        levels[CELLS] = self.smooth(levels[CELLS])
        flat = [x.flatten(2).transpose(1, 2) + level for x, level in zip(levels, self.levels, strict=True)]
        memory = torch.cat(flat, 1)
        boxes = self.proposer.cells.expand(len(images), -1, -1)
        cells = self.encoder(flat[CELLS], self.position(boxes / SIZE), boxes, memory)
        found = [self.proposer(cells)]
        boxes, best = self.select(*found[0])
        queries = torch.ops.polyop.gather_topk(cells.detach(), best)
        for layer, score, delta in zip(self.decoder, self.scores, self.deltas, strict=True):
            queries = layer(queries, self.position(boxes / SIZE), boxes, memory)
            refined = refine(boxes, delta(queries))
            found.append((score(queries), refined))
            boxes = refined.detach()
        return found

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        logits, boxes = self.predict(images)[-1]
        scores, index = logits.sigmoid().flatten(1).topk(self.DETECTIONS, 1)
        boxes = torch.ops.polyop.gather_topk(boxes, index // len(CLASSES))
        used = scores > MIN_SCORE
        detections = torch.cat([boxes, scores[..., None]], -1)
        return torch.where(used[..., None], detections, 0.0), torch.where(used, index % len(CLASSES), -1).int()

    def loss(self, images: Tensor, targets: Targets) -> Tensor:
        (logits, boxes), *layers = self.predict(images)
        loss = self.proposer.loss(logits, boxes, targets)
        for logits, boxes in layers:
            loss = loss + self._matched_loss(logits, boxes, targets)
        return loss

    def _matched_loss(self, logits: Tensor, boxes: Tensor, targets: Targets) -> Tensor:
        index = match(logits.detach(), boxes.detach(), targets)
        labels, aims = take(targets, index)
        positive = index >= 0
        count = positive.sum().clamp(min=1)
        _, giou = overlaps(boxes[positive], aims[positive])
        distance = (boxes[positive] - aims[positive]).abs().sum() / SIZE
        return (2 * focal_loss(logits, labels) + 5 * distance + 2 * (1 - giou).sum()) / count


def sample_by_grid(value: Tensor, extents: Tensor, starts: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
    """`polyop.ms_deform_attn` as Deformable DETR's authors write it in PyTorch: grid_sample on each level."""
    del extents, starts  # constants
    batch, queries, heads = locations.shape[:3]
    sides = [SIZE // stride for stride in STRIDES]
    grids = (2 * locations - 1).transpose(1, 2).flatten(0, 1)  # [B * HEADS, Q, levels, POINTS, 2]
    sampled = [
        F.grid_sample(
            level.permute(0, 2, 3, 1).reshape(batch * heads, -1, side, side), grids[:, :, i], align_corners=False
        )
        for i, (level, side) in enumerate(zip(value.split([side * side for side in sides], 1), sides, strict=True))
    ]
    weights = weights.transpose(1, 2).reshape(batch * heads, 1, queries, -1)
    found = (torch.stack(sampled, -2).flatten(-2) * weights).sum(-1)
    return found.view(batch, -1, queries).transpose(1, 2).contiguous()


def match(logits: Tensor, boxes: Tensor, targets: Targets) -> Tensor:
    """Returns the object of each query [B, Q], or -1, such that each object has one query at the least total cost."""
    _, giou = pairwise(boxes, targets.boxes)
    distance = (boxes[:, :, None] - targets.boxes[:, None]).abs().sum(-1) / SIZE
    probability = logits.sigmoid().gather(2, targets.labels.clamp(min=0)[:, None].expand(-1, logits.shape[1], -1))
    cost = 5 * distance - 2 * giou - 2 * probability
    index = torch.full(boxes.shape[:2], -1)
    for i, objects in enumerate((targets.labels >= 0).sum(1).tolist()):
        queries, matched = linear_sum_assignment(cost[i, :, :objects].numpy())
        index[i, queries] = torch.from_numpy(matched)
    return index
