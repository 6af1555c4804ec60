# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import bytes_of, session
from inputs import MILLION, scores

from ops.boxes.cases import boxes_of, spread

cases = Cases(__file__)


@cases.cpu("2,000 {} boxes", over=["clustered"], published={"MMDeploy (elsewhere)": (4.1, 4.1)})
@cases.cpu("2,000 {} boxes", over=["spread"], published={"MMDeploy (elsewhere)": (16.7, 16.7)})
def _(threads: int, kind: str) -> Contest:
    boxes, scores = boxes_of(kind, 2000)
    feeds = {"boxes": boxes[None], "scores": scores[None, None]}
    thresholds = {"iou": np.array([0.5], np.float32), "score": np.array([0], np.float32)}
    ours = session("mmdeploy::NMSMatch", {**feeds, **thresholds}, threads)
    return Contest(ours, {}, bytes_of(boxes, scores))


cases.growth("spread boxes", 1000, MILLION)(
    lambda n: call("nms_match", spread(n)[None], scores(1, 1, n), torch.tensor(0.5), torch.tensor(0.0))
)
