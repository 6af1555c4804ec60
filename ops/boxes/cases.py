# SPDX-License-Identifier: Apache-2.0
import math
from collections.abc import Callable

import numpy as np
import torch
from benchmark import Call, Run, call
from contenders import in_openvino, session
from inputs import gaussian, scores, uniform
from torch import Tensor


def boxes_of(kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns boxes around few centres, everywhere in the image, or nearly disjoint; scores without ties."""
    rng = np.random.default_rng(3)
    if kind == "clustered":
        centre = rng.uniform(0, 1000, (count // 100, 2)).repeat(100, 0) + rng.normal(0, 6, (count // 100 * 100, 2))
        size = rng.uniform(40, 80, (len(centre), 2))
    else:
        centre = rng.uniform(0, 1000 if kind == "spread" else 10000, (count, 2))
        size = rng.uniform(10, 60, (count, 2))
    boxes = np.concatenate([centre - size / 2, centre + size / 2], 1).astype(np.float32)
    return boxes, (rng.permutation(len(boxes)) / len(boxes)).astype(np.float32)


def nearly_the_same_rows(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Detections with equal scores may change order, and one of them may be the last that fits."""
    mine, other = (sorted(map(tuple, rows.tolist())) for rows in (ours, theirs))
    return len(mine) == len(other) and len({*mine} ^ {*other}) <= 2


def multiclass_nms(boxes: np.ndarray, by_class: np.ndarray, top_k: int, threads: int) -> Run:
    """OpenVINO's operator, of one image: a row of class, score and box for each of the 100 best detections."""
    return in_openvino(
        "MulticlassNms", 9, [boxes[None], by_class], threads, sort_result_type="score", sort_result_across_batch=False,
        output_type="i64", iou_threshold=0.5, score_threshold=0.25, nms_top_k=top_k, keep_top_k=100, background_class=-1,
        normalized=True, nms_eta=1.0,
    )  # fmt: skip


def detector_head() -> tuple[np.ndarray, np.ndarray]:
    """Returns 8,400 boxes, and mostly low scores [1, 8400, 80] of 80 classes."""
    return boxes_of("spread", 8400)[0], (np.random.default_rng(5).random((1, 8400, 80)) ** 8).astype(np.float32)


def best_of_classes(boxes: np.ndarray, by_class: np.ndarray, top_k: int, threads: int) -> Callable[[], np.ndarray]:
    """ONNX Runtime's operator, of one image: a row of box and score for each of the 100 best detections."""
    feeds = {"b": boxes[None], "s": by_class, "n": np.array([top_k]), "iou": np.array([0.5], np.float32),
             "t": np.array([0.25], np.float32)}  # fmt: skip
    suppress = session("NonMaxSuppression", feeds, threads, opset=11)

    def best() -> np.ndarray:
        rows = suppress()[0].numpy()
        score = by_class[0, rows[:, 1], rows[:, 2]]
        order = np.argsort(-score, kind="stable")[:100]
        return np.concatenate([boxes[rows[order, 2]], score[order, None]], 1)

    return best


def scattered(count: int, extent: float) -> Tensor:
    corners = torch.rand(count, 2) * extent
    return torch.cat([corners, corners + 16 + torch.rand(count, 2) * 100], 1)


def scores_of(count: int) -> Tensor:
    """Returns distinct scores, so that all implementations sort alike."""
    return (torch.randperm(count) + 1) / (count + 1)


def scattered_rotated(count: int, extent: float) -> Tensor:
    return torch.cat([torch.rand(count, 2) * extent, 10 + torch.rand(count, 2) * 60, torch.rand(count, 1) * 3], 1)


def spread(n: int) -> Tensor:
    """Returns boxes of 10 to 60 pixels in an image that grows with their number: most overlap one or two others."""
    centre, size = uniform(n, 2, high=32 * n**0.5), uniform(n, 2, low=10, high=60).flip(0)
    return torch.cat([centre - size / 2, centre + size / 2], 1)


def clustered(n: int) -> Tensor:
    """Returns a hundred boxes around each centre."""
    centre = uniform(math.ceil(n / 100), 2, high=100 * n**0.5).repeat_interleave(100, 0)[:n] + gaussian(n, 2) * 6
    size = uniform(n, 2, low=40, high=80)
    return torch.cat([centre - size / 2, centre + size / 2], 1)


def rotated(n: int) -> Tensor:
    boxes = spread(n)
    size = (boxes[:, 2:] - boxes[:, :2]) * torch.tensor([1, 0.5])
    return torch.cat([(boxes[:, :2] + boxes[:, 2:]) / 2, size, uniform(n, 1, low=-3, high=3)], 1)


def of_class(operator: str, boxes: Tensor) -> Call:
    """One class of one image, from which all detections are requested."""
    n = len(boxes)
    return call(operator, boxes[None, :, None], scores(1, n, 1), keep_topk=n, iou_threshold=0.5, clip_boxes=0)


def quadrilaterals(n: int) -> Tensor:
    """Returns spread boxes whose corners are moved by a pixel or two."""
    x1, y1, x2, y2 = spread(n).unbind(1)
    return torch.stack([x1, y1, x2, y1, x2, y2, x1, y2], 1) + gaussian(n, 8)


def sets(n: int) -> Tensor:
    """Returns nine points in each of the spread boxes."""
    low, high = spread(n).chunk(2, 1)
    return (low[:, None] + uniform(n, 9, 2) * (high - low)[:, None]).flatten(1)
