# SPDX-License-Identifier: Apache-2.0
"""Decodes the outputs of heads: boxes in the pixels of the model's input, and class scores."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

import numpy as np
from onnx import TensorProto

from polyop.attaching.errors import AttachError
from polyop.attaching.heads import Layout, Tensor
from polyop.attaching.nodes import Nodes

_STRIDES_OF_YOLOX = (8, 16, 32)
_MAX_GROWTH = log(1000 / 16)  # of RetinaNet's offsets
_SIDES_OF_RETINANET = (32, 64, 128, 256, 512)  # at the strides 8 to 128
_RATIOS = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Decoded:
    """Names of values. boxes: corners [N, B, 4], or (cx, cy, w, h, angle) [N, B, 5]; scores: [N, B, C].

    extra: further columns [N, B, E], or "". labels: the classes [N, B] of boxes with one score [N, B], or "".
    """

    boxes: str
    scores: str
    extra: str = ""
    labels: str = ""


@dataclass(frozen=True)
class Input:
    """The model's input image. extents: height and width, if fixed; size: the name of the value (W, H), as real
    numbers."""

    extents: tuple[int, int] | None
    size: str

    def fixed(self, head: str) -> tuple[int, int]:
        if self.extents is None:
            raise AttachError(
                f"head {head}: expected a model input of fixed height and width, got one that varies",
                "export the model with a fixed size, or give --image and --letterbox HEIGHTxWIDTH",
            )
        return self.extents


def decode(b: Nodes, layout: Layout, image: Input, anchors: np.ndarray | None) -> Decoded:
    """Writes the nodes that decode the outputs of a head."""
    values = [as_real(b, tensor) for tensor in layout.tensors]
    if layout.head == "efficientnms":
        return Decoded(values[1], values[2], labels=_final_labels(b, layout, values))
    if layout.head in ("mmdet", "mmrotate"):
        corners = 5 if layout.head == "mmrotate" else 4
        rows, labels = values[:2]
        scores = b("Squeeze", b.columns(rows, corners, corners + 1), b.constant([-1]))
        return Decoded(b.columns(rows, 0, corners), scores, labels=b.cast(labels, TensorProto.INT64))
    if layout.head == "torchvision":
        boxes, scores, labels = (b("Unsqueeze", value, b.constant([0])) for value in values[:3])
        return Decoded(boxes, scores, labels=b.cast(labels, TensorProto.INT64))
    if layout.head in ("detr", "rtdetr"):
        return _detr(b, layout, image, *values)
    if layout.head == "ssd":
        return _ssd(b, image, anchors, *values)
    if layout.head == "retinanet":
        return _retinanet(b, layout, image, anchors, *values)
    return _yolo(b, layout, image, values[0])


def as_real(b: Nodes, tensor: Tensor) -> str:
    """Returns a tensor as float32."""
    return tensor.name if tensor.type == TensorProto.FLOAT else b.cast(tensor.name, TensorProto.FLOAT)


def _final_labels(b: Nodes, layout: Layout, values: list[str]) -> str:
    """Returns the classes of detections. The rows after the last detection get the class -1."""
    number, _, scores, labels = values
    row = b("Range", b.constant(0), b("Squeeze", b.extents(scores, 1, 2)), b.constant(1))
    used = b("Less", b.cast(row, TensorProto.FLOAT), number)
    return b("Where", used, b.cast(labels, TensorProto.INT64), b.constant(-1))


def _from_center(b: Nodes, boxes: str) -> str:
    """Returns corners of boxes of centre and size."""
    center = b.columns(boxes, 0, 2)
    half = b("Mul", b.columns(boxes, 2, 4), b.real(0.5))
    return b.concat(b("Sub", center, half), b("Add", center, half))


def _scaled(b: Nodes, corners: str, image: Input) -> str:
    """Returns corners in pixels, of corners that are fractions of the image."""
    return b("Mul", corners, b.concat(image.size, image.size))


def _yolo(b: Nodes, layout: Layout, image: Input, rows: str) -> Decoded:
    if layout.head == "yolov8":
        rows = b("Transpose", rows, perm=[0, 2, 1])
    boxes = b.columns(rows, 0, 4)
    last = 2**31
    if layout.classes is None:  # suppressed by the model
        scores, labels = (b("Squeeze", b.columns(rows, i, i + 1), b.constant([-1])) for i in (4, 5))
        extra = b.columns(rows, 6, last) if layout.extra else ""
        labels = b.cast(b("Round", labels), TensorProto.INT64)
        if layout.task == "obb":
            return Decoded(b.concat(boxes, extra), scores, labels=labels)
        return Decoded(boxes, scores, extra, labels)
    first = 4 if layout.head == "yolov8" else 5
    scores = b.columns(rows, first, first + layout.classes)
    if first == 5:
        scores = b("Mul", scores, b.columns(rows, 4, 5))
    extra = b.columns(rows, first + layout.classes, last) if layout.extra else ""
    if layout.head == "yolox":
        boxes = _off_cells(b, boxes, *_cells(image.fixed("yolox"), _STRIDES_OF_YOLOX), layout.tensors[0])
    if layout.task == "obb":
        return Decoded(b.concat(boxes, extra), scores)
    return Decoded(_from_center(b, boxes), scores, extra)


def _cells(extents: tuple[int, int], strides: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the position (x, y) [B, 2] of all cells of a pyramid, row by row, and their stride [B, 1]."""
    positions, sides = [], []
    for stride in strides:
        y, x = np.mgrid[: ceil(extents[0] / stride), : ceil(extents[1] / stride)]
        positions.append(np.stack([x, y], -1).reshape(-1, 2))
        sides.append(np.full((x.size, 1), stride))
    return np.concatenate(positions), np.concatenate(sides)


def _check_rows(expected: int, tensor: Tensor, what: str) -> None:
    if tensor.shape[1] not in (None, expected):
        raise AttachError(f"output {tensor}: expected {expected} rows, {what}, got {tensor.shape[1]}")


def _off_cells(b: Nodes, boxes: str, cells: np.ndarray, strides: np.ndarray, tensor: Tensor) -> str:
    _check_rows(len(cells), tensor, "one per cell of the strides 8, 16 and 32")
    stride = b.real(strides)
    center = b("Mul", b("Add", b.columns(boxes, 0, 2), b.real(cells)), stride)
    return b.concat(center, b("Mul", b("Exp", b.columns(boxes, 2, 4)), stride))


def _ssd(b: Nodes, image: Input, anchors: np.ndarray | None, boxes: str, scores: str) -> Decoded:
    if anchors is not None:  # the usual variances, 0.1 and 0.2
        return Decoded(_off_anchors(b, boxes, anchors, (10.0, 5.0)), scores)
    return Decoded(_scaled(b, boxes, image), scores)


def _retinanet(b: Nodes, layout: Layout, image: Input, anchors: np.ndarray | None, boxes: str, logits: str) -> Decoded:
    if anchors is None:
        anchors = _anchors(image.fixed("retinanet"))
        _check_rows(len(anchors), layout.tensors[0], "9 per cell of the strides 8 to 128 (--anchors FILE gives others)")
    return Decoded(_off_anchors(b, boxes, anchors, (1.0, 1.0)), b("Sigmoid", logits))


def _off_anchors(b: Nodes, offsets: str, anchors: np.ndarray, weights: tuple[float, float]) -> str:
    """Returns corners of boxes that are relative to anchors, which are corners [A, 4] in pixels."""
    size = anchors[:, 2:] - anchors[:, :2]
    center = anchors[:, :2] + size / 2
    moved = b("Div", b.columns(offsets, 0, 2), b.real(weights[0]))
    grown = b("Min", b("Div", b.columns(offsets, 2, 4), b.real(weights[1])), b.real(_MAX_GROWTH))
    center_of_box = b("Add", b("Mul", moved, b.real(size)), b.real(center))
    return _from_center(b, b.concat(center_of_box, b("Mul", b("Exp", grown), b.real(size))))


def _anchors(extents: tuple[int, int]) -> np.ndarray:
    """Returns RetinaNet's anchors, as torchvision has them: corners [A, 4] in pixels, by cell, ratio and scale."""
    result = []
    for level, side in enumerate(_SIDES_OF_RETINANET):
        rows, columns = (ceil(e / 2 ** (3 + level)) for e in extents)
        scales = np.array([int(side * 2 ** (i / 3)) for i in range(3)])
        heights = (np.sqrt(_RATIOS)[:, None] * scales).reshape(-1)
        widths = (1 / np.sqrt(_RATIOS)[:, None] * scales).reshape(-1)
        base = np.round(np.stack([-widths, -heights, widths, heights], 1) / 2)
        y, x = np.mgrid[:rows, :columns]
        at = np.stack([x * (extents[1] // columns), y * (extents[0] // rows)] * 2, -1).reshape(-1, 1, 4)
        result.append((at + base).reshape(-1, 4))
    return np.concatenate(result)


def _detr(b: Nodes, layout: Layout, image: Input, boxes: str, logits: str) -> Decoded:
    assert layout.classes is not None  # a pair of outputs has it
    corners = _scaled(b, _from_center(b, boxes), image)
    if layout.head == "detr":
        scores = b.columns(b("Softmax", logits, axis=-1), 0, layout.classes - 1)
    else:
        scores = b("Sigmoid", logits)
    labels = b("ArgMax", scores, axis=-1, keepdims=0)
    return Decoded(corners, b.extreme("ReduceMax", scores, 2, keepdims=False), labels=labels)
