# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Cases, call, of
from inputs import PIXELS, image

from ops.sampling.cases import smooth_grid

cases = Cases(__file__)

cases.growth("pixels", 128 * 128, PIXELS)(
    lambda n: call("planar_grid_sampler", image(n), smooth_grid(n).permute(0, 3, 1, 2).contiguous())
)
cases.gradient("planar_grid_sampler 64x200x200, random")(
    lambda: of("planar_grid_sampler", [torch.randn(1, 64, 200, 200), torch.rand(1, 2, 200, 200) * 20 - 10], (0, 1))
)
cases.small([(2, 2, 4, 5), (2, 2, 3, 3)])
