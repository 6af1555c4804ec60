# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Call, Cases, Contest, call, of
from contenders import bytes_of, in_openvino, normal, session, with_torch
from inputs import POINTS, gaussian

import polyop.functional as ops

cases = Cases(__file__)


@cases.cpu("{} of 200,000 rows in 50,000 segments, 64 channels", over=["sum", "max"])
def _(threads: int, reduce: str) -> Contest:
    src = normal(29, 200_000, 64)
    indptr = np.sort(np.random.default_rng(30).integers(0, 200_001, 50_001))
    indptr[[0, -1]] = 0, 200_000
    ours = session("autoware::SegmentCSR", {"src": src, "indptr": indptr}, threads, attributes={"reduce": reduce})
    ts, ti = torch.from_numpy(src), torch.from_numpy(indptr)
    rivals = {
        "torch segment_reduce": with_torch(
            lambda: torch.segment_reduce(
                ts, reduce, offsets=ti, axis=0, initial=0 if reduce == "sum" else None
            ).nan_to_num(0, 0, 0)
        )
    }
    if reduce == "sum":
        rows = np.arange(200_000, dtype=np.int32)
        rivals["OpenVINO EmbeddingBagOffsets"] = in_openvino(
            "EmbeddingBagOffsets", 15, [src, rows, indptr[:-1].astype(np.int32)], threads, reduction="sum"
        )
    else:
        segment = np.repeat(np.arange(50_000, dtype=np.int32), np.diff(indptr))
        rivals["OpenVINO SegmentMax"] = in_openvino(
            "SegmentMax", 16, [src, segment], threads, constants=[50_000], fill_mode="ZERO"
        )
    return Contest(ours, rivals, bytes_of(src, indptr) + 50_000 * 64 * 4)


@cases.differentiable("60,000x64, segments of 10, sum")
def _(dtype: torch.dtype) -> Call:
    ends = torch.arange(0, 60_001, 10)
    return Call(
        lambda t: ops.segment_csr(t, ends, "sum"),
        [torch.randn(60_000, 64)],
        {"torch": lambda t: torch.segment_reduce(t, "sum", offsets=ends)},
        also_reads=[ends],
    )


cases.growth("rows", 1000, POINTS)(
    lambda n: call("segment_csr", gaussian(n, 16), torch.arange(0, n + 4, 4).clamp(max=n), reduce="sum")
)
cases.gradient("segment_csr 60,000x64, tens, {}", over=["sum", "mean", "mul", "max"])(
    lambda reduce: of("segment_csr", [torch.rand(60_000, 64) + 0.5, torch.arange(0, 60_001, 10)], reduce=reduce)
)
cases.small([(7, 3), torch.tensor([1, 3, 3, 6])], reduce="mean")
