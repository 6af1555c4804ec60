# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: suppression written box by box, in loops of both exporters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from tests.support.exported import nodes, optimized, write
from tests.support.suppression import NODE, PATTERN, detections, halves, pairs, scripted

pytestmark = pytest.mark.filterwarnings("ignore")

overlaps = torch.jit.script(pairs)


@torch.jit.script
def from_the_first(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    x1, y1, x2, y2 = boxes[:, 0], boxes[:, 1], boxes[:, 2], boxes[:, 3]
    areas = (x2 - x1) * (y2 - y1)
    order = scores.argsort(0, descending=True)
    keep: list[Tensor] = []
    while order.numel() > 0:
        i = order[0]
        keep.append(i)
        rest = order[1:]
        width = (torch.min(x2[i], x2[rest]) - torch.max(x1[i], x1[rest])).clamp(min=0)
        height = (torch.min(y2[i], y2[rest]) - torch.max(y1[i], y1[rest])).clamp(min=0)
        shared = width * height
        order = rest[shared / (areas[i] + areas[rest] - shared) <= threshold]
    return torch.stack(keep)


@torch.jit.script
def from_the_last(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Boxes are sorted ascending, sides include the last pixel, and the loop ends when one box is left."""
    x1, y1, x2, y2 = boxes[:, 0], boxes[:, 1], boxes[:, 2], boxes[:, 3]
    areas = (x2 - x1 + 1.0) * (y2 - y1 + 1.0)
    order = scores.argsort(0)
    keep: list[Tensor] = []
    while order.size(0) > 0:
        i = order[-1]
        keep.append(i)
        order = order[:-1]
        width = (torch.minimum(x2[i], x2[order]) - torch.maximum(x1[i], x1[order]) + 1.0).clamp(min=0.0)
        height = (torch.minimum(y2[i], y2[order]) - torch.maximum(y1[i], y1[order]) + 1.0).clamp(min=0.0)
        shared = width * height
        order = order[~(shared / (areas[i] + areas[order] - shared) >= threshold)]
    return torch.stack(keep)


@torch.jit.script
def with_a_mask(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    order = scores.argsort(0, descending=True)
    sorted_boxes = boxes[order]
    area = (sorted_boxes[:, 2] - sorted_boxes[:, 0]) * (sorted_boxes[:, 3] - sorted_boxes[:, 1])
    count = boxes.size(0)
    keep = torch.ones(count, dtype=torch.bool)
    positions = torch.arange(count)
    for i in range(count):
        near = torch.max(sorted_boxes[i, :2], sorted_boxes[:, :2])
        sides = (torch.min(sorted_boxes[i, 2:], sorted_boxes[:, 2:]) - near).clamp(min=0)
        shared = sides[:, 0] * sides[:, 1]
        overlap = shared / (area[i] + area - shared)
        keep = keep & ~(keep[i] & (overlap > threshold) & (positions > i))
    return order[keep]


@torch.jit.script
def with_a_mask_of_what_has_gone(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    order = scores.argsort(0, descending=True)
    over = overlaps(boxes[order]) > threshold
    count = boxes.size(0)
    gone = torch.zeros(count, dtype=torch.bool)
    positions = torch.arange(count)
    for i in range(count):
        gone = gone | (~gone[i] & over[i] & (positions > i))
    return order[~gone]


@torch.jit.script
def among_the_best(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Boxes with low scores neither stay nor suppress."""
    order = scores.argsort(0, descending=True)
    over = overlaps(boxes[order]) > threshold
    count = boxes.size(0)
    keep = scores[order] > 0.25
    positions = torch.arange(count)
    for i in range(count):
        keep = keep & ~(keep[i] & over[i] & (positions > i))
    return order[keep]


@torch.jit.script
def of_rows(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """As in the first implementations of Fast R-CNN: rows hold a box and its score; sides include the last pixel."""
    rows = torch.cat([boxes, scores[:, None]], 1)
    x1, y1, x2, y2 = rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3]
    areas = (x2 - x1 + 1.0) * (y2 - y1 + 1.0)
    order = rows[:, 4].argsort(0, descending=True)
    keep: list[Tensor] = []
    while order.numel() > 0:
        i = order[0]
        keep.append(i)
        rest = order[1:]
        width = (torch.min(x2[i], x2[rest]) - torch.max(x1[i], x1[rest]) + 1.0).clamp(min=0.0)
        height = (torch.min(y2[i], y2[rest]) - torch.max(y1[i], y1[rest]) + 1.0).clamp(min=0.0)
        shared = width * height
        order = rest[shared / (areas[i] + areas[rest] - shared) <= threshold]
    return torch.stack(keep)


@torch.jit.script
def at_most_five(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    order = scores.argsort(0, descending=True)
    overlaps = boxes[:, None, 0] / boxes[None, :, 2]
    keep: list[Tensor] = []
    while order.numel() > 0 and len(keep) < 5:
        i = order[0]
        keep.append(i)
        rest = order[1:]
        order = rest[overlaps[i][rest] <= threshold]
    return torch.stack(keep)


class Looped(nn.Module):
    """torch's while_loop over a matrix of pairs."""

    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        order = scores.argsort(0, descending=True)
        over = (pairs(boxes[order]) > 0.4).triu(1)
        count = boxes.shape[0]

        def body(i: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
            row = i.reshape(1)
            return i + 1, keep & ~(keep.index_select(0, row) & over.index_select(0, row)[0])

        first = (torch.tensor(0), torch.ones(count, dtype=torch.bool))
        return order, while_loop(lambda i, keep: i < count, body, first)[1]


class Scanned(nn.Module):
    """torch's scan over the rows of a matrix of pairs.

    `of_steps`: the output is whether the box of each step is kept.
    """

    def __init__(self, of_steps: bool) -> None:
        super().__init__()
        self.of_steps = of_steps

    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        order = scores.argsort(0, descending=True)
        over = (pairs(boxes[order]) > 0.4).triu(1)

        def step(keep: Tensor, of_box: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            i, row = of_box
            is_kept = keep.index_select(0, i.reshape(1))[0]
            return keep & ~(is_kept & row), is_kept.clone()

        count = boxes.shape[0]
        last, kept = scan(step, torch.ones(count, dtype=torch.bool), (torch.arange(count), over))
        return order, kept if self.of_steps else last


SUPPRESSIONS = [from_the_first, from_the_last, with_a_mask, with_a_mask_of_what_has_gone, among_the_best, of_rows]


@pytest.mark.parametrize("suppress", SUPPRESSIONS, ids=lambda f: f.name)
@pytest.mark.parametrize("threshold", [0.5, 0.2])
def test_scripted_loops(suppress: Callable[..., Tensor], threshold: float, tmp_path: Path) -> None:
    before = scripted(suppress, threshold, tmp_path)
    after, report = optimized(before, [detections(60), detections(150), detections(2)])
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[NODE] == 1
    assert nodes(after)["Loop"] == 0


@pytest.mark.parametrize("suppress", [from_the_last, among_the_best], ids=lambda f: f.name)
def test_half_precision(suppress: Callable[..., Tensor], tmp_path: Path) -> None:
    before = scripted(suppress, 0.5, tmp_path, halves)
    after, report = optimized(before, [halves(60), halves(150), halves(2)])
    assert report.replaced[PATTERN] == 1, str(report)
    assert nodes(after)["Loop"] == 0


@pytest.mark.parametrize("module", [Looped(), Scanned(False), Scanned(True)], ids=["while_loop", "scan", "its steps"])
def test_loops_of_the_dynamo_exporter(module: nn.Module, tmp_path: Path) -> None:
    before = write(module, detections(60), tmp_path / "before.onnx", "dynamo")
    assert nodes(before)["Loop"] + nodes(before)["Scan"] == 1
    after, report = optimized(before, [detections(60)])
    assert dict(report.replaced) == {PATTERN: 1, "order of rows": 1}, str(report)
    assert nodes(after)[NODE] == 1
    assert nodes(after)["Loop"] + nodes(after)["Scan"] == 0


def test_a_loop_that_ends_early_is_kept(tmp_path: Path) -> None:
    before = scripted(at_most_five, 0.5, tmp_path)
    _, report = optimized(before, [detections(60)])
    assert not report.replaced, str(report)


def test_other_overlaps_are_kept(tmp_path: Path) -> None:
    """The loop's form is not enough: this one compares something other than the IoU."""
    before = scripted(from_the_first, 0.5, tmp_path)
    model = onnx.load(before)
    (loop,) = [node for node in model.graph.node if node.op_type == "Loop"]
    (add,) = [node for node in loop.attribute[0].g.node if node.op_type == "Add"]
    add.op_type = "Max"  # divides by the larger area
    onnx.save(model, before)
    _, report = optimized(before, [detections(60)])
    (finding,) = report.findings
    assert not finding.replaced
    assert "differ" in finding.why
