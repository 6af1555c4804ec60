# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import session, with_torch
from inputs import MILLION, scores

from ops.boxes3d.cases import areas_shared, cars, cars_over

cases = Cases(__file__)


@cases.cpu("4,096 boxes in {0} x {0} m", over=[70, 200])
def _(threads: int, extent: float) -> Contest:
    boxes = cars(4096, extent)
    scores = (np.random.default_rng(34).permutation(4096) / 4096).astype(np.float32)
    ours = session("polyop::NMS3D", {"boxes": boxes, "scores": scores}, threads, attributes={"iou_threshold": 0.2})
    seen = np.ascontiguousarray(boxes[:, [0, 1, 3, 4, 6]])
    flat = session(
        "mmdeploy::NMSRotated",
        {"boxes": seen, "scores": scores},
        threads,
        attributes={"iou_threshold": 0.2, "score_threshold": -1.0},
    )
    t, area, reach = (torch.from_numpy(a) for a in (seen, seen[:, 2] * seen[:, 3], np.hypot(*seen[:, 2:4].T) / 2))

    def formulation() -> torch.Tensor:
        left, kept = torch.from_numpy(np.argsort(-scores)), []
        while len(left):
            best, left = left[0], left[1:]
            kept.append(best)
            stays = (t[left, :2] - t[best, :2]).square().sum(1) > (reach[left] + reach[best]).square()
            near = (~stays).nonzero()[:, 0]
            shared = areas_shared(t[best], t[left[near]])
            stays[near] = shared <= 0.2 * (area[best] + area[left[near]] - shared)
            left = left[stays]
        return torch.stack(kept)

    return Contest(
        ours,
        {"torch formulation": with_torch(formulation)},
        same=lambda a, b: np.array_equal(a[0], b[0]),
        yardstick=("polyop NMSRotated", flat),
    )


cases.growth("spread boxes", 1000, MILLION)(lambda n: call("nms3d", cars_over(n), scores(n)))
