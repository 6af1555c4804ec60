# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: suppression that searches for the best remaining box, in Loops and Scans of both exporters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from tests.support.exported import nodes, optimized, write
from tests.support.suppression import NODE, PATTERN, detections, halves, pairs, scripted

pytestmark = pytest.mark.filterwarnings("ignore")

LOWEST = float("-inf")


@torch.jit.script
def overlaps(boxes: Tensor, i: Tensor) -> Tensor:
    """Returns the IoU of box i with every box."""
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    near = torch.max(boxes[i, :2], boxes[:, :2])
    sides = (torch.min(boxes[i, 2:], boxes[:, 2:]) - near).clamp(min=0)
    shared = sides[:, 0] * sides[:, 1]
    return shared / (area[i] + area - shared)


@torch.jit.script
def set_to_zero(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    left = scores
    positions = torch.arange(boxes.size(0))
    keep: list[Tensor] = []
    while bool((left > 0.1).any()):
        i = left.argmax()
        keep.append(i)
        suppressed = (overlaps(boxes, i) > threshold) | (positions == i)
        left = torch.where(suppressed, torch.zeros_like(left), left)
    return torch.stack(keep)


@torch.jit.script
def set_to_infinity(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """The best box is suppressed because it overlaps itself; at most twenty boxes are kept."""
    left = scores
    keep: list[Tensor] = []
    while len(keep) < 20 and bool(left.max() >= 0.05):
        i = left.argmax()
        keep.append(i)
        left = left.masked_fill(overlaps(boxes, i) >= threshold, float("-inf"))
    return torch.stack(keep)


@torch.jit.script
def with_a_mask_of_what_is_left(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    left = torch.ones(boxes.size(0), dtype=torch.bool)
    keep: list[Tensor] = []
    while bool(left.any()):
        i = scores.masked_fill(~left, float("-inf")).argmax()
        keep.append(i)
        left = left & (overlaps(boxes, i) <= threshold)
    return torch.stack(keep)


@torch.jit.script
def as_many_steps_as_boxes(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """The output after the kept boxes repeats the first box."""
    left = scores
    positions = torch.arange(boxes.size(0))
    keep: list[Tensor] = []
    for _ in range(boxes.size(0)):
        i = left.argmax()
        keep.append(i)
        left = left.masked_fill((overlaps(boxes, i) > threshold) | (positions == i), float("-inf"))
    return torch.stack(keep)


@torch.jit.script
def weakened(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """soft-NMS: overlapping boxes get a lower score, but stay."""
    left = scores
    positions = torch.arange(boxes.size(0))
    keep: list[Tensor] = []
    while bool((left > 0.1).any()):
        i = left.argmax()
        keep.append(i)
        overlap = overlaps(boxes, i)
        less = torch.where(overlap > threshold, left * (1.0 - overlap), left)
        left = torch.where(positions == i, torch.zeros_like(left), less)
    return torch.stack(keep)


class Stepped(nn.Module):
    """torch's while_loop: writes indices into a tensor of fixed size while scores are high enough."""

    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        over = pairs(boxes) > 0.4
        positions, slots = torch.arange(boxes.shape[0]), torch.arange(30)

        def goes_on(i: Tensor, left: Tensor, keep: Tensor) -> Tensor:
            return (i < 30) & (left.max() > 0.2)

        def body(i: Tensor, left: Tensor, keep: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            best = left.argmax()
            suppressed = over.index_select(0, best.reshape(1))[0] | (positions == best)
            return i + 1, torch.where(suppressed, LOWEST, left), torch.where(slots == i, best, keep)

        first = (torch.tensor(0), scores * 1.0, torch.full((30,), -1))
        count, _, keep = while_loop(goes_on, body, first)
        return keep, count


class Scanned(nn.Module):
    """torch's scan: the index and the score of each step. `sigmoid`: scores are probabilities."""

    def __init__(self, lowest: float = LOWEST, sigmoid: bool = False, labels: bool = False) -> None:
        super().__init__()
        self.lowest, self.sigmoid, self.labels = lowest, sigmoid, labels

    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        over, positions = pairs(boxes) > 0.4, torch.arange(boxes.shape[0])
        if self.labels:
            label = (scores * 4).to(torch.int64)
            over = over & (label[:, None] == label)

        def step(left: Tensor, i: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
            best = left.argmax()
            suppressed = over.index_select(0, best.reshape(1))[0] | (positions == best)
            return torch.where(suppressed, self.lowest, left), (best, left.max())

        first = scores.sigmoid() if self.sigmoid else scores * 1.0
        return scan(step, first, torch.arange(20))[1]


SUPPRESSIONS = [set_to_zero, set_to_infinity, with_a_mask_of_what_is_left, as_many_steps_as_boxes]


@pytest.mark.parametrize("suppress", SUPPRESSIONS, ids=lambda f: f.name)
@pytest.mark.parametrize("threshold", [0.5, 0.2])
def test_scripted_loops(suppress: Callable[..., Tensor], threshold: float, tmp_path: Path) -> None:
    before = scripted(suppress, threshold, tmp_path)
    after, report = optimized(before, [detections(60), detections(150), detections(30)])
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[NODE] == 1
    assert nodes(after)["Loop"] == 0


@pytest.mark.parametrize("suppress", [set_to_infinity, as_many_steps_as_boxes], ids=lambda f: f.name)
def test_half_precision(suppress: Callable[..., Tensor], tmp_path: Path) -> None:
    before = scripted(suppress, 0.5, tmp_path, halves)
    after, report = optimized(before, [halves(60), halves(150), halves(30)])
    assert report.replaced[PATTERN] == 1, str(report)
    assert nodes(after)["Loop"] == 0


@pytest.mark.parametrize(
    "module",
    [Stepped(), Scanned(), Scanned(lowest=0.0, sigmoid=True)],
    ids=["while_loop", "scan", "scan of probabilities"],
)
def test_loops_of_the_dynamo_exporter(module: nn.Module, tmp_path: Path) -> None:
    before = write(module, detections(60), tmp_path / "before.onnx", "dynamo")
    assert nodes(before)["Loop"] + nodes(before)["Scan"] == 1
    after, report = optimized(before, [detections(60)])
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[NODE] == 1
    assert nodes(after)["Loop"] + nodes(after)["Scan"] == 0


def test_scores_that_may_be_below_the_fill_value_are_kept(tmp_path: Path) -> None:
    """If a score may be negative, boxes whose score was set to 0 are selected again before it."""
    before = write(Scanned(lowest=0.0), detections(60), tmp_path / "before.onnx", "dynamo")
    _, report = optimized(before, [detections(60)])
    (finding,) = report.findings
    assert "differ" in finding.why


def test_suppression_by_class_is_kept(tmp_path: Path) -> None:
    before = write(Scanned(labels=True), detections(60), tmp_path / "before.onnx", "dynamo")
    _, report = optimized(before, [detections(60)])
    assert not report.replaced, str(report)


def test_soft_suppression_is_kept(tmp_path: Path) -> None:
    before = scripted(weakened, 0.5, tmp_path)
    _, report = optimized(before, [detections(60)])
    assert not report.replaced, str(report)
