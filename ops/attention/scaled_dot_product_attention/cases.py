# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import F16, F32, Call, Cases, Contest, call
from contenders import bytes_of, normal, session, with_torch
from inputs import gaussian
from torch import Tensor

cases = Cases(__file__)


@cases.cpu("8 x 900 queries, 900 keys, 32")
def _(threads: int) -> Contest:
    q, k, v = normal(0, 8, 900, 32), normal(1, 8, 900, 32), normal(2, 8, 900, 32)
    ours = session("mmdeploy::ScaledDotProductAttentionTRT", {"q": q, "k": k, "v": v}, threads, ["out", "weights"])
    tq, tk, tv = (torch.from_numpy(t) for t in (q, k, v))

    def formulation() -> tuple[torch.Tensor, torch.Tensor]:
        weights = torch.softmax(torch.bmm(tq, tk.transpose(1, 2)) / 32**0.5, -1)
        return torch.bmm(weights, tv), weights

    moved = bytes_of(q, k, v) + q.nbytes + 8 * 900 * 900 * 4
    return Contest(ours, {"torch bmm, softmax, bmm": with_torch(formulation)}, moved, 4 * 8 * 900 * 900 * 32)


@cases.differentiable("8x900x64", F32, F16, backward=False)
def _(dtype: torch.dtype) -> Call:
    q, k, v = (torch.randn(8, 900, 64).to(dtype) for _ in range(3))

    def composed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.softmax(q @ k.mT / 8, -1) @ v

    return Call(
        lambda *t: torch.ops.polyop.scaled_dot_product_attention(*t, None)[0],
        [q, k, v],
        {"torch": composed},
        flops=4.0 * 8 * 900 * 900 * 64,
    )


cases.in_half("8 x 900 queries, 900 keys, 32")
cases.growth("queries and keys", 100, 20_000)(
    lambda n: call("scaled_dot_product_attention", *(gaussian(1, n, 32) for _ in range(3)), None)
)
