# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn.functional as F
from benchmark import F16, F32, Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import PIXELS, gaussian, side_of

cases = Cases(__file__)


@cases.cpu("56x56 tokens, 4 heads x 32, windows 7x7")
def _(threads: int) -> Contest:
    """A layer of NAT: 56 x 56 tokens, windows of 7 x 7; the rival attends to all tokens with a mask."""
    q, k, v = (normal(seed, 1, 56, 56, 4, 32) for seed in range(3))
    ours = session("polyop::NeighborhoodAttention", {"q": q, "k": k, "v": v}, threads, attributes={"kernel_size": [7]})
    tq, tk, tv = (torch.from_numpy(t).flatten(1, 2).transpose(1, 2) for t in (q, k, v))
    first = (torch.arange(56) - 3).clamp(0, 49)
    axis = (torch.arange(56) >= first[:, None]) & (torch.arange(56) < first[:, None] + 7)
    mask = (axis[:, None, :, None] & axis[None, :, None]).reshape(3136, 3136)

    def formulation() -> torch.Tensor:
        result = F.scaled_dot_product_attention(tq, tk, tv, attn_mask=mask)
        return result.transpose(1, 2).unflatten(1, (56, 56)).contiguous()

    return Contest(
        ours, {"torch scaled_dot_product_attention, masked": with_torch(formulation)}, bytes_of(q, k, v) + q.nbytes
    )


@cases.differentiable("4x56x56, 4 heads of 32, 7x7", F32, F16)
def attended(dtype: torch.dtype, images: int = 4) -> Call:
    inputs = [torch.randn(images, 56, 56, 4, 32).to(dtype) for _ in range(3)]
    return of("neighborhood_attention", inputs, (0, 1, 2), kernel_size=[7])


cases.gradient("neighborhood_attention 1x56x56, 4 heads of 32, 7x7")(lambda: attended(F32, 1))


@cases.growth("pixels", 128 * 128, PIXELS)
def _(n: int) -> Call:
    side = max(7, side_of(n))
    return call("neighborhood_attention", *(gaussian(1, side, side, 2, 16) for _ in range(3)), kernel_size=[7])


cases.small([(1, 7, 4, 2, 3), (1, 7, 4, 2, 3), (1, 7, 4, 2, 2)], kernel_size=[3], dilation=[2, 1], is_causal=[0, 1])
