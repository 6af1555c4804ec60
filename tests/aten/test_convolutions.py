# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose attributes depend on dynamic sizes, which ONNX's nodes have as constants."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from tests.support.exported_calls import check


class _UpTo(nn.Module):
    """Transposed convolutions to sizes of other tensors, as decoders have for the features of their encoders."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.ConvTranspose1d(4, 6, 5, 3, 2, groups=2)
        self.two = nn.ConvTranspose2d(4, 3, 3, 2, 1, bias=False)
        self.three = nn.ConvTranspose3d(4, 2, 3, (2, 1, 3), 1, dilation=(2, 1, 1))

    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        (up,), wide, columns = y.shape, z.shape[0], x.shape[2]
        image, volume = x.unsqueeze(2).expand(-1, -1, 4, -1), x[:, :, None, None].expand(-1, -1, 2, 3, -1)
        results = self.one(x, [up]), self.two(image, [8, wide]), self.three(volume, [5, 3, up])
        weight = torch.ones(4, 1, 3)  # a dilation that is larger than the stride
        return *results, F.conv_transpose1d(x, weight, weight[0, 0, :1], 1, 0, wide - 2 * columns + 1, 1, 4)


def test_transposed_convolutions_to_a_dynamic_size() -> None:
    def sizes(columns: int, up: int, wide: int) -> tuple[torch.Tensor, ...]:
        generator = torch.Generator().manual_seed(0)
        return torch.randn(2, 4, columns, generator=generator), torch.zeros(up), torch.zeros(wide)

    others = [sizes(5, 13, 9), sizes(7, 20, 14), sizes(7, 21, 13)]
    check(_UpTo().eval(), *sizes(5, 14, 10), others=others, dynamic=[(2,), (0,), (0,)], rtol=1e-4, atol=1e-5)
