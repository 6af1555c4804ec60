# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn.functional as F
from benchmark import F16, F32, Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import MILLION, gaussian
from torch import Tensor

cases = Cases(__file__)


@cases.cpu("1,024 tokens, 1,536 channels, 4 taps")
def _(threads: int) -> Contest:
    x, weight, bias = normal(0, 1, 1536, 1024), normal(1, 1536, 4), normal(2, 1536)
    feeds, outputs = {"x": x, "w": weight, "b": bias}, ["output", "final_state"]
    ours = session("polyop::CausalConv1d", feeds, threads, outputs, attributes={"activation": "silu"})
    tx, *rest = (torch.from_numpy(t) for t in (x, weight, bias))
    theirs = with_torch(lambda: (composed(tx, *rest), tx[..., -3:].contiguous()))
    return Contest(ours, {"torch conv1d, silu": theirs}, 2 * bytes_of(x))


def composed(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.silu(F.conv1d(x, weight[:, None], bias, padding=3, groups=x.shape[1])[..., : x.shape[2]])


@cases.differentiable("2x1,536, 2,048 steps, width 4", F32, F16)
def convolved(dtype: torch.dtype, channels: int = 1536, steps: int = 2048) -> Call:
    shapes = [(2, channels, steps), (channels, 4), (channels,)]
    call = of("causal_conv1d", [*(torch.randn(*s).to(dtype) for s in shapes), None], (0, 1, 2), activation="silu")
    return call.beside(composed)


cases.gradient("causal_conv1d 2x512, 4,096 steps, width 4")(lambda: convolved(F32, 512, 4096))
cases.growth("steps of 32 channels", 1000, MILLION)(
    lambda n: call("causal_conv1d", gaussian(1, 32, n), gaussian(32, 4), activation="silu")
)
cases.small([(2, 3, 5), (3, 4), (3,), (2, 3, 3)], activation="silu")
cases.small([(2, 3, 5), (3, 2), (3,), (2, 3, 1)], "two-taps")
