# SPDX-License-Identifier: Apache-2.0
"""Reads the file that `polyop convert` writes next to an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from polyop.batch.errors import BatchError
from polyop.batch.interface import Tensor

_TYPES = {
    "f32": "float32",
    "f16": "float16",
    "i32": "int32",
    "i64": "int64",
    "i8": "int8",
    "u8": "uint8",
    "bool": "bool",
}


def read(path: Path) -> tuple[list[Tensor], list[Tensor], int, bool]:
    """Returns the inputs, the outputs, the maximum batch size, and True if the engine needs polyop's plugins.

    The maximum batch size is 0 if the engine has no dynamic first dimension. Raises BatchError.
    """
    description = path.with_name(path.name + ".json")
    try:
        needs = json.loads(description.read_text())
        inputs, outputs = _tensors(needs["inputs"]), _tensors(needs["outputs"])
        ranges = [(one["least"], one["largest"]) for one in needs["inputs"].values()]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BatchError(
            f"{description}: reading the engine's inputs failed: {error}", "`polyop convert` writes it"
        ) from None
    open_first = all(t.shape and not t.is_fixed(0) for t in [*inputs, *outputs])
    batches = open_first and all(smallest[0] == 1 for smallest, _ in ranges)
    return inputs, outputs, min(largest[0] for _, largest in ranges) if batches else 0, bool(needs["plugin_libraries"])


def _tensors(tensors: dict[str, Any]) -> list[Tensor]:
    return [
        Tensor(name, np.dtype(_TYPES[one["type"]]), tuple(e if e >= 0 else None for e in one["shape"]))
        for name, one in tensors.items()
    ]
