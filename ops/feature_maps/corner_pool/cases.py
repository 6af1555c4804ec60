# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, Contest, call
from contenders import bytes_of, normal, session, with_torch
from inputs import PIXELS, image

import polyop.functional as ops

cases = Cases(__file__)
MODES = ("top", "bottom", "left", "right")


@cases.cpu("128x256x256, {}", over=MODES)
def _(threads: int, mode: str) -> Contest:
    x = normal(0, 1, 128, 256, 256)
    ours = session("mmcv::MMCVCornerPool", {"x": x}, threads, attributes={"mode": MODES.index(mode)})
    tx, dim = torch.from_numpy(x), 2 if mode in MODES[:2] else 3
    if mode in ("bottom", "right"):
        theirs = with_torch(lambda: tx.cummax(dim).values)
    else:
        theirs = with_torch(lambda: tx.flip(dim).cummax(dim).values.flip(dim))
    return Contest(ours, {"torch cummax": theirs}, bytes_of(x) * 2)


cases.in_half("128x256x256, top")
cases.off_line("128x256x256, top", "128x256x256, right")


def pooled(mode: str, images: int = 2) -> Call:
    """Pools towards the first row or column."""
    dim = MODES.index(mode) // 2 + 2
    others = {"torch": lambda t: t.flip(dim).cummax(dim)[0].flip(dim)}
    return Call(lambda t: ops.corner_pool(t, mode), [torch.randn(images, 128, 128, 128)], others)


cases.differentiable("2x128x128x128, top")(lambda _: pooled("top"))
cases.differentiable("2x128x128x128, left")(lambda _: pooled("left"))
cases.gradient("corner_pool 1x128x128x128")(lambda: pooled("left", 1))
cases.growth("pixels", 128 * 128, PIXELS)(lambda n: call("corner_pool", image(n), mode="top"))
cases.small([(2, 2, 4, 3)], mode="left")
