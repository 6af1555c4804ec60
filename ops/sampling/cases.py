# SPDX-License-Identifier: Apache-2.0
import torch
from inputs import side_of
from torch import Tensor


def smooth_grid(n: int) -> Tensor:
    """Returns the grid of an image rotated by a few degrees."""
    side = side_of(n)
    theta = torch.tensor([[[0.99, 0.1, 0.02], [-0.1, 0.99, 0.01]]])
    return torch.nn.functional.affine_grid(theta, [1, 1, side, side], align_corners=False)
