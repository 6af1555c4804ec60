# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, Contest, call
from contenders import bytes_of, normal, session, with_torch
from inputs import PIXELS, image

import polyop.functional as ops

cases = Cases(__file__)


def extreme(threads: int, name: str, dim: int) -> Contest:
    x = normal(0, 64, 512, 512)
    ours = session(f"mmcv::{name}", {"x": x}, threads, ["values", "indices"], attributes={"dim": dim})
    tx, function = torch.from_numpy(x), getattr(torch, name)
    out = (torch.empty_like(tx), torch.empty(tx.shape, dtype=torch.int64))
    theirs = with_torch(lambda: function(tx, dim, out=out))
    return Contest(ours, {f"torch {name} (out=)": theirs}, bytes_of(x) * 4)


cases.cpu("64x512x512, dim {}", over=range(3))(lambda threads, dim: extreme(threads, "cummax", dim))
cases.in_half("64x512x512, dim 1")
cases.off_line(*(f"64x512x512, dim {dim}" for dim in range(3)))
cases.cpu("64x512x512, dim {}", over=range(3), operator="cummin")(lambda threads, dim: extreme(threads, "cummin", dim))


def scanned(dim: int, side: int) -> Call:
    others = {"torch": lambda t: torch.cummax(t, dim)[0]}
    return Call(lambda t: ops.cummax(t, dim)[0], [torch.randn(64, side, side)], others)


for _dim in (1, 2):
    cases.differentiable(f"64x512x512 along {_dim}")(lambda _, dim=_dim: scanned(dim, 512))
cases.gradient("cummax 64x256x256 along {}", over=[1, 2])(lambda dim: scanned(dim, 256))
cases.growth("pixels", 128 * 128, PIXELS)(lambda n: call("cummax", image(n), dim=3))
cases.small([(3, 4, 5)], dim=1)
