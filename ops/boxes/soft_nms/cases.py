# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import bytes_of, in_openvino, session
from inputs import MILLION, scores

from ops.boxes.cases import boxes_of, clustered, scattered, scores_of, spread

cases = Cases(__file__)


@cases.cpu("5,000 boxes, {}", over=["linear"], published={"MMCV (elsewhere)": (56, 56)})
@cases.cpu("5,000 boxes, {}", over=["gaussian"], published={"MMCV (elsewhere)": (78, 78)})
def _(threads: int, method: str) -> Contest:
    boxes, scores = boxes_of("clustered", 5000)
    attributes = {
        "iou_threshold": 0.3,
        "sigma": 0.5,
        "min_score": 1e-3,
        "offset": 0,
        "method": 1 + (method == "gaussian"),
    }
    feeds = {"boxes": boxes, "scores": scores}
    ours = session("mmcv::SoftNonMaxSuppression", feeds, threads, ["dets", "keep"], attributes=attributes)
    rivals = {}
    if method == "gaussian":  # OpenVINO's weight is exp(-IoU^2 / (2 sigma))
        rivals["OpenVINO NonMaxSuppression"] = in_openvino(
            "NonMaxSuppression",
            9,
            [boxes[None], scores[None, None]],
            threads,
            constants=[len(boxes), np.float32(1), np.float32(1e-3), np.float32(0.25)],
        )
    return Contest(ours, rivals, bytes_of(boxes, scores), same=scores_fall_alike)


def scores_fall_alike(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    """Compares results that are products of hundreds of factors and round differently: boxes may change order, and a
    few at the minimum score may be missing.
    """
    mine, other = ours[0][:, 4], theirs[1][:, 2]
    both = min(len(mine), len(other))
    return abs(len(mine) - len(other)) <= 5 and np.allclose(mine[:both], other[:both], rtol=1e-3)


@cases.gpu("1,000 boxes", capturable=False)
def _() -> Contest:
    boxes, scores = scattered(1000, 600.0), scores_of(1000)
    return Contest(lambda: torch.ops.polyop.soft_nms(boxes, scores, iou_threshold=0.3), reads=[boxes, scores])


cases.growth("spread boxes", 1000, MILLION)(lambda n: call("soft_nms", spread(n), scores(n)))
cases.growth("clustered boxes", 1000, MILLION)(lambda n: call("soft_nms", clustered(n), scores(n)))
