# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import bytes_of, in_openvino, normal, session, with_torch
from inputs import MILLION, gaussian

from ops.linalg.cases import well_conditioned

cases = Cases(__file__)


@cases.cpu("10,000 matrices of 4x4")
def _(threads: int) -> Contest:
    x = normal(0, 10_000, 4, 4) + 4 * np.eye(4, dtype=np.float32)
    ours = session("polyop::InverseTRT", {"x": x}, threads)
    tx = torch.from_numpy(x)
    rivals = {
        "torch linalg.inv": with_torch(lambda: torch.linalg.inv(tx)),
        "OpenVINO Inverse": in_openvino("Inverse", 14, [x], threads, adjoint=False),
    }
    return Contest(ours, rivals, 2 * bytes_of(x), tolerance=1e-2)


cases.gpu("{0:,} matrices of {1}x{1}", over=[(4096, 4), (16, 128)])(
    lambda count, size: call("inverse", well_conditioned(count, size)).beside(lambda a: torch.linalg.inv_ex(a)[0])
)
cases.growth("matrices of 4x4", 1000, MILLION)(lambda n: call("inverse", gaussian(n, 4, 4)))
