# SPDX-License-Identifier: Apache-2.0
"""A two-stage detector: proposals, suppression, RoIAlign, classification, suppression per class."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import polyop
from boxes import centre_and_size, pairwise, refine
from layers import CELLS, MIN_SCORE, STRIDES, WIDTH, DenseHead, Pyramid, convolution, mlp, take
from scenes import CLASSES, MAX_OBJECTS, Targets

BACKGROUND = len(CLASSES)
DELTA_SCALE = 0.2  # typical deltas of regions become numbers near 1


class TwoStageDetector(nn.Module):
    """Images [B, 3, SIZE, SIZE] in 0 … 1 -> boxes and scores [B, DETECTIONS, 5] and labels [B, DETECTIONS]; -1 is an
    unused row."""

    PROPOSALS, DETECTIONS, BINS = 32, 20, 7

    def __init__(self) -> None:
        super().__init__()
        self.pyramid = Pyramid()
        self.smooth = convolution(WIDTH, WIDTH)
        self.proposer = DenseHead(1)
        self.align = polyop.RoIAlign(self.BINS, spatial_scale=1 / STRIDES[0], sampling_ratio=2, aligned=True)
        self.trunk = nn.Sequential(mlp(WIDTH * self.BINS**2, 128, 128), nn.ReLU(inplace=True))
        self.score, self.delta = nn.Linear(128, BACKGROUND + 1), nn.Linear(128, 4)

    def propose(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the finest features, and logits [B, S, 1] and boxes [B, S, 4] of the cells."""
        levels = self.pyramid(images)
        return levels[0], *self.proposer(self.smooth(levels[CELLS]).flatten(2).transpose(1, 2))

    def select(self, logits: Tensor, boxes: Tensor) -> Tensor:
        """Suppresses boxes and returns the best ones with their scores, [B, PROPOSALS, 5]. Unused rows are 0."""
        rows, _, _ = torch.ops.polyop.batched_nms(
            boxes.detach()[:, :, None],
            logits.detach().sigmoid(),
            keep_topk=self.PROPOSALS,
            iou_threshold=0.7,
            clip_boxes=0,
        )
        return rows

    def classify(self, fine: Tensor, regions: Tensor) -> tuple[Tensor, Tensor]:
        """Returns logits [B, R, CLASSES + 1] and deltas [B, R, 4] of regions [B, R, 4]."""
        image = torch.arange(regions.shape[0]).to(regions)[:, None, None].expand(-1, regions.shape[1], 1)
        pooled = self.align(fine, torch.cat([image, regions], -1).flatten(0, 1))
        features = self.trunk(pooled.flatten(1)).unflatten(0, (-1, regions.shape[1]))
        return self.score(features), self.delta(features)

    def candidates(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Returns boxes [B, PROPOSALS, 4] and scores [B, PROPOSALS, CLASSES] before the last suppression."""
        fine, logits, boxes = self.propose(images)
        proposals = self.select(logits, boxes)
        logits, deltas = self.classify(fine, proposals[..., :4])
        used = (proposals[..., 4:] > 0).to(logits)
        return refine(proposals[..., :4], deltas * DELTA_SCALE), logits.softmax(-1)[..., :BACKGROUND] * used

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        boxes, scores = self.candidates(images)
        detections, labels, _ = torch.ops.polyop.batched_nms(
            boxes[:, :, None],
            scores,
            keep_topk=self.DETECTIONS,
            score_threshold=MIN_SCORE,
            iou_threshold=0.5,
            clip_boxes=0,
        )
        return detections, labels

    def loss(self, images: Tensor, targets: Targets) -> Tensor:
        fine, logits, boxes = self.propose(images)
        # The true boxes, moved a little, are regions, too: at first no proposal overlaps an object.
        noise = torch.randn(len(images), MAX_OBJECTS, 4) * 0.1
        regions = torch.cat([self.select(logits, boxes)[..., :4], refine(targets.boxes, noise)], 1)
        return self.proposer.loss(logits, boxes, targets) + self._region_loss(fine, regions, targets)

    def _region_loss(self, fine: Tensor, regions: Tensor, targets: Targets) -> Tensor:
        """A region predicts the object that it overlaps most, if the IoU is at least 0.5, and background otherwise."""
        iou, _ = pairwise(regions, targets.boxes)
        best, index = torch.where((targets.labels >= 0)[:, None], iou, -1.0).max(-1)
        labels, aims = take(targets, torch.where(best >= 0.5, index, -1))
        logits, deltas = self.classify(fine, regions)
        positive = labels >= 0
        classification = F.cross_entropy(logits.flatten(0, 1), torch.where(positive, labels, BACKGROUND).flatten())
        aim = deltas_between(regions[positive], aims[positive]) / DELTA_SCALE
        return classification + F.smooth_l1_loss(deltas[positive], aim)


def deltas_between(boxes: Tensor, aims: Tensor) -> Tensor:
    """Returns the deltas for which `refine` moves the boxes to their aims."""
    (centre, size), (aim, extent) = centre_and_size(boxes), centre_and_size(aims)
    return torch.cat([(aim - centre) / size, (extent / size).log()], -1)
