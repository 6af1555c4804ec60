# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import Cases, Contest, call, mmcv_rival, nearly_same_set
from contenders import bytes_of, first_output, in_openvino, session
from inputs import MILLION, scores
from torch import Tensor

import polyop.functional as ops
from ops.boxes.cases import boxes_of, rotated, scattered_rotated, scores_of

cases = Cases(__file__)


def rotated_boxes_of(kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    boxes, scores = boxes_of(kind, count)
    angle = np.random.default_rng(4).uniform(-np.pi, np.pi, (len(boxes), 1))
    middle, size = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    return np.concatenate([middle, size * [1, 0.5], angle], 1).astype(np.float32), scores


@cases.cpu("2,000 {} boxes", over=["clustered"], published={"MMDeploy (elsewhere)": (20, 20)})
@cases.cpu("2,000 {} boxes", over=["spread"], published={"MMDeploy (elsewhere)": (130, 130)})
def _(threads: int, kind: str) -> Contest:
    boxes, scores = rotated_boxes_of(kind, 2000)
    feeds = {"boxes": boxes[None], "scores": scores[None, None]}
    attributes = {"iou_threshold": 0.5, "score_threshold": -1.0}
    ours = session("mmdeploy::NMSRotated", feeds, threads, attributes=attributes)
    openvino = in_openvino("NMSRotated", 13, list(feeds.values()), threads,
                           constants=[len(boxes), np.float32(0.5), np.float32(-1)], clockwise=True)  # fmt: skip
    return Contest(
        ours, {"OpenVINO NMSRotated": first_output(openvino)}, bytes_of(boxes, scores), same=nearly_the_same_boxes
    )


def nearly_the_same_boxes(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    """An IoU at the threshold may be decided differently in double precision and in float."""
    mine, other = set(ours[0][:, 2].tolist()), set(theirs[0][:, 2].tolist())
    return len(mine ^ other) <= len(mine) // 200


@cases.gpu("2,000 boxes", capturable=False)
def _() -> Contest:
    boxes, scores = scattered_rotated(2000, 900.0), scores_of(2000)
    none = torch.empty(0, dtype=torch.int32)

    def mmcv() -> Tensor:
        order = scores.sort(0, descending=True)[1]
        return projects.mmcv().nms_rotated(boxes, scores, order, boxes.index_select(0, order), none, 0.3, 0)

    return Contest(
        lambda: ops.nms_rotated(boxes, scores, 0.3),
        reads=[boxes, scores],
        rivals=mmcv_rival(mmcv),
        same=nearly_same_set,
    )


cases.growth("spread boxes", 1000, MILLION)(lambda n: call("nms_rotated", rotated(n), scores(n)))
