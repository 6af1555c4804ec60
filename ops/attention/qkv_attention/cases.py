# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn.functional as F
from benchmark import F16, F32, Call, Cases, Contest, call
from contenders import bytes_of, in_openvino, normal, session, with_torch
from inputs import gaussian

cases = Cases(__file__)


@cases.cpu("8 x 900 queries, 900 keys, 32")
def _(threads: int) -> Contest:
    q, k, v = normal(0, 8, 900, 32), normal(1, 8, 900, 32), normal(2, 8, 900, 32)
    ours = session("polyop::QKVTRT", {"q": q, "k": k, "v": v}, threads)
    tq, tk, tv = (torch.from_numpy(t) for t in (q, k, v))
    theirs = with_torch(lambda: F.scaled_dot_product_attention(tq, tk, tv))
    openvino = in_openvino("ScaledDotProductAttention", 13, [q[None], k[None], v[None]], threads, causal=False)
    rivals = {
        "torch scaled_dot_product_attention": theirs,
        "OpenVINO ScaledDotProductAttention": lambda: [openvino()[0][0]],
    }
    return Contest(ours, rivals, bytes_of(q, k, v) + q.nbytes, 4 * 8 * 900 * 900 * 32)


@cases.differentiable("16x1,024, 64 channels", F32, F16)
def attended(dtype: torch.dtype, channels: int = 64) -> Call:
    inputs = [torch.randn(16, 1024, channels).to(dtype) for _ in range(3)]
    others = {"torch": F.scaled_dot_product_attention}
    return Call(torch.ops.polyop.qkv_attention, inputs, others, flops=4.0 * 16 * 1024 * 1024 * channels)


cases.gradient("qkv_attention 16x1,024, 32 channels")(lambda: attended(F32, 32))
cases.growth("queries and keys", 100, 20_000)(lambda n: call("qkv_attention", *(gaussian(1, n, 32) for _ in range(3))))
cases.small([(2, 5, 8), (2, 6, 8), (2, 6, 7)])
