"""What `polyop convert` says of an engine beside it."""

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
    """Inputs, outputs, the most requests that run together (0: the engine has no open first dimension), and whether it
    needs polyop's plugins. Raises BatchError."""
    beside = path.with_name(path.name + ".json")
    try:
        needs = json.loads(beside.read_text())
        inputs, outputs = _tensors(needs["inputs"]), _tensors(needs["outputs"])
        ranges = [(one["least"], one["largest"]) for one in needs["inputs"].values()]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BatchError(
            f"{beside} does not say what the engine takes: {error}", "`polyop convert` writes it"
        ) from None
    open_first = all(t.shape and not t.is_fixed(0) for t in [*inputs, *outputs])
    batches = open_first and all(least[0] == 1 for least, _ in ranges)
    return inputs, outputs, min(largest[0] for _, largest in ranges) if batches else 0, bool(needs["plugin_libraries"])


def _tensors(said: dict[str, Any]) -> list[Tensor]:
    return [
        Tensor(name, np.dtype(_TYPES[one["type"]]), tuple(e if e >= 0 else None for e in one["shape"]))
        for name, one in said.items()
    ]
