"""The operators as functions of any framework's tensors, by tvm-ffi and DLPack, on the CPU.

    import polyop.tvm_ffi
    keep = polyop.tvm_ffi.nms(boxes, scores, iou_threshold=0.5)

The names and arguments are those of the operators' definitions: docs/operators, torch.ops.polyop. Inputs are contiguous
tensors of PyTorch, NumPy, JAX, CuPy, Paddle or tvm-ffi, without a copy. Outputs are PyTorch's if an input is; otherwise
they are tvm_ffi.Tensor, which other frameworks read by `from_dlpack`. Errors are ValueErrors with the message of every
runtime. The calling thread does all work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm_ffi

from polyop._calls import KINDS, attribute_of, library, operators
from polyop._functions import define
from polyop._libraries import library_file, require_library

library()  # libpolyop_onnxruntime, which the next library needs
_module = tvm_ffi.load_module(require_library(library_file("polyop", "tvm_ffi"), "tvm-ffi"))


def _checked(op: str, attribute: dict[str, Any], value: Any) -> Any:
    """Returns an attribute's value in the types that tvm-ffi passes without loss."""
    if isinstance(value, str):
        return value
    try:
        numbers = list(attribute_of(attribute["name"], KINDS[attribute["type"]], value).kept)
    except ValueError as refused:
        raise ValueError(f"polyop::{op}: {refused}") from None
    return numbers if attribute["type"].endswith("s") else numbers[0]


def _call(op: str, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    record = operators()[op]
    tensors: list[Any] = []
    for given, value in zip(record["inputs"], inputs, strict=True):
        if given["variadic"] and not isinstance(value, (list, tuple)):
            raise ValueError(f"polyop::{op}: '{given['name']}': expected a list of tensors, got {type(value).__name__}")
        if value is None and not given["optional"]:
            raise ValueError(f"polyop::{op}: '{given['name']}': expected a tensor, got None")
        tensors += value if given["variadic"] else (value,)
    attributes = {}
    for attribute, value in zip(record["attributes"], values, strict=True):
        if value is not None:
            attributes[attribute["name"]] = _checked(op, attribute, value)
    results = _module.call(op, attributes, *tensors)
    return results if len(record["outputs"]) == 1 else tuple(results)


__all__ = list(operators())
globals().update({name: define(record, _call, __name__) for name, record in operators().items()})
