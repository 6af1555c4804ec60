# SPDX-License-Identifier: Apache-2.0
"""The operators as functions of any framework's tensors, by tvm-ffi and DLPack, on the CPU.

    import polyop.tvm_ffi
    keep = polyop.tvm_ffi.nms(boxes, scores, iou_threshold=0.5)

The functions and their parameters are those of every framework: polyop.numpy, polyop.functional. Inputs are contiguous
tensors of PyTorch, NumPy, JAX, CuPy, Paddle or tvm-ffi, without a copy. Outputs are PyTorch's if an input is; otherwise
they are tvm_ffi.Tensor, which other frameworks read by `from_dlpack`. Errors are ValueErrors with the message of every
runtime. The calling thread does all work.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm_ffi

from polyop._arrays.calls import array_of, library, operators
from polyop._arrays.composites import Arrays
from polyop._arrays.functions import define_all, is_text, numbers_of
from polyop._base.libraries import library_file, require_library

library()  # libpolyop_onnxruntime, which the next library needs
_module = tvm_ffi.load_module(require_library(library_file("polyop", "tvm_ffi"), "tvm-ffi"))


def _checked(op: str, attribute: dict[str, Any], value: Any) -> Any:
    """Returns an attribute's value in the types that tvm-ffi passes without loss."""
    if is_text(attribute, value):
        return value
    try:
        numbers = numbers_of(attribute["name"], attribute["type"], value)
    except ValueError as refused:
        raise ValueError(f"polyop::{op}: {refused}") from None
    return numbers if attribute["type"].endswith("s") else numbers[0]


def _call(op: str, inputs: Sequence[Any], values: Sequence[Any], outputs: int | None = None) -> Any:
    record = operators()[op]
    tensors: list[Any] = []
    for given, value in zip(record["inputs"], inputs, strict=True):
        if given["variadic"] and not isinstance(value, (list, tuple)):
            raise ValueError(f"polyop::{op}: '{given['name']}': expected a list of tensors, got {type(value).__name__}")
        if value is None and not given["optional"]:
            raise ValueError(f"polyop::{op}: '{given['name']}': expected a tensor, got None")
        if isinstance(value, (int, float)):
            value = array_of(value, given["name"], given["types"])
        tensors += value if given["variadic"] else (value,)
    attributes = {}
    for attribute, value in zip(record["attributes"], values, strict=True):
        if value is not None:
            attributes[attribute["name"]] = _checked(op, attribute, value)
    results = _module.call(op, attributes, *tensors)
    if len(record["outputs"]) == 1:
        return results
    return results[0] if outputs == 1 else tuple(results)[:outputs]


class _Arrays(Arrays):
    """Arrays of PyTorch, or else of NumPy, because a tvm_ffi.Tensor has no arithmetic."""

    def call(self, *args: Any) -> Any:
        results = super().call(*args)
        return np.from_dlpack(results) if isinstance(results, tvm_ffi.Tensor) else results

    def of(self, value: Any, name: str, op: str) -> Any:
        if _is_torch(value):
            return value
        try:
            return array_of(value, name, operators()[op]["inputs"][0]["types"])
        except ValueError as error:
            raise ValueError(f"polyop::{op}: {error}") from None

    def concatenate(self, arrays: Sequence[Any], axis: int) -> Any:
        return sys.modules["torch"].cat(arrays, axis) if _is_torch(arrays[0]) else np.concatenate(arrays, axis)

    def float32(self, array: Any) -> Any:
        return array.float().contiguous() if _is_torch(array) else np.ascontiguousarray(array, np.float32)

    def result(self, array: Any) -> Any:
        return array if _is_torch(array) else tvm_ffi.from_dlpack(np.ascontiguousarray(array))

    def integers(self, values: list[int], like: Any) -> Any:
        return sys.modules["torch"].tensor(values) if _is_torch(like) else self.result(np.array(values, np.int64))


def _is_torch(value: Any) -> bool:
    return type(value).__module__.startswith("torch")


_functions = define_all(operators(), _call, _Arrays(), __name__)
__all__ = list(_functions)
globals().update(_functions)
