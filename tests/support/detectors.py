# SPDX-License-Identifier: Apache-2.0
"""Synthetic detectors with constant outputs, and what they find: decoding and suppression in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32 = np.float32


def write(
    path: Path,
    size: tuple[int, int],
    outputs: Mapping[str, np.ndarray],
    metadata: Mapping[str, str] | None = None,
    *,
    name: str = "images",
    dynamic: bool = False,
    graph: str = "detector",
    images: int = 1,
    type: int = TensorProto.FLOAT,
) -> Path:
    """Writes a model with these outputs for every image."""
    extents = ["height", "width"] if dynamic else list(size)
    image = helper.make_tensor_value_info(name, type, [images, 3, *extents])
    nodes = [helper.make_node("ReduceMin", [name], ["darkest"], keepdims=0)]
    nodes.append(helper.make_node("Mul", ["darkest", "nought"], ["zero"]))
    weights, infos = [numpy_helper.from_array(np.array(0, helper.tensor_dtype_to_np_dtype(type)), "nought")], []
    for output, value in outputs.items():
        weights.append(numpy_helper.from_array(value, f"{output}/constant"))
        nodes.append(helper.make_node("CastLike", ["zero", f"{output}/constant"], [f"{output}/zero"]))
        nodes.append(helper.make_node("Add", [f"{output}/constant", f"{output}/zero"], [output]))
        infos.append(helper.make_tensor_value_info(output, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    proto = helper.make_model(
        helper.make_graph(nodes, graph, [image], infos, weights),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    proto.metadata_props.extend(onnx.StringStringEntryProto(key=k, value=v) for k, v in (metadata or {}).items())
    onnx.save(proto, path)
    return path


def cells(size: tuple[int, int], strides: tuple[int, ...] = (8, 16, 32)) -> int:
    return sum(-(-size[0] // s) * -(-size[1] // s) for s in strides)


@dataclass
class Found:
    """What an image contains. rows: the index of the box of each detection."""

    boxes: np.ndarray
    scores: np.ndarray
    labels: np.ndarray
    rows: np.ndarray


def corners(boxes: np.ndarray) -> np.ndarray:
    """Returns corners of boxes of centre and size."""
    return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)


def iou(a: np.ndarray, b: np.ndarray) -> float:
    shared = np.prod(np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0))
    area = np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared
    return float(shared / area) if area > 0 else 0.0


def detect(
    boxes: np.ndarray,
    scores: np.ndarray,
    *,
    score: float = 0.25,
    overlap: float = 0.5,
    limit: int = 100,
    agnostic: bool = False,
    best: bool = True,
    classes: tuple[int, ...] | None = None,
) -> Found:
    """Suppresses greedily: boxes [B, 4] are corners, scores [B, C]."""
    scores = scores.astype(F32)
    candidates = [
        (-scores[row, label], row, label)
        for row, label in np.argwhere(scores >= F32(score))
        if (not best or label == scores[row].argmax()) and (classes is None or label in classes)
    ]
    kept: list[tuple[int, int]] = []
    for _, row, label in sorted(candidates):
        rivals = [r for r, other in kept if agnostic or other == label]
        if len(kept) < limit and all(iou(boxes[row], boxes[r]) < overlap for r in rivals):
            kept.append((row, label))
    rows, labels = (np.array([k[i] for k in kept], int) for i in (0, 1))
    return Found(boxes[rows], scores[rows, labels], labels, rows)


def random_boxes(rng: np.random.Generator, count: int, size: tuple[int, int]) -> np.ndarray:
    """Returns centres and sizes [count, 4] of boxes, many of which overlap."""
    extents = np.array(size[::-1])
    return np.concatenate([rng.random((count, 2)) * extents, rng.uniform(0.1, 0.5, (count, 2)) * extents], 1).astype(
        F32
    )
