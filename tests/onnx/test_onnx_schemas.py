# SPDX-License-Identifier: Apache-2.0
"""polyop.onnx_schemas: the package onnx knows polyop's nodes; polyop.onnxscript."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import onnxsim
import onnxslim
import pytest
from onnx import defs, helper
from onnxscript import FLOAT, script

from polyop import onnx_schemas
from polyop.onnxscript import domain
from tests.support.exported_nodes import NODES, Node
from tests.support.single_node import DTYPES, model, session


@pytest.fixture(scope="module", autouse=True)
def schemas() -> Iterator[list[str]]:
    """Registers the definitions for this file alone."""
    names = onnx_schemas.register(strict=True)
    yield names
    for name in names:
        space, op_type = name.split("::")
        defs.deregister_schema(op_type, 1, space)
    onnx_schemas._register.cache_clear()
    domain.cache_clear()


def model_of(node: Node, shapes: dict | None = None) -> onnx.ModelProto:
    inputs = {f"in{i}": array for i, array in enumerate(node.inputs)}
    return model(node.name, inputs, [f"out{i}" for i in range(len(node.outputs))], node.attributes, shapes)


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
def test_every_node(node: Node, schemas: list[str]) -> None:
    """The checker accepts the node, and shape inference gives the types and shapes that runtimes compute."""
    assert node.name in schemas or defs.has(node.name.split("::")[1])
    inferred = onnx.shape_inference.infer_shapes(model_of(node), strict_mode=True)
    if node.name not in schemas:
        return
    assert not onnx.checker.check_node(inferred.graph.node[0], context_of(inferred))
    for value, (dtype, shape) in zip(inferred.graph.output, node.outputs, strict=True):
        tensor = value.type.tensor_type
        assert tensor.elem_type == DTYPES[np.dtype(dtype)]
        if shape is not None:
            found = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
            assert len(found) == len(shape)
            assert all(f in (None, s) for f, s in zip(found, shape, strict=True))


def context_of(proto: onnx.ModelProto) -> onnx.checker.C.CheckerContext:
    context = onnx.checker.C.CheckerContext()
    context.ir_version = proto.ir_version
    context.opset_imports = {opset.domain: opset.version for opset in proto.opset_import}
    return context


def test_symbolic_extents_keep_their_names() -> None:
    node = next(node for node in NODES if node.name == "mmcv::MMCVRoiAlign")
    proto = model_of(node, {"in0": ["N", 4, "H", "W"], "in1": ["rois", 5]})
    (output,) = onnx.shape_inference.infer_shapes(proto, strict_mode=True).graph.output
    dims = output.type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == ["rois", 4, 3, 2]


def test_onnxslim_folds_the_shape_of_a_result() -> None:
    """It infers shapes in this process, and no longer refuses a model with polyop's nodes."""
    node = next(node for node in NODES if node.name == "mmcv::MMCVRoiAlign")
    proto = model_of(node)
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    result = proto.graph.output[0].name
    proto.graph.node.append(helper.make_node("Shape", [result], ["shape"]))
    proto.graph.node.append(helper.make_node("Cast", ["shape"], ["extents"], to=onnx.TensorProto.FLOAT))
    proto.graph.node.append(helper.make_node("Neg", ["extents"], ["negative"]))
    proto.graph.output.append(helper.make_tensor_value_info("negative", onnx.TensorProto.FLOAT, [4]))
    slim = onnxslim.slim(proto)
    assert {n.op_type for n in slim.graph.node} & {"MMCVRoiAlign", "Shape", "Cast"} == {"MMCVRoiAlign"}
    shape = [d.dim_value for d in slim.graph.output[0].type.tensor_type.shape.dim]
    assert shape == list(node.outputs[0][1])


def test_onnxsim_removes_what_the_shape_of_a_result_decides() -> None:
    node = next(node for node in NODES if node.name == "mmcv::MMCVRoiAlign")
    proto = model_of(node)
    output = proto.graph.output[0]
    proto.graph.node.append(helper.make_node("Shape", [output.name], ["shape"]))
    proto.graph.node.append(helper.make_node("Reshape", [output.name, "shape"], ["same"]))
    output.CopyFrom(helper.make_tensor_value_info("same", onnx.TensorProto.FLOAT, node.outputs[0][1]))
    simple, equal = onnxsim.simplify(proto)
    assert equal
    assert [n.op_type for n in simple.graph.node] == ["MMCVRoiAlign"]


def test_what_is_wrong_is_explained() -> None:
    node = next(node for node in NODES if node.name == "mmcv::MMCVRoiAlign")
    wrong = model_of(node, {"in1": ["R", 4]})
    message = r"^polyop::roi_align: 'rois': expected dimension 1 to be 5, got 4"
    with pytest.raises(ValueError, match=message):
        onnx.shape_inference.infer_shapes(wrong)
    onnx_schemas.register()
    with pytest.warns(UserWarning, match=message):
        onnx.shape_inference.infer_shapes(wrong)
    onnx_schemas.register(strict=True)
    proto = model_of(node)
    proto.graph.node[0].attribute.append(helper.make_attribute("sampling_ration", 2))
    with pytest.raises(onnx.checker.ValidationError, match="sampling_ration"):
        onnx.checker.check_node(proto.graph.node[0], context_of(proto))


def test_onnxscript() -> None:
    from polyop.onnxscript import mmcv

    @script()
    def pool(x: FLOAT[...], rois: FLOAT[...]) -> FLOAT[...]:
        return mmcv.MMCVRoiAlign(x, rois, output_height=3, output_width=3, spatial_scale=0.5)

    proto = pool.to_model_proto(opset_version=17)
    feeds = {"x": np.ones((1, 2, 9, 9), np.float32), "rois": np.float32([[0, 1, 1, 8, 8]])}
    assert session(proto).run(None, feeds)[0].shape == (1, 2, 3, 3)
    with pytest.raises(AttributeError, match=r"expected one of polyop's domains, .*mmcv.*, got 'mmvc'"):
        domain("mmvc")
