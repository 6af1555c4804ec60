"""Models as TensorRT's parser wants them: what exporters write, rewritten."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from polyop._catalogue import find_node, operators

SHAPE_INPUTS = "tensorrt_plugin_shape_input_indices"


class ModelError(ValueError):
    """A model that cannot be rewritten, or does not fit the shapes; the text names node, wanted and got."""


FP16 = "fp16"


def preprocess_onnx(onnx_model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which every node of polyop's is one that TensorRT's parser gives to its plugin.

    - A node whose name TensorRT has for an operator of its own (`mmcv::NonMaxSuppression`, `mmcv::ScatterND`) gets
      polyop's name, `polyop_nms`.
    - Inputs whose values decide shapes are marked as TensorRT's shape inputs.
    - An input that was left out before another, which the parser refuses, becomes an empty constant.
    - `DynamicTRTResize`, whose real scales no plugin can have as shapes, becomes ONNX's own Resize.
    """
    model = onnx.ModelProto()
    model.CopyFrom(onnx_model)
    own = {op for domain, op in _standard_operators() if domain == ""}
    left_out = 0
    for index, node in enumerate(list(model.graph.node)):
        found = find_node(node.domain, node.op_type)
        if found is None:
            continue
        operator, names = found
        if operator["name"] == "dynamic_resize":
            model.graph.node[index].CopyFrom(_as_resize(model, node))
            continue
        if node.op_type in own:
            _rename(node, operator, names)
        if operator["value_inputs"] and not any(a.name == SHAPE_INPUTS for a in node.attribute):
            node.attribute.append(helper.make_attribute(SHAPE_INPUTS, operator["value_inputs"]))
        while node.input and not node.input[-1]:
            node.input.pop()
        for i, name in enumerate(node.input):
            if not name:
                left_out += 1
                node.input[i] = f"polyop_left_out_{left_out}"
                dtype = np.int64 if "offset" in operator["signatures"][0].split(",")[i] else np.float32
                model.graph.initializer.append(numpy_helper.from_array(np.empty(0, dtype), node.input[i]))
    _import_default_opset(model)
    return model


def _standard_operators() -> set[tuple[str, str]]:
    return {(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas()}


def _rename(node: onnx.NodeProto, operator: dict, names: dict) -> None:
    ours = {theirs: ours for ours, theirs in names["renames"].items()}
    for attribute in node.attribute:
        attribute.name = ours.get(attribute.name, attribute.name)
    for name, value in names["presets"].items():
        node.attribute.append(helper.make_attribute(name, value))
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


def to_fp16(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that computes in half precision, inputs and outputs as they were.

    TensorRT 11 and RTX are strongly typed: a network computes in the types that the model says. Nodes of operators
    without half-precision kernels (suppression, nearest neighbours) keep single precision, casts around them.
    """
    try:
        from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16
    except ImportError as error:
        raise ModelError(f"fp16 needs onnxruntime's converter: pip install onnxruntime ({error})") from None
    single = {f"polyop_{operator['name']}" for operator in operators() if not operator["half"]}
    for operator in operators():
        if not operator["half"]:
            single |= {node["name"].split("::")[1] for node in operator["nodes"]}
    # What the converter's own list keeps in single precision is what ONNX Runtime's CPU lacks; TensorRT has it.
    blocked = [*single, *(op for op in DEFAULT_OP_BLOCK_LIST if op not in ("Resize", "Upsample"))]
    return convert_float_to_float16(model, keep_io_types=True, op_block_list=blocked, disable_shape_infer=True)
