# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import Cases, Contest, call, mmcv_rival, nearly_same_set, torchvision_rival
from contenders import bytes_of, first_output, in_openvino, session
from inputs import MILLION, integers, scores
from torch import Tensor

import polyop.functional as ops
from ops.boxes.cases import boxes_of, clustered, scattered, scores_of, spread

cases = Cases(__file__)


@cases.cpu("10,000 {} boxes", over=["clustered", "spread", "disjoint"])
def suppressed(threads: int, kind: str, count: int = 10_000) -> Contest:
    boxes, scores = boxes_of(kind, count)
    feeds, attributes = {"boxes": boxes, "scores": scores}, {"iou_threshold": 0.5, "offset": 0}
    ours = session("mmcv::NonMaxSuppression", feeds, threads, attributes=attributes)
    feeds = {"b": boxes[None], "s": scores[None, None], "n": np.array([count]), "iou": np.array([0.5], np.float32)}
    built_in = session("NonMaxSuppression", feeds, threads, opset=11)
    feeds = [boxes[None], scores[None, None]]
    constants = [count, np.float32(0.5), np.float32(-1)]  # without the last one, a score of 0 is too low
    openvino = in_openvino("NonMaxSuppression", 9, feeds, threads, constants)
    rivals = {"ONNX Runtime NonMaxSuppression": built_in, "OpenVINO NonMaxSuppression": first_output(openvino)}
    return Contest(ours, rivals, bytes_of(boxes, scores), same=lambda a, b: np.array_equal(a[0], b[0][:, 2]))


cases.cpu("small: 10 boxes")(lambda threads: suppressed(threads, "spread", 10))


@cases.gpu("{:,} boxes", over=[1000, 10_000, 100_000], capturable=False)
def _(count: int) -> Contest:
    boxes, scores = scattered(count, 20.0 * count**0.5), scores_of(count)
    rivals = torchvision_rival(lambda: torch.ops.torchvision.nms(boxes, scores, 0.5))
    rivals |= mmcv_rival(lambda: projects.mmcv().nms(boxes, scores, 0.5, 0))
    return Contest(lambda: ops.nms(boxes, scores, 0.5), rivals, same=nearly_same_set, reads=[boxes, scores])


def of_classes(n: int) -> Tensor:
    """Returns boxes of 80 classes, shifted so that those of two classes do not overlap."""
    return spread(n) + integers(80, n, 1) * (32 * n**0.5 + 60)


cases.growth("spread boxes", 1000, MILLION)(lambda n: call("nms", spread(n), scores(n)))
cases.growth("clustered boxes", 1000, MILLION)(lambda n: call("nms", clustered(n), scores(n)))
cases.growth("boxes of 80 classes", 1000, MILLION)(lambda n: call("nms", of_classes(n), scores(n)))
