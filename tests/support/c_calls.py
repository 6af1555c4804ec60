# SPDX-License-Identifier: Apache-2.0
"""Calls of operators through the C interface, adapters/c/polyop.h, by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from polyop._arrays.calls import (
    ALLOCATE,
    FLOAT,
    FLOATS,
    INT,
    INTS,
    RUN,
    TEXT,
    TYPES,
    Attribute,
    Outputs,
    Tensor,
    Threads,
    library,
    tensor_of,
)
from polyop._arrays.calls import attribute_of as attribute_of_kind


def attribute_of(name: str, value: object) -> Attribute:
    """Returns the attribute, of the kind of the value."""
    if isinstance(value, str):
        return attribute_of_kind(name, TEXT, value)
    real = np.array(value).dtype.kind == "f"
    listed = isinstance(value, Sequence)
    return attribute_of_kind(name, (FLOATS if listed else FLOAT) if real else (INTS if listed else INT), value)


def call_raw(operator: str, tensors: Sequence[Tensor], attributes: Sequence[Attribute], **given: object) -> str | None:
    """Calls polyop_call and returns its error. `given` are `allocate` and `run`, Python functions."""
    outputs = Outputs(None, ALLOCATE(given.get("allocate", lambda *_: None)))
    threads = Threads(None, RUN(given["run"])) if "run" in given else None
    error = library().polyop_call(
        operator.encode(),
        *(len(tensors), (Tensor * len(tensors))(*tensors)),
        *(len(attributes), (Attribute * len(attributes))(*attributes)),
        *(ctypes.byref(outputs), threads and ctypes.byref(threads)),
    )
    return None if error is None else error.decode()


def call(
    operator: str, *arrays: np.ndarray | None, run: Callable[..., None] | None = None, **attributes: object
) -> list[np.ndarray]:
    """Calls an operator. Raises ValueError with polyop's message."""
    found: dict[int, np.ndarray] = {}

    def allocate(_: object, output: int, dtype: int, rank: int, shape: Sequence[int]) -> int:
        found[output] = np.empty([shape[d] for d in range(rank)], TYPES[dtype])
        return found[output].ctypes.data

    kept = [array if array is None else np.asarray(array, order="C") for array in arrays]
    tensors = [tensor_of(array) for array in kept]
    passed = [attribute_of(name, value) for name, value in attributes.items()]
    error = call_raw(operator, tensors, passed, allocate=allocate, **({"run": run} if run else {}))
    if error is not None:
        raise ValueError(error)
    return [found[output] for output in sorted(found)]
