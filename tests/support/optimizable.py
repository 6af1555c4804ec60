# SPDX-License-Identifier: Apache-2.0
"""Modules whose exported graphs polyop optimize replaces."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Pool(nn.Module):
    def __init__(self, axis: int, forward: bool, skip: int = 0, lowest: bool = False, inner: bool = False) -> None:
        super().__init__()
        self.axis, self.is_forward, self.skip, self.factor = axis, forward, skip, None if inner else 1.5
        self.extremum = torch.minimum if lowest else torch.maximum

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.factor is None else x * self.factor
        positions = list(range(x.shape[self.axis]))
        if not self.is_forward:
            positions.reverse()
        row = x.select(self.axis, positions[0])
        rows = [row]
        for position in positions[1:]:
            row = self.extremum(row, x.select(self.axis, max(position - self.skip, 0)))
            rows.append(row)
        return torch.stack(rows if self.is_forward else rows[::-1], self.axis)


def corner_pool_inputs() -> dict[str, Tensor]:
    return {"x": torch.randn(2, 3, 6, 9, generator=torch.Generator().manual_seed(0))}


class Sample(nn.Module):
    """`border` is the value around the image."""

    def __init__(self, aligned: bool, border: float = 0) -> None:
        super().__init__()
        self.aligned, self.border = aligned, border

    def pixels(self, at: Tensor, extent: int) -> Tensor:
        return (at + 1) / 2 * (extent - 1) if self.aligned else ((at + 1) * extent - 1) / 2

    def clamp(self, position: Tensor, extent: int) -> Tensor:
        last = torch.tensor(extent - 1)
        return torch.where(position < 0, torch.tensor(0), torch.where(position > last, last, position))

    def forward(self, image: Tensor, grid: Tensor) -> Tensor:
        image = image * 1.5
        n, c, h, w = image.shape
        x = self.pixels(grid[..., 0], w).reshape(n, -1)
        y = self.pixels(grid[..., 1], h).reshape(n, -1)
        x0, y0 = x.floor().long(), y.floor().long()
        right, low = x - x0, y - y0
        flat = nn.functional.pad(image, [1, 1, 1, 1], value=self.border).reshape(n, c, -1)

        def corner(x: Tensor, y: Tensor) -> Tensor:
            position = self.clamp(y + 1, h + 2) * (w + 2) + self.clamp(x + 1, w + 2)
            return flat.gather(2, position.unsqueeze(1).expand(-1, c, -1))

        upper = corner(x0, y0) * ((1 - right) * (1 - low)).unsqueeze(1)
        upper = upper + corner(x0 + 1, y0) * (right * (1 - low)).unsqueeze(1)
        lower = corner(x0, y0 + 1) * ((1 - right) * low).unsqueeze(1)
        lower = lower + corner(x0 + 1, y0 + 1) * (right * low).unsqueeze(1)
        return (upper + lower).reshape(n, c, grid.shape[1], grid.shape[2])


def grid_sample_inputs(height: int = 9, width: int = 7) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(height)
    return {
        "image": torch.randn(2, 3, height, width, generator=generator),
        "grid": torch.rand(2, width, 5, 2, generator=generator) * 2.6 - 1.3,
    }


class Written(nn.Module):
    """Instance normalisation in the ways in which models write it."""

    def __init__(self, way: str, over: tuple[int, ...] = (2, 3), affine: bool = True) -> None:
        super().__init__()
        self.way, self.over, self.affine = way, over, affine
        generator = torch.Generator().manual_seed(0)
        self.scale = nn.Parameter(torch.rand(6, generator=generator))
        self.shift = nn.Parameter(torch.rand(6, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        x = x * 1.5
        centred = x - x.mean(self.over, keepdim=True)
        if self.way == "variance":
            y = centred / torch.sqrt(x.var(self.over, unbiased=False, keepdim=True) + 1e-3)
        elif self.way == "square":
            y = centred * torch.rsqrt((centred * centred).mean(self.over, keepdim=True) + 1e-3)
        else:
            y = centred / torch.sqrt(centred.pow(2).mean(self.over, keepdim=True) + 1e-3)
        return y * self.scale[None, :, None, None] + self.shift.view(1, -1, 1, 1) if self.affine else y


def instance_norm_inputs(*shape: int) -> dict[str, Tensor]:
    return {"x": 3 + torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))}
