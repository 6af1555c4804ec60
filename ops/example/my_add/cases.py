# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, Contest, call
from contenders import bytes_of, in_openvino, normal, session
from inputs import PIXELS, image

cases = Cases(__file__)


@cases.cpu("small: 3x32, the overhead of a call")
def _(threads: int) -> Contest:
    a = normal(0, 3, 32)
    ours = session("custom::my_add", {"a": a, "b": a}, threads)
    built_in, openvino = session("Add", {"a": a, "b": a}, threads), in_openvino("Add", 1, [a, a], threads)
    return Contest(
        ours,
        {"ONNX Runtime Add": built_in, "OpenVINO Add": openvino},
        bytes_of(a) * 3,
        same=lambda x, y: x[0].shape == y[0].shape,
    )


@cases.differentiable("64x100,000", backward=False)
def _(dtype: torch.dtype) -> Call:
    inputs = [torch.randn(64, 100_000) for _ in range(2)]
    return Call(torch.ops.polyop.my_add, inputs, {"torch": lambda a, b: torch.add(b, a, alpha=2)})


cases.growth("pixels", 128 * 128, PIXELS)(lambda n: call("my_add", image(n), image(n)))
