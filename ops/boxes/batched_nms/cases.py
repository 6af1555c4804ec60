# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, torchvision_rival
from contenders import bytes_of, session
from inputs import MILLION
from torch import Tensor

from ops.boxes.cases import (
    best_of_classes,
    detector_head,
    multiclass_nms,
    nearly_the_same_rows,
    of_class,
    scattered,
    spread,
)

cases = Cases(__file__)


@cases.cpu("8,400 boxes x 80 classes, 100 detections")
def _(threads: int) -> Contest:
    """A detector's head: 8,400 boxes, 80 classes, mostly low scores, at most 100 detections per image."""
    boxes, scores = detector_head()
    attributes = {
        "background_label_id": -1, "num_classes": 80, "topk": 1000, "keep_topk": 100, "score_threshold": 0.25,
        "iou_threshold": 0.5, "is_normalized": 0, "clip_boxes": 0,
    }  # fmt: skip
    feeds = {"boxes": boxes[None, :, None], "scores": scores}
    ours = session("mmdeploy::TRTBatchedNMS", feeds, threads, ["dets", "labels"], attributes=attributes)
    by_class = np.ascontiguousarray(scores.transpose(0, 2, 1))
    best = best_of_classes(boxes, by_class, 1000, threads)
    multiclass = multiclass_nms(boxes, by_class, 1000, threads)

    def in_our_order() -> list[np.ndarray]:
        return [multiclass()[0][None][:, :, [2, 3, 4, 5, 1]]]

    rivals = {"ONNX Runtime NonMaxSuppression + top k": lambda: [best()[None]], "OpenVINO MulticlassNms": in_our_order}
    return Contest(ours, rivals, bytes_of(boxes, scores), same=lambda a, b: nearly_the_same_rows(a[0][0], b[0][0]))


@cases.gpu("4 images, 2,000 boxes, 20 classes, 100 kept", capturable=False)
def _() -> Contest:
    """Compares with a call for every image of torchvision's NMS of boxes that classes shift, and a sort."""
    boxes = torch.stack([scattered(2000, 800.0) for _ in range(4)])
    scores = torch.rand(4, 2000, 20)

    def ours() -> Tensor:
        return torch.ops.polyop.batched_nms(
            boxes[:, :, None].contiguous(), scores, num_classes=20, topk=1000, keep_topk=100, score_threshold=0.6,
            iou_threshold=0.5, is_normalized=0, clip_boxes=0,
        )[0][..., 4].sort(1, descending=True)[0]  # fmt: skip

    def by_image() -> Tensor:
        kept = []
        for of_image, of_boxes in zip(scores, boxes, strict=True):
            best, at = of_image.masked_fill(of_image <= 0.6, -1).topk(1000, 0)
            classes = torch.arange(20)[None].expand_as(at).flatten()
            candidates, values = of_boxes[at.flatten()], best.flatten()
            valid = values > 0
            candidates, values, classes = candidates[valid], values[valid], classes[valid]
            keep = torch.ops.torchvision.nms(candidates + classes[:, None] * 4000.0, values, 0.5)[:100]
            kept.append(values[keep])
        return torch.stack(kept)

    return Contest(ours, reads=[boxes, scores], rivals=torchvision_rival(by_image))


cases.growth("spread boxes", 1000, MILLION)(lambda n: of_class("batched_nms", spread(n)))
