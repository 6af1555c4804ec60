# SPDX-License-Identifier: Apache-2.0
"""What both detectors share: a pyramid of features, and a head that predicts a box at each position of the pyramid."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from boxes import centre_and_size, overlaps, refine
from scenes import SIZE, Targets

WIDTH = 64  # of features
STRIDES = (4, 8, 16)  # of the pyramid
CELLS = 1  # the level that predicts a box at each position
MIN_SCORE = 0.05  # of a detection


def convolution(channels: int, filters: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(inplace=True)
    )


def mlp(*widths: int) -> nn.Sequential:
    """Returns linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])


class Pyramid(nn.Module):
    """Images [B, 3, SIZE, SIZE] -> a list of features [B, WIDTH, SIZE / s, SIZE / s] for each s of STRIDES."""

    def __init__(self) -> None:
        super().__init__()
        channels = (24, 32, 64, 96)
        self.stem = convolution(3, channels[0], 2)
        self.stages = nn.ModuleList(
            nn.Sequential(convolution(before, after, 2), convolution(after, after))
            for before, after in pairwise(channels)
        )
        self.laterals = nn.ModuleList(nn.Conv2d(after, WIDTH, 1) for after in channels[1:])

    def forward(self, images: Tensor) -> list[Tensor]:
        x = self.stem(images - 0.5)
        found = []
        for stage, lateral in zip(self.stages, self.laterals, strict=True):
            x = stage(x)
            found.append(lateral(x))
        for fine in reversed(range(len(found) - 1)):
            found[fine] = found[fine] + F.interpolate(found[fine + 1], scale_factor=2.0, mode="nearest")
        return found


def cells(stride: int) -> Tensor:
    """Returns squares [S, 4], with sides of twice the stride, around the pixels of a level, row by row."""
    along = (torch.arange(SIZE // stride) + 0.5) * stride
    y, x = torch.meshgrid(along, along, indexing="ij")
    centre = torch.stack([x, y], -1).reshape(-1, 2)
    return torch.cat([centre - stride, centre + stride], 1)


class DenseHead(nn.Module):
    """Features [B, S, WIDTH] of the cells -> logits [B, S, classes] and boxes [B, S, 4]."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("cells", cells(STRIDES[CELLS]), persistent=False)
        self.score, self.delta = mlp(WIDTH, WIDTH, classes), mlp(WIDTH, WIDTH, 4)
        start_rare(self.score)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.score(features), refine(self.cells, self.delta(features))

    def loss(self, logits: Tensor, boxes: Tensor, targets: Targets) -> Tensor:
        """A cell near the centre of an object predicts the object."""
        index = self._assign(targets)
        labels, aims = take(targets, index)
        positive = index >= 0
        count = positive.sum().clamp(min=1)
        if logits.shape[-1] == 1:  # any object
            labels = torch.where(positive, 0, -1)
        _, giou = overlaps(boxes[positive], aims[positive])
        return focal_loss(logits, labels) / count + (1 - giou).sum() / count

    def _assign(self, targets: Targets) -> Tensor:
        """Returns the number of each cell's object [B, S], or -1."""
        (centre, _), (aim, _) = centre_and_size(self.cells), centre_and_size(targets.boxes)
        distance = (centre[:, None] - aim[:, None]).abs().amax(-1)  # [B, S, MAX_OBJECTS]
        nearest, index = torch.where((targets.labels >= 0)[:, None], distance, torch.inf).min(-1)
        return torch.where(nearest < STRIDES[CELLS], index, -1)


def take(targets: Targets, index: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the labels [B, N] and the boxes [B, N, 4] of objects by their numbers [B, N]; label -1 for number -1."""
    safe = index.clamp(min=0)
    labels = torch.where(index >= 0, targets.labels.gather(1, safe), -1)
    return labels, targets.boxes.gather(1, safe[..., None].expand(-1, -1, 4))


def focal_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Returns the sum of the focal loss of logits [..., C] for labels [...], where -1 is none of the classes."""
    truth = F.one_hot(labels + 1, logits.shape[-1] + 1)[..., 1:].to(logits)
    loss = F.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    wrong = (logits.sigmoid() - truth).abs()
    return ((0.25 * truth + 0.75 * (1 - truth)) * wrong.square() * loss).sum()


def start_rare(score: nn.Sequential) -> None:
    """Initializes the last bias so that every class has a probability of 0.02."""
    nn.init.constant_(score[-1].bias, math.log(0.02 / 0.98))
