# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call, of
from contenders import in_openvino, normal, session, with_torch
from inputs import POINTS, gaussian, integers

cases = Cases(__file__)


@cases.cpu("4 x 64 channels, 4,096 of 16,384 points")
def _(threads: int) -> Contest:
    features = normal(23, 4, 64, 16384)
    index = np.random.default_rng(24).integers(0, 16384, (4, 4096)).astype(np.int32)
    ours = session("polyop::GatherPoints", {"features": features, "idx": index}, threads)
    tf, ti = torch.from_numpy(features), torch.from_numpy(index.astype(np.int64))[:, None].expand(-1, 64, -1)
    rivals = {
        "torch gather": with_torch(lambda: tf.gather(2, ti)),
        "OpenVINO Gather": in_openvino("Gather", 8, [features, index], threads, constants=[2], batch_dims=1),
    }
    return Contest(ours, rivals, 2 * 4 * 64 * 4096 * 4)


cases.growth("points", 1000, POINTS)(lambda n: call("gather_points", gaussian(1, 16, n), integers(n, 1, n)))
cases.gradient("gather_points 8x64, 4,096 points, 1,024 of them")(
    lambda: of("gather_points", [torch.randn(8, 64, 4096), torch.randint(4096, (8, 1024)).int()])
)
cases.small([(2, 3, 5), lambda: torch.randint(0, 5, (2, 4), dtype=torch.int32)])
