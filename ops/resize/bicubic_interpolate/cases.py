# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn.functional as F
from benchmark import F32, Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import PIXELS, image

from ops.resize.cases import interpolate

cases = Cases(__file__)


@cases.cpu("x2 of 3x360x640, align_corners")
def _(threads: int) -> Contest:
    x = normal(0, 1, 3, 360, 640)
    feeds = {"x": x}
    ours = session(
        "mmdeploy::TRTBicubicInterpolate", feeds, threads, attributes={"scale_factor": [2.0, 2.0], "align_corners": 1}
    )
    tx = torch.from_numpy(x)
    theirs = with_torch(lambda: F.interpolate(tx, scale_factor=2, mode="bicubic", align_corners=True))
    rivals = {"torch interpolate": theirs, **interpolate(x, "scales", [2, 2], threads, "align_corners")}
    return Contest(ours, rivals, 5 * bytes_of(x), tolerance=1e-3)


@cases.differentiable("64x256x256 by 2")
def resized(dtype: torch.dtype, channels: int = 64, size: int = 256, scale: float = 2.0) -> Call:
    call = of("bicubic_interpolate", [torch.randn(1, channels, size, size)], scale_factor=[scale, scale])
    return call.beside(lambda t: F.interpolate(t, scale_factor=scale, mode="bicubic"))


cases.gradient("bicubic_interpolate {0}x{1}x{1} by {2}", over=[(64, 64, 2), (3, 360, 2), (64, 200, 0.5)])(
    lambda *size: resized(F32, *size)
)
cases.growth("pixels", 128 * 128, PIXELS)(lambda n: call("bicubic_interpolate", image(n), scale_factor=[2.0, 2.0]))
cases.small([(2, 2, 4, 5)], scale_factor=[2.0, 0.625])
cases.small([(2, 2, 4, 5)], "aligned", scale_factor=[1.7], align_corners=1)
