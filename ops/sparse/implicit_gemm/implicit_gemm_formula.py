# SPDX-License-Identifier: Apache-2.0
"""Sparse convolution from a table: one gather and one matrix product for each position of the filter."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1, 5)


def formula(
    features: Tensor, filters: Tensor, pair_fwd: Tensor, pair_mask: Tensor, mask_argsort: Tensor, bias: Tensor | None,
    *, act_type: str, act_alpha: float, **_: Any,
) -> Tensor:  # fmt: skip
    wide = torch.promote_types(features.dtype, torch.float32)  # the sums are in float
    weights = filters.flatten(1, 3).to(wide)
    padded = F.pad(features.to(wide), (0, 0, 0, 1))
    rows = torch.where(pair_fwd < 0, features.shape[0], pair_fwd).long()
    sums = padded.new_zeros(rows.shape[1], weights.shape[0]) if bias is None else bias.to(wide)
    for offset in range(weights.shape[1]):
        sums = sums + padded[rows[offset]] @ weights[:, offset].T
    if act_type == "leaky_relu":
        sums = F.leaky_relu(sums, act_alpha)
    elif act_type != "none":
        sums = getattr(torch, act_type)(sums)
    return sums.to(features.dtype)


def body(call: Call, *, act_type: str, act_alpha: float, **_: Any) -> str:
    activation = {
        "none": "Identity",
        "relu": "Relu",
        "sigmoid": "Sigmoid",
        "leaky_relu": f"LeakyRelu <alpha: float = {act_alpha!r}>",
    }[act_type]
    return f"""
        zero = Constant <value = int64[1] {{0}}> ()
        one = Constant <value = int64[1] {{1}}> ()
        extents = Shape (features)
        count = Gather (extents, zero)
        channels = Gather (extents, one)
        blank = Constant <value = float {{0}}> ()
        row_shape = Concat <axis = 0> (one, channels)
        blank_row = Expand (blank, row_shape)
        padded = Concat <axis = 0> (features, blank_row)
        pairs = Cast <to = 7> (pair_fwd)
        none = Less (pairs, zero)
        rows = Where (none, count, pairs)
        gathered = Gather (padded, rows)
        by_output = Transpose <perm = [1, 0, 2]> (gathered)
        pair_extents = Shape (pair_fwd)
        offsets = Gather (pair_extents, zero)
        outputs = Gather (pair_extents, one)
        width = Mul (offsets, channels)
        flat_shape = Concat <axis = 0> (outputs, width)
        flat = Reshape <allowzero = 1> (by_output, flat_shape)
        filter_extents = Shape (filters)
        filter_count = Gather (filter_extents, zero)
        matrix_shape = Concat <axis = 0> (filter_count, width)
        matrix = Reshape <allowzero = 1> (filters, matrix_shape)
        across = Transpose <perm = [1, 0]> (matrix)
        sums = MatMul (flat, across)
        biased = {"Add (sums, bias)" if call.has("bias") else "Identity (sums)"}
        out = {activation} (biased)
    """
