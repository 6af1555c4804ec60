# SPDX-License-Identifier: Apache-2.0
"""Gathers rows of each batch element by indices: ONNX's GatherND."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call


def formula(data: Tensor, indices: Tensor) -> Tensor:
    batch = [
        torch.arange(size, device=data.device).reshape(size, *[1] * (indices.dim() - 1 - d))
        for d, size in enumerate(indices.shape[:-1])
    ]
    return data[(*batch, indices.long())]


def body(call: Call) -> str:
    return f"""
        last = Constant <value = int64[1] {{-1}}> ()
        tuples = Unsqueeze (indices, last)
        gathered = GatherND <batch_dims = {call.rank(1) - 1}> (data, tuples)
    """
