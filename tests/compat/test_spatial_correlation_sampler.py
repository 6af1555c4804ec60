# SPDX-License-Identifier: Apache-2.0
"""spatial_correlation_sampler, compared with shifted products, and its gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import pad

from polyop.compat.spatial_correlation_sampler import SpatialCorrelationSampler, spatial_correlation_sample


def formula(a: Tensor, b: Tensor, patch: tuple[int, int], spread: int) -> Tensor:
    """Kernel size and stride 1, without padding."""
    height, width = a.shape[2:]
    room = max(patch) * spread
    b = pad(b, [room] * 4)
    rows = []
    for i in range(patch[0]):
        y = room + (i - (patch[0] - 1) // 2) * spread
        columns = []
        for j in range(patch[1]):
            x = room + (j - (patch[1] - 1) // 2) * spread
            columns.append((a * b[:, :, y : y + height, x : x + width]).sum(1))
        rows.append(torch.stack(columns, 1))
    return torch.stack(rows, 1)


@pytest.mark.parametrize(("patch", "spread"), [(1, 1), (3, 2), ((3, 5), 1), (4, 1), ((2, 3), 2)])
def test_patches(patch: int | tuple[int, int], spread: int) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(2, 3, 7, 8, requires_grad=True), torch.randn(2, 3, 7, 8, requires_grad=True)
    pair = (patch, patch) if isinstance(patch, int) else patch
    expected = formula(a, b, pair, spread)
    result = SpatialCorrelationSampler(patch_size=patch, dilation_patch=spread)(a, b)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
    grad = torch.randn_like(expected)
    of_polyop, of_formula = (torch.autograd.grad(t, (a, b), grad) for t in (result, expected))
    torch.testing.assert_close(of_polyop, of_formula, rtol=1e-4, atol=1e-4)


def test_a_patch_without_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"spatial_correlation_sample: patch_size: expected .*, got 0"):
        spatial_correlation_sample(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2), patch_size=0)
