# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
import torch.nn.functional as F
from benchmark import Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import PIXELS, image, side_of

from ops.resize.cases import interpolate

cases = Cases(__file__)


@cases.cpu("3x360x640 to 720x1280, align_corners")
def _(threads: int) -> Contest:
    x = normal(0, 1, 3, 360, 640)
    rule = {"coordinate_transformation_mode": "align_corners", "cubic_coeff_a": -0.75}
    feeds = {"input": x, "sizes": np.array([720, 1280])}
    ours = session("polyop::CubicResize", feeds, threads, attributes=rule)
    feeds = {"x": x, "roi": None, "scales": None, "sizes": np.array([1, 3, 720, 1280])}
    built_in = session("Resize", feeds, threads, opset=18, attributes={"mode": "cubic", **rule})
    tx = torch.from_numpy(x)
    theirs = with_torch(lambda: F.interpolate(tx, size=(720, 1280), mode="bicubic", align_corners=True))
    rivals = {"ONNX Runtime Resize": built_in, "torch interpolate": theirs}
    rivals |= interpolate(x, "sizes", [720, 1280], threads, "align_corners")
    return Contest(ours, rivals, 5 * bytes_of(x), tolerance=1e-3)


@cases.growth("pixels", 128 * 128, PIXELS)
def _(n: int) -> Call:
    side = side_of(n)
    return call("cubic_resize", image(n), torch.tensor([2 * side, 2 * side]))


cases.gradient("cubic_resize 64x64x64 to 128x128")(
    lambda: of("cubic_resize", [torch.randn(1, 64, 64, 64), torch.tensor([128, 128])])
)
cases.small([(2, 2, 4, 5), torch.tensor([7, 3])], exclude_outside=1)
