"""Registers the ONNX nodes of polyop's operators and those of packages with both of PyTorch's exporters.

Users need not pass a translation table. import_hook.py imports this module.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.onnx import symbolic_helper

from polyop._aten.patches import replace
from polyop._extents import float32, next_float32
from polyop._torch.export_record import current_record
from polyop._torch.node_domain import chosen_domain
from polyop._torch.operators import ALL_OPERATORS, Operator

_REPEAT = "aten::repeat_interleave.Tensor"
_JIT_SUFFIX = {int: "i", float: "f", str: "s"}


# ---- torch.onnx.export(…, dynamo=True) -------------------------------------------------------------


def _node(operator: Operator, args: tuple[Any, ...], given: dict[str, Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """Returns the name, inputs and attributes of a call's ONNX node."""
    inputs = operator.flatten(args)
    while inputs and inputs[-1] is None:
        inputs.pop()
    name, attributes = operator.node(operator.values(given), chosen_domain())
    return name, inputs, attributes


def _translate(operator: Operator) -> None:
    """Registers a translation to the operator's node. Types and shapes come from the fake kernel.

    A decomposition into torch.onnx.ops.symbolic would affect others: inductor refuses operators with one if CI is set.
    """

    def translation(*args: Any, **given: Any) -> Any:
        name, inputs, attributes = _node(operator, args, given)
        domain, _, op_type = name.partition("::")
        result = onnx_ir.Node(
            domain, op_type, inputs, onnx_ir.convenience.convert_attributes(attributes), version=1,
            num_outputs=operator.num_outputs,
        )  # fmt: skip
        _core.current_tracer.nodes.append(result)
        return result.outputs[0] if len(result.outputs) == 1 else result.outputs

    onnx_impl(operator.overload, no_compile=True)(translation)


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


def _resize(
    write: Callable[..., Any], self: Any, scale_factors: Sequence[float], *args: Any, **given: Any
) -> Any:  # fmt: skip
    """Replaces the exporter's function that writes a Resize by factors, for sizes that the file does not know.

    Resize rounds the float32 product of a size and a factor down, PyTorch the float64 product. Where they differ, the
    factor is the next one of float32.
    """
    axes = list(enumerate(scale_factors, 2))
    scales = None
    if any(not isinstance(self.shape[axis], int) and factor != int(factor) for axis, factor in axes):
        parts = [_number([1.0, 1.0], onnx_ir.DataType.FLOAT)]
        parts += [_factor(self, axis, factor) for axis, factor in axes]
        scales = _standard("Concat", parts, {"axis": 0})
    result = write(self, scale_factors, *args, **given)
    if scales is not None:
        result.producer().replace_input_with(2, scales)
    return result


def _factor(self: Any, axis: int, factor: float) -> Any:
    """Returns the factor [1] with which Resize gives an axis as many pixels as PyTorch."""
    single, double = onnx_ir.DataType.FLOAT, onnx_ir.DataType.DOUBLE
    near = float32(factor)
    if isinstance(self.shape[axis], int) or factor == int(factor):
        return _number([near], single)
    size = _standard("Shape", [self], {"start": axis, "end": axis + 1})
    got = _standard("Floor", [_standard("Mul", [_as_single(size), _number([near], single)])])
    exact = _standard("Floor", [_standard("Mul", [_as_double(size), _number([factor], double)])])
    expected = _as_single(exact)
    result = _number([near], single)
    for relation, towards in (("Less", float("inf")), ("Greater", 0.0)):
        differs = _standard(relation, [got, expected])
        result = _standard("Where", [differs, _number([next_float32(near, towards)], single), result])
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
            "", "TopK", [values, count],
            onnx_ir.convenience.convert_attributes({"axis": 0, "largest": int(largest)}), num_outputs=2,
        )  # fmt: skip
        _core.current_tracer.nodes.append(node)
        return node.outputs

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


# ---- torch.onnx.export(…, dynamo=False) ------------------------------------------------------------


def _symbolic(operator: Operator) -> None:
    """Registers the function that the TorchScript exporter calls for a node of its graph."""
    inputs = operator.inputs

    def symbolic(g: Any, *args: Any) -> Any:
        flat = []
        for spec, arg in zip(inputs, args, strict=False):
            if spec.variadic:
                flat += symbolic_helper._unpack_list(arg)
            else:
                flat.append(arg)
        while flat and symbolic_helper._is_none(flat[-1]):
            flat.pop()
        given = {}
        for attribute, arg in zip(operator.attributes, args[len(inputs) :], strict=True):
            value = symbolic_helper._node_get(arg.node(), "value") if arg.node().kind() == "onnx::Constant" else None
            value = symbolic_helper._maybe_get_const(arg, _kind(attribute)) if value is None else value
            given[attribute["name"]] = None if symbolic_helper._is_none(arg) else _plain(value)
        name, attributes = operator.node(operator.values(given), chosen_domain())
        written = {f"{k}_{_suffix(v)}": v for k, v in attributes.items()}
        result = g.op(name, *flat, **written, outputs=operator.num_outputs)
        return result

    torch.onnx.register_custom_op_symbolic(f"{operator.namespace}::{operator.name}", symbolic, 9)


def _kind(attribute: dict[str, Any]) -> str:
    if attribute["choices"]:
        return "s"
    return {"int": "i", "float": "f", "ints": "is", "floats": "fs"}.get(attribute["type"], "s")


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return list(value) if isinstance(value, (list, tuple)) else value


def _suffix(value: Any) -> str:
    return _JIT_SUFFIX[type(value[0] if isinstance(value, list) else value)]


try:
    import onnx_ir
    from torch.onnx._internal.exporter import _core
    from torch.onnx._internal.exporter._torchlib._torchlib_registry import onnx_impl

    # This module also passes the exporter translations of PyTorch's operators.
    from polyop._torch.onnx_decompositions import OPERATOR_KEY, as_single
except ImportError:  # without onnxscript there is no dynamo exporter
    onnx_impl = None

if onnx_impl is not None:
    onnx_impl(torch.ops.aten.sym_numel.default, no_compile=True)(_number_of_elements)
    onnx_impl(torch.ops.aten.sym_numel.default, no_compile=True, complex=True)(_number_of_complex_elements)
    onnx_impl(torch.ops.aten.sym_size.int, no_compile=True, complex=True)(_size_of_complex)
    onnx_impl(torch.sym_float, no_compile=True)(_as_double)
    onnx_impl(as_single, no_compile=True)(_as_single)
    onnx_impl(operator.truediv, no_compile=True)(_ratio)
    replace("onnxscript.function_libs.torch_lib.ops.nn:_aten_upsample_scales", _resize)
    onnx_impl(torch.ops.aten.repeat_interleave.Tensor, no_compile=True)(_repeated_indices)
    onnx_impl(torch.ops.polyop_export.nms_by_class.default, no_compile=True)(_nms_by_class)
    onnx_impl(torch.ops.polyop_export.grouped_rows.default, no_compile=True)(_grouped_rows)
for _operator in ALL_OPERATORS:
    if onnx_impl is not None:
        _translate(_operator)
    _symbolic(_operator)
