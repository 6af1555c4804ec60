# SPDX-License-Identifier: Apache-2.0
"""Overwrites slices by indices with ONNX's ScatterND."""

from __future__ import annotations

from torch import Tensor

from polyop.formulas import Call


def formula(data: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    return data.index_put(tuple(indices.long().unbind(-1)), updates)


def body(call: Call) -> str:
    return "output = ScatterND (data, indices, updates)"
