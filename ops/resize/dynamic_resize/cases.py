# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
import torch.nn.functional as F
from benchmark import Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import PIXELS, image

from ops.resize.cases import interpolate

cases = Cases(__file__)


@cases.cpu("bicubic x3 of {}x{}x{}", over=[(1, 512, 512), (3, 360, 640), (3, 1080, 1920)])
def _(threads: int, channels: int, height: int, width: int) -> Contest:
    x, scales = normal(0, 1, channels, height, width), np.array([1, 1, 3, 3], np.float32)
    ours = session("Just_A_Scope_Name::DynamicTRTResize", {"x": x, "scales": scales}, threads)
    built_in = session(
        "Resize",
        {"x": x, "roi": None, "scales": scales},
        threads,
        opset=18,
        attributes={"mode": "cubic", "cubic_coeff_a": -0.75, "coordinate_transformation_mode": "half_pixel"},
    )
    tx = torch.from_numpy(x)
    theirs = with_torch(lambda: F.interpolate(tx, scale_factor=3, mode="bicubic", align_corners=False))
    rivals = {"ONNX Runtime Resize": built_in, "torch interpolate": theirs}
    rivals |= interpolate(x, "scales", [3, 3], threads, "half_pixel")
    return Contest(ours, rivals, 10 * bytes_of(x), tolerance=1e-3)


cases.in_half("bicubic x3 of 3x1080x1920")
cases.growth("pixels", 128 * 128, PIXELS)(lambda n: call("dynamic_resize", image(n), torch.tensor([1.0, 1, 2, 2])))
cases.gradient("dynamic_resize 64x64x64 by 2")(
    lambda: of("dynamic_resize", [torch.randn(1, 64, 64, 64), torch.tensor([1.0, 1, 2, 2])])
)
cases.small([(2, 2, 4, 5), torch.tensor([1, 1, 1.5, 2])])
