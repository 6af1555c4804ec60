# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Call, Cases, Contest, call
from contenders import bytes_of, in_openvino, normal, session
from inputs import MILLION, gaussian

cases = Cases(__file__)


@cases.cpu("4096x1024, 1024 rows")
def _(threads: int) -> Contest:
    rng = np.random.default_rng(8)
    x, updates = normal(0, 4096, 1024), normal(1, 1024, 1024)
    indices = rng.permutation(4096)[:1024, None].astype(np.int64)
    feeds = {"x": x, "i": indices, "u": updates}
    rivals = {
        "ONNX Runtime ScatterND": session("ScatterND", feeds, threads),
        "OpenVINO ScatterNDUpdate": in_openvino("ScatterNDUpdate", 4, [x, indices.astype(np.int32), updates], threads),
    }
    moved = bytes_of(x) * 2 + bytes_of(updates) * 2
    return Contest(session("mmcv::ScatterND", feeds, threads), rivals, moved)


@cases.growth("rows, a quarter is written", 1000, 10 * MILLION)
def _(n: int) -> Call:
    rows = torch.randperm(n, generator=torch.Generator().manual_seed(7))[: n // 4, None]
    return call("scatter_nd", gaussian(n, 16), rows, gaussian(n // 4, 16))
