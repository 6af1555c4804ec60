# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Call, Cases, Contest, call, of
from contenders import in_torch, normal, session
from inputs import PIXELS, gaussian, image, scores, side_of

cases = Cases(__file__)


@cases.cpu("256x100x152, 256 filters 3x3, 5% of the pixels")
def _(threads: int) -> Contest:
    x, weight, bias = normal(0, 1, 256, 100, 152), normal(1, 256, 256, 3, 3) / 48, normal(2, 256)
    mask = np.random.default_rng(3).random((1, 100, 152)) < 0.05
    ours = session(
        "mmcv::MMCVMaskedConv2d",
        {"x": x, "m": mask, "w": weight, "b": bias},
        threads,
        attributes={"stride": 1, "padding": 1},
    )
    convolution = session("Conv", {"x": x, "w": weight, "b": bias}, threads, attributes={"pads": [1, 1, 1, 1]})
    theirs = in_torch("masked_conv2d", x, mask, weight, bias, stride=[1], padding=[1])
    return Contest(
        ours, {"torch formulation": theirs}, tolerance=1e-3, yardstick=("ONNX Runtime Conv of all pixels", convolution)
    )


@cases.growth("pixels", 128 * 128, PIXELS)
def _(n: int) -> Call:
    """A tenth of the pixels is computed."""
    side = side_of(n)
    mask = (scores(1, side, side) < 0.1).float()
    return call("masked_conv2d", image(n, 8), mask, gaussian(8, 8, 3, 3), None, padding=[1, 1])


@cases.gradient("masked_conv2d 256x50x76, 3x3, half of the positions")
def _() -> Call:
    tensors = [torch.randn(1, 256, 50, 76), torch.rand(1, 50, 76) - 0.5, torch.randn(256, 256, 3, 3), torch.randn(256)]
    return of("masked_conv2d", [*tensors], (0, 2, 3), padding=[1, 1])


cases.small([(1, 2, 5, 4), (1, 5, 4), (3, 2, 3, 3), (3,)], padding=[1, 1])
