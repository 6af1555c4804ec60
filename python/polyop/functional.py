# SPDX-License-Identifier: Apache-2.0
"""The operators as functions of PyTorch's tensors, under their names in torchvision, MMCV and torch.

    import polyop
    keep = polyop.nms(boxes, scores, iou_threshold=0.5)

The functions and their parameters are those of every framework: polyop.numpy, polyop.jax. All call torch.ops.polyop.*,
which support torch.compile by fake kernels. Both of torch.onnx.export's exporters write them as ONNX nodes. Operators
on features have gradients. functional.pyi has the types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from polyop._arrays.composites import Arrays
from polyop._arrays.functions import define_all, is_text, numbers_of
from polyop._torch import load  # noqa: F401 - registers the operators
from polyop._torch.node_domain import node_domain
from polyop._torch.operators import OPERATORS

_ops = torch.ops.polyop
_RECORDS = {name: operator.record for name, operator in OPERATORS.items()}
_ATTRIBUTES = {name: tuple(a["name"] for a in record["attributes"]) for name, record in _RECORDS.items()}


def _call(op: str, inputs: Sequence[Any], values: Sequence[Any], outputs: int | None = None) -> Any:
    if not all(value is None or isinstance(value, (Tensor, list, tuple)) for value in inputs):
        inputs = _tensors(op, inputs)
    given = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in zip(_ATTRIBUTES[op], values, strict=True)
        if value is not None
    }
    try:
        results = getattr(_ops, op)(*inputs, **given)
    except (RuntimeError, TypeError):
        _explain(op, inputs, given)
        raise
    if outputs is None:
        return results
    return results[0] if outputs == 1 else results[:outputs]


def _tensors(op: str, inputs: Sequence[Any]) -> list[Any]:
    """Returns the inputs, with tensors in place of numbers."""
    device = next((value.device for value in inputs if isinstance(value, Tensor)), None)
    result = []
    for given, value in zip(_RECORDS[op]["inputs"], inputs, strict=True):
        if isinstance(value, (int, float)):
            dtype = torch.float32 if isinstance(value, float) else torch.int64 if "i64" in given["types"] else None
            value = torch.tensor(value, dtype=dtype, device=None if given["value"] else device)
        result.append(value)
    return result


def _explain(op: str, inputs: Sequence[Any], given: Mapping[str, Any]) -> None:
    """Raises an error with polyop's message for arguments of other types, whose values PyTorch's own message prints."""
    record = _RECORDS[op]
    for spec, value in zip(record["inputs"], inputs, strict=True):
        for item in value if isinstance(value, (list, tuple)) else (value,):
            _require_tensor(op, spec["name"], item)
        if value is None and not spec["optional"]:
            raise ValueError(f"polyop::{op}: '{spec['name']}': expected a tensor, got None")
    for attribute in record["attributes"]:
        value = given.get(attribute["name"])
        if value is not None and not is_text(attribute, value):
            try:
                numbers_of(attribute["name"], attribute["type"], value)
            except ValueError as refused:
                raise ValueError(f"polyop::{op}: {refused}") from None


def _require_tensor(op: str, name: str, value: Any) -> None:
    if value is None or isinstance(value, Tensor):
        return
    if hasattr(value, "__array_interface__"):
        raise TypeError(
            f"polyop::{op}: '{name}': expected a torch.Tensor, got a NumPy array: pass torch.from_numpy({name})"
        )
    raise TypeError(f"polyop::{op}: '{name}': expected a torch.Tensor, got {type(value).__name__}")


class _Arrays(Arrays):
    def of(self, value: Any, name: str, op: str) -> Any:
        _require_tensor(op, name, value)
        return value

    def concatenate(self, arrays: Sequence[Tensor], axis: int) -> Tensor:
        return torch.cat(list(arrays), axis)

    def float32(self, array: Tensor) -> Tensor:
        return array.float().contiguous()

    def integers(self, values: list[int], like: Tensor) -> Tensor:
        return torch.tensor(values, device=like.device)


_functions = define_all(_RECORDS, _call, _Arrays(), __name__)
__all__ = ["node_domain", *_functions]
globals().update(_functions)
