# SPDX-License-Identifier: Apache-2.0
"""Translations of PyTorch's own operators that are ONNX nodes: what decompositions cannot say, as of numbers.

onnx_decompositions.py passes them to the exporter.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir
import torch
from torch.onnx._internal.exporter import _core, _registration

import polyop._aten  # noqa: F401 - defines torch.ops.polyop_export
from polyop._base.extents import float32, next_float32
from polyop._torch.export_record import current_record

OPERATOR_KEY = "polyop.pytorch_operator"
"""The metadata property of ONNX nodes that names the operator that polyop translated. `polyop inspect` reads it."""
_REPEAT = "aten::repeat_interleave.Tensor"


def as_single(value: Any) -> Any:
    """Stands for the conversion to float32 of a number that Python's operators have computed."""
    return value


def _standard(op_type: str, inputs: list[Any], attributes: dict[str, Any] | None = None) -> Any:
    """Adds a standard node. Returns its output."""
    node = onnx_ir.Node("", op_type, inputs, onnx_ir.convenience.convert_attributes(attributes or {}))
    _core.current_tracer.nodes.append(node)
    return node.outputs[0]


def _number_of_elements(self: Any) -> Any:
    return _standard("Size", [self])


def _number_of_complex_elements(self: Any) -> Any:
    two = _standard("Constant", [], {"value": onnx_ir.tensor(2, onnx_ir.DataType.INT64)})
    return _standard("Div", [_standard("Size", [self]), two])


def _size_of_complex(self: Any, dim: int = 0) -> Any:
    """Returns a size of a tensor of complex numbers, which are pairs in a last dimension of 2."""
    start, end = (dim, dim + 1) if dim >= 0 else (dim - 1, dim)
    return _standard("Squeeze", [_standard("Shape", [self], {"start": start, "end": end})])


def _as_double(self: Any) -> Any:
    """Returns a number in the precision in which Python computes: sizes times factors are rounded down."""
    return _standard("Cast", [self], {"to": onnx_ir.DataType.DOUBLE.value})


def _as_single(self: Any) -> Any:
    return _standard("Cast", [self], {"to": onnx_ir.DataType.FLOAT.value})


def _ratio(self: Any, other: Any) -> Any:
    """Returns the quotient of two numbers of the program."""
    of = (v if isinstance(v, onnx_ir.Value) else _number(float(v), onnx_ir.DataType.DOUBLE) for v in (self, other))
    return _standard("Div", [_as_double(value) for value in of])


def _number(value: Any, dtype: Any) -> Any:
    return _standard("Constant", [], {"value": onnx_ir.tensor(value, dtype)})


def resize(
    write: Callable[..., Any], self: Any, scale_factors: Sequence[float], mode: str,
    coordinate_transformation_mode: str, **given: Any,
) -> Any:  # fmt: skip
    """Replaces the exporter's function that writes a Resize by factors.

    Resize rounds the float32 product of a size and a factor down, PyTorch the float64 product. Where they differ in a
    size that the file does not know, the factor is the next one of float32.

    PyTorch ignores the factor of an axis whose size stays the same, if the mode is linear. Runtimes ignore all factors
    if no size changes, which is wrong for cubic ones: then the last pixels are repeated, and the result is cut.
    """
    axes = list(enumerate(scale_factors, 2))
    cut = None
    if mode == "cubic" and coordinate_transformation_mode == "half_pixel" and _may_stay(self, axes):
        axis, factor = max(axes, key=operator.itemgetter(1))
        cut = axis, _new_size(self, axis, factor)
        self = _lengthened(self, axis, axes)
    scales = None
    if any(not isinstance(self.shape[axis], int) and factor != int(factor) for axis, factor in axes):
        parts = [_number([1.0, 1.0], onnx_ir.DataType.FLOAT)]
        parts += [_factor(self, axis, factor, mode == "linear") for axis, factor in axes]
        scales = _standard("Concat", parts, {"axis": 0})
    result = write(self, scale_factors, mode, coordinate_transformation_mode, **given)
    if scales is not None:
        result.producer().replace_input_with(2, scales)
    if cut is not None:
        integer = onnx_ir.DataType.INT64
        end = _standard("Cast", [cut[1]], {"to": integer.value})
        result = _standard("Slice", [result, _number([0], integer), end, _number([cut[0]], integer)])
    return result


def _may_stay(self: Any, axes: list[tuple[int, float]]) -> bool:
    """Returns True if all sizes may stay the same, by factors that are not all 1."""
    sizes = [(self.shape[axis], factor) for axis, factor in axes]
    stay = all(int(n * f) == n if isinstance(n, int) else 1 <= f < 2 for n, f in sizes)
    return stay and any(factor > 1 for _, factor in axes)


def _lengthened(self: Any, axis: int, axes: list[tuple[int, float]]) -> Any:
    """Repeats the last pixels of an axis so often that its size changes, if no size does otherwise."""
    integer = onnx_ir.DataType.INT64
    more = math.ceil(1 / (dict(axes)[axis] - 1))
    changes = [
        _standard("Sub", [_new_size(self, i, factor), _as_double(_size(self, i))]) for i, factor in axes if factor > 1
    ]
    changed = _standard("Cast", [_standard("Sum", changes)], {"to": onnx_ir.DataType.BOOL.value})
    count = _standard("Where", [changed, _number([0], integer), _number([more], integer)])
    dims = len(self.shape)
    pads = [_number([0] * (dims + axis), integer), count, _number([0] * (dims - 1 - axis), integer)]
    result = _standard("Pad", [self, _standard("Concat", pads, {"axis": 0})], {"mode": "edge"})
    result.dtype = self.dtype
    sizes = [None if i == axis else size for i, size in enumerate(self.shape)]
    result.shape = onnx_ir.Shape(sizes)
    return result


def _size(self: Any, axis: int) -> Any:
    return _standard("Shape", [self], {"start": axis, "end": axis + 1})


def _new_size(self: Any, axis: int, factor: float) -> Any:
    """Returns the size [1] that PyTorch computes from a factor, as a float64."""
    return _standard(
        "Floor", [_standard("Mul", [_as_double(_size(self, axis)), _number([factor], onnx_ir.DataType.DOUBLE)])]
    )


def _factor(self: Any, axis: int, factor: float, linear: bool) -> Any:
    """Returns the factor [1] with which Resize gives an axis as many pixels as PyTorch."""
    single = onnx_ir.DataType.FLOAT
    near = float32(factor)
    if isinstance(self.shape[axis], int) or factor == int(factor):
        return _number([near], single)
    size = _as_single(_size(self, axis))
    got = _standard("Floor", [_standard("Mul", [size, _number([near], single)])])
    expected = _as_single(_new_size(self, axis, factor))
    result = _number([near], single)
    for relation, towards in (("Less", float("inf")), ("Greater", 0.0)):
        differs = _standard(relation, [got, expected])
        result = _standard("Where", [differs, _number([next_float32(near, towards)], single), result])
    if linear and 1 < factor < 2:
        stays = _standard("Equal", [expected, size])
        result = _standard("Where", [stays, _number([1.0], single), result])
    return result


def _added(op_type: str, inputs: list[Any], attributes: dict[str, Any] | None = None) -> Any:
    """Adds a node of a translation of repeat_interleave. Returns its output."""
    result = _standard(op_type, inputs, attributes)
    result.producer().metadata_props[OPERATOR_KEY] = _REPEAT
    return result


def _constant(value: int, dimensions: int) -> Any:
    return _added("Constant", [], {"value": onnx_ir.tensor([value] if dimensions else value, onnx_ir.DataType.INT64)})


def _repeated_indices(repeats: Any, output_size: Any = None) -> Any:
    """Writes each index as often as `repeats` says. PyTorch's exporter compares all indices with all ends.

    An element of `marks` is the number of indices that end at its position: their running sum is the index.
    """
    counts = _added("Cast", [repeats], {"to": onnx_ir.DataType.INT64.value})
    ends = _added("CumSum", [counts, _constant(0, 0)])
    ones = _added(
        "ConstantOfShape", [_added("Shape", [counts])], {"value": onnx_ir.tensor([1], onnx_ir.DataType.INT64)}
    )
    # The last end, or 0 if there is none. ReduceSum of integers takes longer.
    total = _added("Gather", [_added("Concat", [_constant(0, 1), ends], {"axis": 0}), _constant(-1, 1)], {"axis": 0})
    length = _added("Add", [total, _constant(1, 1)])
    marks = _added("ConstantOfShape", [length], {"value": onnx_ir.tensor([0], onnx_ir.DataType.INT64)})
    marks = _added("ScatterElements", [marks, ends, ones], {"axis": 0, "reduction": "add"})
    marks = _added("Slice", [marks, _constant(0, 1), _constant(-1, 1), _constant(0, 1)])
    record = current_record()
    if record is not None:
        record.translated[_REPEAT] += 1
    indices = _added("CumSum", [marks, _constant(0, 0)])
    return indices if repeats.dtype in (None, onnx_ir.DataType.INT64) else _added("CastLike", [indices, repeats])


def _nms_by_class(boxes: Any, scores: Any, idxs: Any, iou_threshold: float) -> Any:
    """Writes torchvision's batched_nms as one NonMaxSuppression of all classes. Their scores are the ranks of the boxes
    among all, so that the indices of the kept boxes in this order have to be sorted only.
    """

    def constant(value: Any, dtype: Any) -> Any:
        return _standard("Constant", [], {"value": onnx_ir.tensor(value, dtype)})

    def cast(value: Any, dtype: Any) -> Any:
        return value if value.dtype == dtype else _standard("Cast", [value], {"to": dtype.value})

    def top(values: Any, count: Any, largest: bool) -> list[Any]:
        node = onnx_ir.Node(
            "",
            "TopK",
            [values, count],
            onnx_ir.convenience.convert_attributes({"axis": 0, "largest": int(largest)}),
            num_outputs=2,
        )
        _core.current_tracer.nodes.append(node)
        return list(node.outputs)

    integer, real = onnx_ir.DataType.INT64, onnx_ir.DataType.FLOAT
    zero, one = constant([0], integer), constant([1], integer)
    count = _standard("Shape", [scores])
    order = top(cast(scores, real), count, True)[1]
    number = _standard("Gather", [cast(idxs, real if idxs.dtype.is_floating_point() else integer), order])
    classes = _standard("Unique", [number])
    belongs = _standard("Equal", [_standard("Unsqueeze", [classes, one]), number])
    rank = _standard("Range", [_standard("Squeeze", [count]), constant(0, integer), constant(-1, integer)])
    of_classes = _standard("Where", [belongs, _standard("Cast", [rank], {"to": real.value}), constant(0.0, real)])
    sorted_boxes = _standard("Gather", [cast(boxes, real), order])
    kept = _standard(
        "NonMaxSuppression",
        [_standard("Unsqueeze", [sorted_boxes, zero]), _standard("Unsqueeze", [of_classes, zero]), count,
         constant([iou_threshold], real), constant([0.5], real)],
    )  # fmt: skip
    position = _standard("Gather", [kept, constant(2, integer)], {"axis": 1})
    return _standard("Gather", [order, top(position, _standard("Shape", [position]), False)[0]])


def _grouped_rows(rows: Any, weights: Any, ends: Any) -> Any:
    """Writes a product for each group of rows, and zeros for the rows after the last group."""

    def integers(*values: int) -> Any:
        return _number(list(values), onnx_ir.DataType.INT64)

    groups, columns = weights.shape[0], _standard("Shape", [weights], {"start": 2, "end": 3})
    inner = _standard("Cast", [ends], {"to": onnx_ir.DataType.INT64.value})
    count = _standard("Shape", [rows], {"start": 0, "end": 1})
    bounds = _standard("Concat", [integers(0), inner, count], {"axis": 0})
    first, last = (
        _standard("Slice", [bounds, integers(a), integers(b)]) for a, b in ((0, groups + 1), (1, groups + 2))
    )
    split = onnx_ir.Node("", "Split", [rows, _standard("Sub", [last, first])], num_outputs=groups + 1)
    _core.current_tracer.nodes.append(split)
    parts = [
        _standard("MatMul", [part, _standard("Gather", [weights, _number(i, onnx_ir.DataType.INT64)])])
        for i, part in enumerate(split.outputs[:-1])
    ]
    rest = _standard("Shape", [split.outputs[-1]], {"start": 0, "end": 1})
    zero = onnx_ir.tensor(np.zeros(1, rows.dtype.numpy()))
    parts.append(_standard("ConstantOfShape", [_standard("Concat", [rest, columns], {"axis": 0})], {"value": zero}))
    return _standard("Concat", parts, {"axis": 0})


_NODES: tuple[tuple[Any, Callable[..., Any], bool], ...] = (
    (torch.ops.aten.sym_numel.default, _number_of_elements, False),
    (torch.ops.aten.sym_numel.default, _number_of_complex_elements, True),
    (torch.ops.aten.sym_size.int, _size_of_complex, True),
    (torch.sym_float, _as_double, False),
    (as_single, _as_single, False),
    (operator.truediv, _ratio, False),
    (torch.ops.aten.repeat_interleave.Tensor, _repeated_indices, False),
    (torch.ops.polyop_export.nms_by_class.default, _nms_by_class, False),
    (torch.ops.polyop_export.grouped_rows.default, _grouped_rows, False),
)
"""The operator, its function, and whether that is for complex numbers."""


def add_nodes(registry: _registration.ONNXRegistry) -> None:
    """Adds the translations to the registry of an export, before the exporter's own and after a user's."""
    for target, function, is_complex in _NODES:
        meta = _registration.OnnxDecompMeta(
            function, target, None, is_complex=is_complex, skip_signature_inference=True
        )
        key = target.name() if isinstance(target, torch._ops.OpOverload) else target
        registry.functions.setdefault(key, []).insert(0, meta)
