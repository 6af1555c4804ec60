# SPDX-License-Identifier: Apache-2.0
"""Definitions of polyop's nodes for the package onnx, whose checker and shape inference then know them.

    polyop.onnx_schemas.register()
    onnx.checker.check_model(model, full_check=True)
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)

Tools that use them in the same process, such as onnxscript and onnx's converters, know the nodes as well. Types and
shapes are computed by the operators' own evaluator. For an invalid node it has the message of every runtime: a warning,
because the package onnx does not tell whether inference is strict, or with `register(strict=True)` a ValueError.
"""

from __future__ import annotations

import ctypes
import json
import math
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import onnx
from onnx import defs, helper, numpy_helper
from onnx.defs import OpSchema

from polyop._base.libraries import get_onnxruntime_op_path
from polyop._base.packages import libraries
from polyop._onnx.catalogue import WITHOUT_EFFECT, operators, spellings
from polyop._onnx.node_groups import resolved

__all__ = ["register"]

_ELEMENTS = {
    "f32": onnx.TensorProto.FLOAT, "f16": onnx.TensorProto.FLOAT16, "bf16": onnx.TensorProto.BFLOAT16,
    "f64": onnx.TensorProto.DOUBLE, "i8": onnx.TensorProto.INT8, "u8": onnx.TensorProto.UINT8,
    "i16": onnx.TensorProto.INT16, "i32": onnx.TensorProto.INT32, "i64": onnx.TensorProto.INT64,
    "bool": onnx.TensorProto.BOOL,
}  # fmt: skip
_NAMES = {element: name for name, element in _ELEMENTS.items()}
_TYPES = {
    name: "tensor(" + onnx.TensorProto.DataType.Name(element).lower() + ")" for name, element in _ELEMENTS.items()
}
_ATTRIBUTES = {
    "int": OpSchema.AttrType.INT,
    "float": OpSchema.AttrType.FLOAT,
    "string": OpSchema.AttrType.STRING,
    "ints": OpSchema.AttrType.INTS,
    "floats": OpSchema.AttrType.FLOATS,
}
_Definition = tuple[dict[str, Any], dict[str, Any]]  # an operator and one of its node names


_strict = False


def register(strict: bool = False) -> list[str]:
    """Registers all nodes of polyop and of packages and returns their names: "mmcv::MMCVRoiAlign". A later call only
    changes `strict`.

    Names that onnx itself defines keep its definition.
    """
    global _strict
    _strict = strict
    return _register()


@cache
def _register() -> list[str]:
    names: dict[str, list[_Definition]] = {}
    for operator in operators():
        for node in operator["nodes"]:
            names.setdefault(node["name"], []).append((operator, node))
    registered = []
    for name, definitions in names.items():
        domain, op_type = name.split("::")
        own = [d for d in definitions if d[0]["package"] == definitions[0][0]["package"]]
        if not defs.has(op_type, domain=domain):
            defs.register_schema(_schema(domain, op_type, own))
            registered.append(name)
    return registered


def _schema(domain: str, op_type: str, definitions: Sequence[_Definition]) -> OpSchema:
    """Returns the definition of a node name, which several operators may share."""
    constraints: dict[str, set[str]] = {}
    inputs = _parameters(definitions, "inputs", constraints)
    outputs = _parameters(definitions, "outputs", constraints)
    attributes: dict[str, OpSchema.Attribute] = {}
    for operator, node in definitions:
        for attribute in operator["attributes"]:
            if attribute["name"] not in node["presets"]:
                for name in spellings(attribute, node):
                    attributes.setdefault(name, _attribute(name, attribute, node, len(definitions) > 1))
    for name, kind in WITHOUT_EFFECT.items():
        attributes.setdefault(name, OpSchema.Attribute(name, _ATTRIBUTES[kind], "without effect", required=False))
    operator = definitions[0][0]
    schema = OpSchema(
        op_type, domain, 1, f"{operator['summary']}\n\n{operator['semantics']}", inputs=inputs, outputs=outputs,
        type_constraints=[(name, sorted(types), "") for name, types in constraints.items()],
        attributes=list(attributes.values()),
    )  # fmt: skip

    def infer(context: onnx.shape_inference.InferenceContext) -> None:
        _infer(context, domain, op_type, list(attributes))

    schema.set_type_and_shape_inference_function(infer)
    return schema


def _parameters(
    definitions: Sequence[_Definition], part: str, constraints: dict[str, set[str]]
) -> list[OpSchema.FormalParameter]:
    parameters = []
    lists = [operator[part] for operator, _ in definitions]
    for i in range(max(map(len, lists))):
        given = [tensors[i] for tensors in lists if i < len(tensors)]
        first = given[0]
        # Operators that share a name have separate type variables.
        variable = first["type"] if len(definitions) == 1 else f"{part}_{i}"
        if variable in _TYPES:
            variable = f"{variable}_only"
        types = constraints.setdefault(variable, set())
        for tensor in given:
            known = tensor.get("types") or ([tensor["type"]] if tensor["type"] in _TYPES else [])
            if known or part == "inputs":
                types |= {_TYPES[name] for name in known or _TYPES}
        if not types:  # an output of the type of no input
            types |= set(_TYPES.values())
        option = OpSchema.FormalParameterOption.Single
        if any(tensor.get("variadic") for tensor in given):
            option = OpSchema.FormalParameterOption.Variadic
        elif len(given) < len(lists) or any(tensor["optional"] for tensor in given):
            option = OpSchema.FormalParameterOption.Optional
        parameters.append(OpSchema.FormalParameter(first["name"], variable, param_option=option))
    return parameters


def _attribute(name: str, attribute: dict[str, Any], node: dict[str, Any], shared: bool) -> OpSchema.Attribute:
    kind = _ATTRIBUTES["string" if node["spellings"] and attribute["choices"] else attribute["type"]]
    alone = not shared and len(spellings(attribute, node)) == 1
    return OpSchema.Attribute(name, kind, attribute["meaning"], required=attribute["required"] and alone)


# ---- types and shapes ------------------------------------------------------------------------------


@cache
def _library(package: str) -> ctypes.CDLL:
    paths = {"polyop": get_onnxruntime_op_path(), **{p.name: str(path) for p, path in libraries("onnxruntime")}}
    library = ctypes.CDLL(paths[package])
    library.polyop_shapes.restype = ctypes.c_char_p
    return library


def _infer(context: Any, domain: str, op_type: str, names: Sequence[str]) -> None:
    node = onnx.NodeProto(op_type=op_type, domain=domain)
    node.attribute.extend(a for name in names if (a := context.get_attribute(name)) is not None)
    found = resolved(node)
    if found is None or found.operator is None:
        return
    operator = found.operator
    inputs = [_input(context, i, operator) for i in range(context.get_num_inputs())]
    if any(given == {} for given in inputs):
        return  # unknown types or ranks
    attributes = {name: _plain(value) for name, value in found.values.items() if value is not None}
    request = {"operator": operator["name"], "cuda": False, "attributes": attributes, "inputs": inputs}
    reply: dict[str, Any] = {"error": f"{operator['package']}::{operator['name']}: {found.error}"}
    if not found.error:
        reply = json.loads(_library(operator["package"]).polyop_shapes(json.dumps(request).encode()))
    if "error" in reply:
        if _strict:
            raise ValueError(reply["error"])
        warnings.warn(reply["error"], stacklevel=2)
        return
    for o, output in enumerate(reply["outputs"][: context.get_num_outputs()]):
        shape = [_extent(tree, inputs) for tree in output["shape"]]
        context.set_output_type(o, helper.make_tensor_type_proto(_ELEMENTS[output["type"]], shape))


def _input(context: Any, number: int, operator: dict[str, Any]) -> dict[str, Any] | None:
    """Returns an input of the request (adapters/shapes.h); None if it is left out, and {} if it is not known."""
    given = operator["inputs"][min(number, len(operator["inputs"]) - 1)]
    proto = context.get_input_type(number)
    if proto is None:
        return None if given["optional"] else {}
    tensor = proto.tensor_type
    if not tensor.HasField("shape") or tensor.elem_type not in _NAMES:
        return {}
    shape = [
        d.dim_value if d.HasField("dim_value") else d.dim_param if d.HasField("dim_param") else None
        for d in tensor.shape.dim
    ]
    result = {"name": given["name"], "type": _NAMES[tensor.elem_type], "shape": shape}
    if given["value"] and (data := context.get_input_data(number)) is not None:
        result["values"] = numpy_helper.to_array(data).ravel().tolist()
    return result


def _extent(tree: Any, inputs: Sequence[Any]) -> int | str | None:
    """Returns a number, the name of an input's extent, or None."""
    if isinstance(tree, list) and tree[0] == "extent":
        return inputs[tree[1]]["shape"][tree[2]]
    return tree if isinstance(tree, int) else None


def _plain(value: Any) -> Any:
    """Returns a value for JSON, which has no infinities."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
