# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Call, Cases, Contest, call
from contenders import bytes_of, session
from inputs import MILLION, scores

from ops.boxes.cases import (
    best_of_classes,
    detector_head,
    multiclass_nms,
    nearly_the_same_rows,
    scattered,
    spread,
)

cases = Cases(__file__)


@cases.cpu("8,400 boxes x 80 classes, 100 detections")
def _(threads: int) -> Contest:
    """The same head, with the detections of all classes in one pass."""
    boxes, scores = detector_head()
    attributes = {
        "score_threshold": 0.25,
        "iou_threshold": 0.5,
        "max_output_boxes": 100,
        "background_class": -1,
        "score_activation": 0,
        "box_coding": 0,
    }
    names = ["num", "boxes", "scores", "classes"]
    ours = session("TRT::EfficientNMS_TRT", {"b": boxes[None], "s": scores}, threads, names, attributes=attributes)
    by_class = np.ascontiguousarray(scores.transpose(0, 2, 1))
    best = best_of_classes(boxes, by_class, 100, threads)
    multiclass = multiclass_nms(boxes, by_class, -1, threads)

    def boxes_alone() -> list[np.ndarray]:
        return [multiclass()[0][:, 2:]]

    rivals = {"ONNX Runtime NonMaxSuppression + top k": lambda: [best()[:, :4]], "OpenVINO MulticlassNms": boxes_alone}
    return Contest(ours, rivals, bytes_of(boxes, scores), same=lambda a, b: nearly_the_same_rows(a[1][0], b[0]))


@cases.gpu("4 images, 8,400 boxes, 80 classes, 100 kept", capturable=False)
def _() -> Contest:
    boxes, scores = torch.stack([scattered(8400, 1200.0) for _ in range(4)]), torch.rand(4, 8400, 80) ** 4
    attributes = {"score_threshold": 0.3, "iou_threshold": 0.5, "background_class": -1, "max_output_boxes": 100}
    return Contest(
        lambda: torch.ops.polyop.efficient_nms(
            boxes, scores, None, **attributes, score_activation=0, box_coding="corners"
        ),
        reads=[boxes, scores],
    )


@cases.growth("spread boxes", 1000, MILLION)
def _(n: int) -> Call:
    return call(
        "efficient_nms", spread(n)[None], scores(1, n, 1), None, score_threshold=0.0, iou_threshold=0.5,
        background_class=-1, max_output_boxes=n, score_activation=0, box_coding="corners",
    )  # fmt: skip
