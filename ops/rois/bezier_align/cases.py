# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import Call, Cases, Contest, call, of
from contenders import bytes_of, in_torch, normal, session
from torch import Tensor

from ops.rois.cases import BINS, SMALL_BINS, features, image_of_rois, rois_of, rois_over, small_rois

cases = Cases(__file__)


@cases.cpu("256x160x160, 100 curves, 8x32")
def _(threads: int) -> Contest:
    x, rois = normal(0, 1, 256, 160, 160), rois_of(100, 160, 160, 0.25)
    left, top, right, bottom = rois[:, 1:].T
    across = [left + (right - left) * part for part in (0, 1 / 3, 2 / 3, 1)]
    bent = [top + (bottom - top) * part for part in (0.3, 0.0, 0.0, 0.3)]
    points = [
        *zip(across, bent, strict=True),
        *((a, b + (bottom - top) * 0.7) for a, b in zip(across[::-1], bent[::-1], strict=True)),
    ]
    curves = np.stack([rois[:, 0], *(v for point in points for v in point)], 1).astype(np.float32)
    attributes = {"output_height": 8, "output_width": 32, "spatial_scale": 0.25, "sampling_ratio": 1, "aligned": 1}
    ours = session("polyop::BezierAlign", {"x": x, "rois": curves}, threads, attributes=attributes)
    return Contest(
        ours,
        {"torch formulation": in_torch("bezier_align", x, curves, **attributes)},
        bytes_of(x) + 100 * 256 * 256 * 4,
        tolerance=1e-3,
    )


@cases.gradient("bezier_align 256x100x152, 64 of 8x32")
def _() -> Call:
    rois = torch.cat([torch.zeros(64, 1), torch.rand(64, 16) * 90], 1)

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        projects.mmcv().bezier_align_backward(grad, rois, to, 8, 32, 1.0, 2, True)
        return [to]

    call = of("bezier_align", [features(), rois], output_height=8, output_width=32, sampling_ratio=2)
    return call.against_mmcv(backward=backward, on_cpu=True)


@cases.growth("rois", 100, 100_000)
def _(n: int) -> Call:
    """The upper and lower sides of the rois are curves."""
    batch, x1, y1, x2, y2 = rois_over(n).split(1, 1)
    along = torch.linspace(0, 1, 4)
    upper = torch.stack([x1 + along * (x2 - x1), y1 + 4 * along * (1 - along)], 2)
    lower = torch.stack([x2 - along * (x2 - x1), y2 + 4 * along * (1 - along)], 2)
    return call("bezier_align", image_of_rois(), torch.cat([batch, upper.flatten(1), lower.flatten(1)], 1), **BINS)


cases.small([(2, 2, 6, 5), small_rois(17)], **SMALL_BINS, sampling_ratio=2)
cases.small([(2, 2, 6, 5), small_rois(17)], "by-extents", **SMALL_BINS)
cases.small([(2, 2, 6, 5), (0, 17)], "no-boxes", **SMALL_BINS)
