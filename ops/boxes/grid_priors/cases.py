# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Call, Cases, Contest, call
from contenders import in_openvino, normal, session, with_torch
from inputs import MILLION, gaussian, side_of

cases = Cases(__file__)


@cases.cpu("9 anchors, 200x304")
def _(threads: int) -> Contest:
    base, height, width = normal(0, 9, 4), np.zeros(200, np.int64), np.zeros(304, np.int64)
    ours = session(
        "mmdeploy::GridPriorsTRT",
        {"base": base, "h": height, "w": width},
        threads,
        attributes={"stride_h": 4, "stride_w": 4},
    )
    tb = torch.from_numpy(base)

    def formulation() -> torch.Tensor:
        y, x = torch.meshgrid(torch.arange(200.0) * 4, torch.arange(304.0) * 4, indexing="ij")
        shifts = torch.stack([x, y, x, y], -1).reshape(-1, 1, 4)
        return (shifts + tb).reshape(-1, 4)

    # Only the extents of the last two inputs matter; the anchors lie around the cells' centres.
    features, image = np.zeros((1, 1, 200, 304), np.float32), np.zeros((1, 3, 800, 1216), np.float32)
    openvino = in_openvino("ExperimentalDetectronPriorGridGenerator", 6, [base - 2, features, image], threads,
                           flatten=True, h=0, w=0, stride_x=4.0, stride_y=4.0)  # fmt: skip
    rivals = {
        "torch formulation": with_torch(formulation),
        "OpenVINO ExperimentalDetectronPriorGridGenerator": openvino,
    }
    return Contest(ours, rivals, 9 * 200 * 304 * 16)


@cases.growth("cells", 1000, 10 * MILLION)
def _(n: int) -> Call:
    side = side_of(n)
    return call("grid_priors", gaussian(9, 4), torch.zeros(side), torch.zeros(side), stride_h=4, stride_w=4)
