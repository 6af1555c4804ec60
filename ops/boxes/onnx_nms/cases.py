# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, call
from inputs import MILLION, scores

from ops.boxes.cases import spread

cases = Cases(__file__)


@cases.growth("spread boxes", 1000, MILLION)
def _(n: int) -> Call:
    max_boxes, iou = torch.tensor(n), torch.tensor(0.5)
    return call("onnx_nms", spread(n)[None], scores(1, 1, n), max_boxes, iou, None)
