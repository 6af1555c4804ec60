# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
import torch.nn.functional as F
from benchmark import Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import PIXELS, image, side_of

cases = Cases(__file__)


@cases.cpu("256x200x200")
def _(threads: int) -> Contest:
    """BEVFormer: the view of the previous frame, rotated by the rotation of the car."""
    x = normal(0, 256, 200, 200)
    feeds = {"x": x, "angle": np.array(3.5, np.float32), "center": np.array([100, 100], np.float32)}
    ours = session("polyop::RotateTRT", feeds, threads, attributes={"interpolation": 0})
    tx, turn = torch.from_numpy(x)[None], torch.deg2rad(torch.tensor(-3.5))
    matrix = torch.stack([turn.cos(), turn.sin(), turn * 0, -turn.sin(), turn.cos(), turn * 0]).view(1, 2, 3)

    def formulation() -> torch.Tensor:
        grid = F.affine_grid(matrix, [1, 256, 200, 200], align_corners=False)
        return F.grid_sample(tx, grid, "bilinear", "zeros", align_corners=False)[0]

    return Contest(ours, {"torch affine_grid, grid_sample": with_torch(formulation)}, 2 * bytes_of(x), tolerance=1e-3)


@cases.growth("pixels", 128 * 128, PIXELS)
def _(n: int) -> Call:
    side = side_of(n)
    return call("rotate", image(n)[0], torch.tensor(20.0), torch.tensor([side / 2, side / 2]))


cases.gradient("rotate 64x200x200 by 30 degrees")(
    lambda: of("rotate", [torch.randn(64, 200, 200), torch.tensor(30.0), torch.tensor([100.0, 100])], (0, 1, 2))
)
cases.small([(2, 4, 5), torch.tensor(30.0), torch.tensor([2.0, 1.5])])
