# SPDX-License-Identifier: Apache-2.0
"""polyop's plugins in TensorRT-RTX, which parses models and builds engines without a GPU. Running engines needs one.

Where CUDA is not installed there is no plugin library, and these tests report that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from polyop import tensorrt as polyop_tensorrt
from polyop.tensorrt.half import _without_round_trips
from tests.support.exported_nodes import NODES
from tests.support.single_node import model
from tests.support.tensorrt_rtx import HAS_PLUGINS, build_all, case_of

if HAS_PLUGINS:

    @pytest.fixture(scope="module")
    def answers() -> list[dict]:
        return build_all([case_of(node, dynamic) for node in NODES for dynamic in (False, True)])

    @pytest.mark.parametrize("dynamic", [False, True], ids=["fixed", "dynamic"])
    @pytest.mark.parametrize("index", range(len(NODES)), ids=lambda i: f"{NODES[i].name}-{len(NODES[i].inputs)}-{i}")
    def test_every_exported_node_parses_and_builds(index: int, dynamic: bool, answers: list[dict]) -> None:
        answer = answers[2 * index + dynamic]
        if NODES[index].name.startswith("polyop::Quantized"):
            assert "error" in answer  # these operators have no kernels for GPUs, thus no plugin
            return
        if any(array is not None and array.dtype == np.uint8 for array in NODES[index].inputs):
            assert "UInt8 datatype formats are not supported" in answer["error"]  # true for every plugin
            return
        assert "error" not in answer, answer["error"]
        assert answer["size"] > 1000
        resized = "DynamicTRTResize" in NODES[index].name
        layers = [layer for layer in answer["layers"] if layer["type"] == ("RESIZE" if resized else "PLUGIN_V3")]
        assert len(layers) == 1, answer["layers"]
        _, shape = NODES[index].outputs[0]
        if shape is not None and not dynamic:  # -1: a data-dependent size
            assert all(
                got in (str(want), "-1") for got, want in zip(layers[0]["output"].split("x"), shape, strict=True)
            )

    def test_what_is_wrong_is_explained() -> None:
        x = np.zeros((1, 3, 8, 8), np.float32)
        wrong_plugin = model("mmcv::MMCVRoiAlinn", {"x": x}, ["y"])
        wrong_version = model("mmcv::MMCVCornerPool", {"x": x}, ["y"], {"mode": 0, "plugin_version": "7"})
        wrong_attribute = model("mmcv::MMCVCornerPool", {"x": x}, ["y"], {"mode": 9})
        wrong_rank = model("mmcv::MMCVCornerPool", {"x": x[0]}, ["y"], {"mode": 0})
        float_scales = model("custom::DynamicTRTResize", {"x": x, "scales": np.ones(4, np.float32)}, ["y"])
        no_shapes = model("mmcv::MMCVCornerPool", {"x": x}, ["y"], {"mode": 0}, {"x": ["n", 3, 8, "w"]})
        models = [wrong_plugin, wrong_version, wrong_attribute, wrong_rank, float_scales, no_shapes]
        for proto in models:
            proto.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
        cases = [{"model": proto.SerializeToString()} for proto in models]
        cases.append(
            {"model": no_shapes.SerializeToString(), "shapes": {"x": [(4, 3, 8, 8), (2, 3, 8, 8), (1, 3, 8, 8)]}}
        )
        cases.append({"model": no_shapes.SerializeToString(), "shapes": {"y": [(1, 3, 8, 8)]}})
        cases.append({"model": no_shapes.SerializeToString(), "shapes": {"x": [(1, 4, 8, 8)]}})
        texts = [answer["error"] for answer in build_all(cases)]
        assert "expected the plugin name='MMCVRoiAlinn' version='1' namespace=''" in texts[0]
        assert "MMCVRoiAlign" in texts[0]
        assert "version='7'" in texts[1]
        assert "registered is       name='MMCVCornerPool' version='1'" in texts[1]
        for text, parts in zip(
            texts[2:],
            [["MMCVCornerPool"], ["MMCVCornerPool"], ["scales"], ["smallest, usual and largest", "--shape x="], ["ascending"],
             ["no input 'y'", "x"], ["expected 3 for a dimension"]],
            strict=True,
        ):  # fmt: skip
            for part in parts:
                assert part in text

    def test_half_precision_keeps_inputs_and_outputs() -> None:
        nodes = [node for node in NODES if node.name in ("mmcv::MMCVRoiAlign", "mmcv::NonMaxSuppression")]
        cases = [{**case_of(node, True), "fp16_mode": True} for node in nodes]
        for node, answer in zip(nodes, build_all(cases), strict=True):
            assert "error" not in answer, answer["error"]
            casts = [layer for layer in answer["layers"] if layer["type"] == "CAST"]
            assert bool(casts) == (node.name == "mmcv::MMCVRoiAlign"), answer["layers"]

    def test_a_dynamic_batch_needs_no_shapes() -> None:
        proto = model(
            "mmcv::MMCVCornerPool", {"x": np.zeros((1, 3, 8, 8), np.float32)}, ["y"], {"mode": 0}, {"x": ["n", 3, 8, 8]}
        )
        proto.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
        (answer,) = build_all([{"model": proto.SerializeToString()}])
        assert "error" not in answer, answer["error"]
        assert answer["shapes"]["x"] == [[1, 3, 8, 8], [1, 3, 8, 8], [8, 3, 8, 8]]


else:

    def test_engines_are_built_where_cuda_is(not_run: Callable[[str], None]) -> None:
        not_run("no node was parsed and no engine built: without CUDA there is no plugin library")


def test_models_without_custom_nodes_are_unchanged() -> None:
    relu = helper.make_node("Relu", ["x"], ["y"])
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    proto = helper.make_model(
        helper.make_graph([relu], "g", info[:1], info[1:]), opset_imports=[helper.make_opsetid("", 17)]
    )
    assert polyop_tensorrt.preprocess_onnx(proto) == proto


def test_nodes_are_rewritten_for_the_parser() -> None:
    boxes, scores = np.zeros((5, 4), np.float32), np.zeros(5, np.float32)
    one = polyop_tensorrt.preprocess_onnx(
        model("mmcv::NonMaxSuppression", {"boxes": boxes, "scores": scores}, ["keep"], {"iou_threshold": 0.5})
    ).graph.node[0]
    assert (one.op_type, len(one.output)) == ("polyop_nms", 2)
    many = polyop_tensorrt.preprocess_onnx(
        model(
            "mmcv::NonMaxSuppression",
            {"boxes": boxes[None], "scores": scores[None, None]},
            ["keep"],
            {"iou_threshold": 0.5},
        )
    ).graph.node[0]
    assert (many.op_type, len(many.output)) == ("polyop_nms", 1)

    points, ends = np.zeros((9, 3), np.float32), np.array([9], np.int32)
    knn = polyop_tensorrt.preprocess_onnx(
        model("custom::knnquery", {"n": np.array(2), "xyz": points, "offset": ends}, ["idx", "dist"])
    )
    assert [node.op_type for node in knn.graph.node] == ["Reshape", "knnquery"]
    marks = {a.name: list(a.ints) for a in knn.graph.node[1].attribute}
    assert marks == {"tensorrt_plugin_shape_input_indices": [0]}

    grid = polyop_tensorrt.preprocess_onnx(
        model(
            "custom::torch_cluster_grid",
            {"pos": points, "size": points[0], "start": None, "end": points[0]},
            ["cluster"],
        )
    )
    empty = grid.graph.node[0].input[2]
    assert [list(t.dims) for t in grid.graph.initializer if t.name == empty] == [[0]]
    assert {a.name: a.i for a in grid.graph.node[0].attribute} == {"polyop_missing_inputs": 0b100}

    with pytest.raises(polyop_tensorrt.ModelError, match="no input 'z'"):
        polyop_tensorrt.preprocess_onnx(knn, {"z": np.zeros(1)})


def test_needed_casts_to_half_precision_are_kept() -> None:
    """A cast of integers is needed; one of float32 that only a branch reads is replaced there."""
    casts = [
        ("i", "i16", TensorProto.FLOAT16),
        ("i16", "i32", TensorProto.FLOAT),
        ("x", "x16", TensorProto.FLOAT16),
        ("x16", "x32", TensorProto.FLOAT),
    ]
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node("Abs", ["x32"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])],
        )
        for name in ("then", "else")
    }
    nodes = [helper.make_node("Cast", [source], [to], to=kind) for source, to, kind in casts]
    nodes += [helper.make_node("Neg", ["i32"], ["y"]), helper.make_node("If", ["c"], ["z"], **branches)]
    kinds = {"i": TensorProto.INT64, "x": TensorProto.FLOAT, "c": TensorProto.BOOL}
    inputs = [helper.make_tensor_value_info(n, k, [] if n == "c" else [1]) for n, k in kinds.items()]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in "yz"]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)]
    )
    result = _without_round_trips(model)
    onnx.checker.check_model(result, full_check=True)
    assert [node.op_type for node in result.graph.node] == ["Cast", "Cast", "Neg", "If"]
