"""polyop optimize: suppression written out box by box, in loops as both exporters write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import torch
from exported import nodes, optimized, write
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

pytestmark = pytest.mark.filterwarnings("ignore")

NODE = "mmcv::NonMaxSuppression"
PATTERN = "greedy suppression"


def pairs(boxes: Tensor) -> Tensor:
    """The IoU of each box with each."""
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    near = torch.max(boxes[:, None, :2], boxes[None, :, :2])
    far = torch.min(boxes[:, None, 2:], boxes[None, :, 2:])
    sides = (far - near).clamp(min=0)
    shared = sides[..., 0] * sides[..., 1]
    return shared / (area[:, None] + area[None] - shared)


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
    """The best lie last, the last pixels count, and the loop ends by itself when one box is left."""
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
    places = torch.arange(count)
    for i in range(count):
        near = torch.max(sorted_boxes[i, :2], sorted_boxes[:, :2])
        sides = (torch.min(sorted_boxes[i, 2:], sorted_boxes[:, 2:]) - near).clamp(min=0)
        shared = sides[:, 0] * sides[:, 1]
        overlap = shared / (area[i] + area - shared)
        keep = keep & ~(keep[i] & (overlap > threshold) & (places > i))
    return order[keep]


@torch.jit.script
def with_a_mask_of_what_has_gone(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    order = scores.argsort(0, descending=True)
    over = overlaps(boxes[order]) > threshold
    count = boxes.size(0)
    gone = torch.zeros(count, dtype=torch.bool)
    places = torch.arange(count)
    for i in range(count):
        gone = gone | (~gone[i] & over[i] & (places > i))
    return order[~gone]


@torch.jit.script
def among_the_best(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Boxes of low scores neither stay nor suppress."""
    order = scores.argsort(0, descending=True)
    over = overlaps(boxes[order]) > threshold
    count = boxes.size(0)
    keep = scores[order] > 0.25
    places = torch.arange(count)
    for i in range(count):
        keep = keep & ~(keep[i] & over[i] & (places > i))
    return order[keep]


@torch.jit.script
def of_rows(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """As in the first implementations of Fast R-CNN: a row has a box and its score, and the last pixels count."""
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


class Scripted(nn.Module):
    def __init__(self, suppress: Callable[..., Tensor], threshold: float = 0.5) -> None:
        super().__init__()
        self.suppress, self.threshold = suppress, threshold

    def forward(self, boxes: Tensor, scores: Tensor) -> Tensor:
        return self.suppress(boxes * 2.0, scores, self.threshold)


class Looped(nn.Module):
    """torch's own while_loop over a matrix of pairs."""

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
    """torch's own scan over the rows of a matrix of pairs. of_steps: read is whether the box of each step is kept."""

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


def detections(count: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(count)
    corner = torch.rand(count, 2, generator=generator) * 30
    sides = torch.rand(count, 2, generator=generator) * 15 + 1
    scores = torch.randperm(count, generator=generator) / count
    return {"boxes": torch.cat([corner, corner + sides], 1), "scores": scores}


def scripted(suppress: Callable[..., Tensor], threshold: float, folder: Path) -> Path:
    module = torch.jit.script(Scripted(suppress, threshold))
    dynamic = {"boxes": {0: "n"}, "scores": {0: "n"}}
    return write(module, detections(60), folder / "before.onnx", "torchscript", dynamic)


SUPPRESSIONS = [
    from_the_first, from_the_last, with_a_mask, with_a_mask_of_what_has_gone, among_the_best, of_rows
]  # fmt: skip


@pytest.mark.parametrize("suppress", SUPPRESSIONS, ids=lambda f: f.name)
@pytest.mark.parametrize("threshold", [0.5, 0.2])
def test_scripted_loops(suppress: Callable[..., Tensor], threshold: float, tmp_path: Path) -> None:
    before = scripted(suppress, threshold, tmp_path)
    after, report = optimized(before, [detections(60), detections(150), detections(2)])
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[NODE] == 1
    assert nodes(after)["Loop"] == 0


@pytest.mark.parametrize("module", [Looped(), Scanned(False), Scanned(True)], ids=["while_loop", "scan", "its steps"])
def test_loops_of_the_dynamo_exporter(module: nn.Module, tmp_path: Path) -> None:
    before = write(module, detections(60), tmp_path / "before.onnx", "dynamo")
    assert nodes(before)["Loop"] + nodes(before)["Scan"] == 1
    after, report = optimized(before, [detections(60)])
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[NODE] == 1
    assert nodes(after)["Loop"] + nodes(after)["Scan"] == 0


def test_a_loop_that_ends_early_stays(tmp_path: Path) -> None:
    before = scripted(at_most_five, 0.5, tmp_path)
    _, report = optimized(before, [detections(60)])
    assert not report.replaced, str(report)


def test_other_overlaps_stay(tmp_path: Path) -> None:
    """The loop's form alone is not believed: here it compares by something else than the IoU."""
    before = scripted(from_the_first, 0.5, tmp_path)
    model = onnx.load(before)
    (loop,) = [node for node in model.graph.node if node.op_type == "Loop"]
    (add,) = [node for node in loop.attribute[0].g.node if node.op_type == "Add"]
    add.op_type = "Max"  # the quotient by the larger area
    onnx.save(model, before)
    _, report = optimized(before, [detections(60)])
    (finding,) = report.findings
    assert not finding.replaced
    assert "differs" in finding.why
