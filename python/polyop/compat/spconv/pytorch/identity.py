# SPDX-License-Identifier: Apache-2.0
"""`spconv.pytorch.identity`."""

from __future__ import annotations

from typing import Any

from torch import nn

__all__ = ["Identity"]


class Identity(nn.Module):
    def forward(self, input: Any) -> Any:
        return input

    def input_spatial_size(self, out_size: Any) -> Any:
        return out_size
