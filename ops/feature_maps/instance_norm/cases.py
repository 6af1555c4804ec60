# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn.functional as F
from benchmark import F16, F32, Call, Cases, Contest, call
from contenders import bytes_of, normal, session
from inputs import PIXELS, gaussian, image

cases = Cases(__file__)


@cases.cpu("64x512x512")
def _(threads: int) -> Contest:
    x, scale, bias = normal(0, 1, 64, 512, 512), normal(1, 64), normal(2, 64)
    feeds = {"x": x, "scale": scale, "B": bias}
    ours = session("mmcv::MMCVInstanceNormalization", feeds, threads, attributes={"epsilon": 1e-5})
    built_in = session("InstanceNormalization", feeds, threads, attributes={"epsilon": 1e-5})
    return Contest(ours, {"ONNX Runtime InstanceNormalization": built_in}, bytes_of(x) * 2, tolerance=1e-3)


cases.in_half("64x512x512")
cases.off_line("64x512x512")


@cases.gradient("instance_norm 8x64x128x128")
@cases.differentiable("8x64x128x128", F32, F16)
def _(dtype: torch.dtype = F32) -> Call:
    inputs = [t.to(dtype) for t in (torch.randn(8, 64, 128, 128), torch.randn(64), torch.randn(64))]
    others = {"torch": lambda x, w, b: F.instance_norm(x, weight=w, bias=b)}
    return Call(torch.ops.polyop.instance_norm, inputs, others)


cases.growth("pixels", 128 * 128, PIXELS)(lambda n: call("instance_norm", image(n), gaussian(4), gaussian(4)))
cases.small([(2, 3, 4, 5), (3,), (3,)])
