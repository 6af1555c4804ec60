# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import F32, Call, Cases, Contest, call, of
from contenders import bytes_of, in_openvino, normal, session, with_torch
from inputs import POINTS, gaussian, integers
from torch import Tensor

cases = Cases(__file__)


@cases.cpu("64 channels, 16,384 points, 4,096 groups of 32")
def _(threads: int) -> Contest:
    features = normal(21, 1, 64, 16384)
    index = np.random.default_rng(22).integers(0, 16384, (1, 4096, 32)).astype(np.int32)
    ours = session("polyop::GroupPoints", {"features": features, "idx": index}, threads)
    tf = torch.from_numpy(features)
    ti = torch.from_numpy(index.astype(np.int64)).flatten(1)[:, None].expand(-1, 64, -1)
    built_in = session(
        "GatherElements", {"features": features, "idx": ti.contiguous().numpy()}, threads, attributes={"axis": 2}
    )
    rivals = {
        "torch gather": with_torch(lambda: tf.gather(2, ti)),
        "ONNX Runtime GatherElements": built_in,
        "OpenVINO Gather": in_openvino("Gather", 8, [features, index], threads, constants=[2], batch_dims=1),
    }
    return Contest(
        ours,
        rivals,
        bytes_of(features, index) + 64 * 4096 * 32 * 4,
        same=lambda a, b: np.array_equal(a[0].ravel(), b[0].ravel()),
    )


@cases.gradient("group_points 8x64, 4,096 points, 1,024 groups of 32")
@cases.differentiable("8x64, 4,096 points, 1,024 groups of 32")
def _(dtype: torch.dtype = F32) -> Call:
    indices, sizes = torch.randint(4096, (8, 1024, 32)).int(), (8, 64, 4096, 1024, 32)

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(8, 64, 1024, 32)
        projects.mmcv().group_points_forward(t, indices, to, *sizes)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        projects.mmcv().group_points_backward(grad, indices, to, *sizes)
        return [to]

    return of("group_points", [torch.randn(8, 64, 4096), indices]).against_mmcv(forward, backward)


cases.growth("points, groups of 16 of a quarter", 1000, POINTS)(
    lambda n: call("group_points", gaussian(1, 16, n), integers(n, 1, n // 4, 16))
)
cases.small([(2, 3, 5), lambda: torch.randint(0, 5, (2, 4, 3))])
