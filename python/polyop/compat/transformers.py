"""Hugging Face transformers' detectors with polyop's deformable attention, e.g. before an export.

from polyop.compat.transformers import use_polyop

use_polyop(model)
"""

from __future__ import annotations

from torch import Tensor, nn

from polyop import functional

__all__ = ["use_polyop"]

# What Deformable DETR, RT-DETR, Grounding DINO, … call the layer; all take the arguments of forward() below.
_LAYER = "MultiScaleDeformableAttention"


class _Attention(nn.Module):
    def forward(
        self,
        value: Tensor,
        value_spatial_shapes: Tensor,
        value_spatial_shapes_list: list[tuple[int, int]],
        level_start_index: Tensor,
        sampling_locations: Tensor,
        attention_weights: Tensor,
        im2col_step: int,
    ) -> Tensor:
        del value_spatial_shapes_list, im2col_step
        return functional.ms_deform_attn(
            value, value_spatial_shapes, level_start_index, sampling_locations, attention_weights
        )


def use_polyop(model: nn.Module) -> int:
    """Replaces every layer of deformable attention, which has no weights of its own; returns how many there were.

    Raises ValueError if there is none.
    """
    found = [
        (parent, name)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child).__name__ == _LAYER and type(child).__module__.startswith("transformers.")
    ]
    if not found:
        raise ValueError(f"{type(model).__name__} has no layer {_LAYER} of transformers")
    for parent, name in found:
        setattr(parent, name, _Attention())
    return len(found)
