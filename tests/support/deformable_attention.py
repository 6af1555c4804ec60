# SPDX-License-Identifier: Apache-2.0
"""Deformable attention as detectors write it, exported to ONNX."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers.models.mask2former.modeling_mask2former import multi_scale_deformable_attention as first_variant

ATTENTION = "mmdeploy::MMCVMultiScaleDeformableAttention"
SIZES = [(6, 8), (3, 4), (2, 2)]
PIXELS = sum(h * w for h, w in SIZES)


class First(torch.nn.Module):
    """Points are [.., levels, points, 2], as in Deformable DETR."""

    def forward(self, value: torch.Tensor, locations: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return first_variant(value * 1.5, SIZES, locations, weights.softmax(-1)) + 1


def inputs(
    batch: int = 2, queries: int = 5, heads: int = 4, points: tuple[int, ...] = (3, 2)
) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        "value": torch.randn(batch, PIXELS, heads, 8, generator=generator),
        "locations": torch.rand(batch, queries, heads, *points, 2, generator=generator) * 1.2 - 0.1,
        "weights": torch.randn(batch, queries, heads, *points, generator=generator),
    }


def write(
    module: torch.nn.Module,
    given: dict[str, torch.Tensor],
    path: Path,
    exporter: str,
    dynamic: dict | None = None,
    opset: int = 18,
) -> Path:
    more = {"dynamic_shapes": dynamic} if exporter == "dynamo" else {"dynamic_axes": dynamic}
    torch.onnx.export(
        module.eval(), tuple(given.values()), str(path), input_names=list(given), output_names=["y"], opset_version=opset,
        dynamo=exporter == "dynamo", verbose=False, **(more if dynamic else {}), **({"external_data": False} if exporter == "dynamo" else {}),
    )  # fmt: skip
    return path
