# SPDX-License-Identifier: Apache-2.0
"""Rewrites models for TensorRT's parser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from polyop._onnx.catalogue import is_node
from polyop._onnx.node_groups import resolve_node
from polyop.errors import PolyopError

SHAPE_INPUTS = "tensorrt_plugin_shape_input_indices"
SIZE_TENSORS = "polyop_size_tensors"
MISSING_INPUTS = "polyop_missing_inputs"  # a mask, as in adapters/tensorrt/plugin.h


class ModelError(PolyopError, ValueError):
    """The model cannot be rewritten, or does not fit the shapes; the message names the node."""


FP16 = "fp16"


def preprocess_onnx(onnx_model: onnx.ModelProto, constants: Mapping[str, np.ndarray] | None = None) -> onnx.ModelProto:
    """Returns a copy in which TensorRT's parser maps every node of polyop's to its plugin.

    - A node whose name is that of TensorRT's own operator (`mmcv::NonMaxSuppression`, `mmcv::ScatterND`) is renamed,
    for
      example to `polyop_nms`.
    - Inputs whose values decide shapes become TensorRT's shape inputs; scalars get a dimension.
    - A node gets an additional output for each size that only its kernel finds.
    - An omitted input before another becomes an empty constant, which an attribute marks as missing: the parser rejects
      omitted inputs.
    - Functions of polyop's nodes are removed: the parser would prefer them to the plugins.
    - `DynamicTRTResize` becomes ONNX's own Resize: plugins cannot have fractional scales as shapes.

    Inputs in `constants` become constants: for example, TensorRT does not support scales that are inputs.
    """
    model = onnx.ModelProto()
    model.CopyFrom(onnx_model)
    _fix_inputs(model, constants or {})
    kept = [f for f in model.functions if not is_node(f.domain, f.name)]
    del model.functions[:]
    model.functions.extend(kept)
    ranks = {info.name: len(info.type.tensor_type.shape.dim) for info in [*model.graph.input, *model.graph.value_info]}
    added: list[tuple[int, onnx.NodeProto]] = []
    onnx_types = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    left_out = 0
    for index, node in enumerate(list(model.graph.node)):
        found = resolve_node(node)
        if found is None:
            continue
        operator, names = found
        if operator["name"] == "dynamic_resize":
            model.graph.node[index].CopyFrom(_as_resize(model, node))
            continue
        if node.op_type in onnx_types:
            _rename(node, operator, names)
        sizes = [i for i, spec in enumerate(operator["inputs"]) if spec["value"]]
        if sizes and not any(a.name == SHAPE_INPUTS for a in node.attribute):
            node.attribute.append(helper.make_attribute(SHAPE_INPUTS, sizes))
            added += [(index, _as_vector(model, node, i)) for i in sizes]
        _add_outputs(node, operator, ranks)
        while node.input and not node.input[-1]:
            node.input.pop()
        missing = [i for i, name in enumerate(node.input) if not name]
        if missing:
            node.attribute.append(helper.make_attribute(MISSING_INPUTS, sum(1 << i for i in missing)))
        for i, name in enumerate(node.input):
            if not name:
                left_out += 1
                node.input[i] = f"polyop_left_out_{left_out}"
                types = operator["inputs"][i]["types"]
                dtype = np.float32 if "f32" in types else np.int64
                model.graph.initializer.append(numpy_helper.from_array(np.empty(0, dtype), node.input[i]))
    for index, reshape in reversed(added):
        model.graph.node.insert(index, reshape)
    _import_default_opset(model)
    return model


def _fix_inputs(model: onnx.ModelProto, constants: Mapping[str, np.ndarray]) -> None:
    inputs = {info.name: info for info in model.graph.input}
    for name, value in constants.items():
        if name not in inputs:
            raise ModelError(f"constants: the model has no input '{name}'; it has {', '.join(inputs)}")
        dtype = helper.tensor_dtype_to_np_dtype(inputs[name].type.tensor_type.elem_type)
        shape = [d.dim_value for d in inputs[name].type.tensor_type.shape.dim]
        array = np.asarray(value, dtype)
        array = array.reshape(shape) if np.prod(shape) == array.size else array
        model.graph.initializer.append(numpy_helper.from_array(array, name))
        model.graph.input.remove(inputs[name])


def _as_vector(model: onnx.ModelProto, node: onnx.NodeProto, i: int) -> onnx.NodeProto:
    """Returns a node that reshapes input `i` to a vector: TensorRT's shape inputs have one dimension."""
    shape = f"{node.output[0]}_vector_shape"
    if not any(tensor.name == shape for tensor in model.graph.initializer):
        model.graph.initializer.append(numpy_helper.from_array(np.array([-1], np.int64), shape))
    vector = f"{node.output[0]}_vector_{i}"
    reshape = helper.make_node("Reshape", [node.input[i], shape], [vector], name=vector)
    node.input[i] = vector
    return reshape


def _add_outputs(node: onnx.NodeProto, operator: dict[str, Any], ranks: Mapping[str, int]) -> None:
    """Adds the outputs of the plugin that the node lacks: unused ones, and sizes that the kernel finds."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    outputs = [o for o in operator["outputs"] if not o["optional"] or attributes.get(f"return_{o['name']}")]
    pending = [sum(form[: len(outputs)]) for form in operator["found_sizes"]]
    form = 0
    if len(set(pending)) > 1:  # nms: one set of boxes or a batch, depending on the rank, or else on an attribute
        many = "max_output_boxes_per_class" in attributes
        form = int(ranks[node.input[0]] == 3 if node.input[0] in ranks else many)
    sizes = pending[form]
    if sizes:
        node.attribute.append(helper.make_attribute(SIZE_TENSORS, 1))
    for i in range(len(node.output), len(outputs) + sizes):
        node.output.append(f"{node.output[0]}_{'size' if i >= len(outputs) else 'unused'}_{i}")


def _rename(node: onnx.NodeProto, operator: dict[str, Any], names: dict[str, Any]) -> None:
    ours = {theirs: ours for ours, theirs in names["renames"].items()}
    words = {theirs.encode(): ours.encode() for ours, theirs in names["spellings"].items()}
    for attribute in node.attribute:
        attribute.name = ours.get(attribute.name, attribute.name)
        if attribute.type == onnx.AttributeProto.STRING:
            attribute.s = words.get(attribute.s, attribute.s)
    for name, value in names["presets"].items():
        node.attribute.append(helper.make_attribute(name, int(value) if value.isdigit() else value))
    node.op_type = f"polyop_{operator['name']}"


def _as_resize(model: onnx.ModelProto, node: onnx.NodeProto) -> onnx.NodeProto:
    roi = f"{node.output[0]}_roi"
    model.graph.initializer.append(numpy_helper.from_array(np.empty(0, np.float32), roi))
    return helper.make_node(
        "Resize", [node.input[0], roi, node.input[1]], list(node.output), name=node.name, mode="cubic",
        coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.75,
    )  # fmt: skip


def _import_default_opset(model: onnx.ModelProto) -> None:
    if not any(opset.domain in ("", "ai.onnx") for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid("", 17))
