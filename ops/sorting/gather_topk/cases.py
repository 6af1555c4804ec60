# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import in_openvino, normal, session, with_torch
from inputs import MILLION, gaussian, integers

cases = Cases(__file__)


@cases.cpu("4x20000x80, 1,000 rows")
def _(threads: int) -> Contest:
    data = normal(0, 4, 20000, 80)
    index = np.random.default_rng(11).integers(0, 20000, (4, 1000)).astype(np.int32)
    ours = session("mmdeploy::GatherTopk", {"data": data, "indices": index}, threads)
    td, ti = torch.from_numpy(data), torch.from_numpy(index.astype(np.int64))[..., None].expand(-1, -1, 80)
    rivals = {
        "torch gather": with_torch(lambda: td.gather(1, ti)),
        "OpenVINO Gather": in_openvino("Gather", 8, [data, index], threads, constants=[1], batch_dims=1),
    }
    return Contest(ours, rivals, 2 * 4 * 1000 * 80 * 4)


cases.growth("rows, a quarter is read", 1000, 10 * MILLION)(
    lambda n: call("gather_topk", gaussian(1, n, 16), integers(n, 1, n // 4))
)
