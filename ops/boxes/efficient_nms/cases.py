# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Call, Cases, Contest, call
from contenders import bytes_of, session
from inputs import MILLION, scores

from ops.boxes.cases import boxes_of, multiclass_nms, nearly_the_same_rows, scattered, spread

cases = Cases(__file__)


@cases.cpu("8,400 boxes x 80 classes, 100 detections")
def _(threads: int) -> Contest:
    """The same head, with the detections of all classes in one pass."""
    rng = np.random.default_rng(5)
    boxes, _ = boxes_of("spread", 8400)
    scores = (rng.random((1, 8400, 80)) ** 8).astype(np.float32)
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
    feeds = {"b": boxes[None], "s": by_class, "n": np.array([100]), "iou": np.array([0.5], np.float32),
             "t": np.array([0.25], np.float32)}  # fmt: skip
    suppress = session("NonMaxSuppression", feeds, threads, opset=11)

    def standard() -> list[np.ndarray]:
        rows = suppress()[0].numpy()
        score = by_class[0, rows[:, 1], rows[:, 2]]
        return [boxes[rows[np.argsort(-score, kind="stable")[:100], 2]]]

    multiclass = multiclass_nms(boxes, by_class, -1, threads)

    def boxes_alone() -> list[np.ndarray]:
        return [multiclass()[0][:, 2:]]

    rivals = {"ONNX Runtime NonMaxSuppression + top k": standard, "OpenVINO MulticlassNms": boxes_alone}
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
