# SPDX-License-Identifier: Apache-2.0
"""`inspect` reports what a session would reject, and `run` does not compute with a misspelt attribute."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyop._commands.models import check_attributes
from tests.support.exported_nodes import NODES
from tests.support.single_node import model

BAD_FILE, NOT_PROVIDED = 3, 4
X, ROIS = np.zeros((1, 4, 16, 16), np.float32), np.zeros((3, 5), np.float32)
ALIGN = {"output_width": 2, "output_height": 2}


def run(program: str, *arguments: object, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    command, variables = [program, *map(str, arguments)], {**os.environ, **env}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=variables, timeout=120)


def align(**attributes: object) -> onnx.ModelProto:
    return model("mmcv::MMCVRoiAlign", {"x": X, "rois": ROIS}, attributes=attributes)


def test_inspect_counts(program: str, tmp_path: Path) -> None:
    weighted(tmp_path / "m.onnx", 8)
    out = run(program, "inspect", "m.onnx", cwd=tmp_path).stdout
    assert "  1 node, 1 initializer with 8 elements\n" in out
    onnx.save(align(**ALIGN), tmp_path / "m.onnx")
    assert "  1 node, 0 initializers\n" in run(program, "inspect", "m.onnx", cwd=tmp_path).stdout
    large = np.zeros((1200, 1000), np.float32)
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1200, 1000]) for name in ("x", "y", "z")]
    weights = [numpy_helper.from_array(large, "w")]
    nodes = [helper.make_node("Add", ["x", "w"], ["y"]), helper.make_node("Add", ["y", "w"], ["z"])]
    proto = helper.make_model(helper.make_graph(nodes, "g", infos[:1], infos[2:], weights), ir_version=8)
    onnx.save(proto, tmp_path / "m.onnx")
    out = run(program, "inspect", "m.onnx", cwd=tmp_path).stdout
    assert "  2 nodes, 1 initializer with 1.2 million elements\n" in out


def weighted(path: Path, values: int) -> None:
    """Writes a model whose weights are in another file, which has this number of them."""
    weights = numpy_helper.from_array(np.ones(8, np.float32), "w")
    onnx.external_data_helper.set_external_data(weights, "weights.bin", length=32)
    weights.ClearField("raw_data")
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", infos[:1], infos[1:], [weights])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(proto.SerializeToString())
    if values:
        (path.parent / "weights.bin").write_bytes(np.ones(values, np.float32).tobytes())


BAD_MODELS = {
    "a misspelt attribute": (
        align(output_widht=7, output_height=7),
        BAD_FILE,
        "unknown attribute 'output_widht'",
        "did you mean 'output_width'?",
    ),
    "an attribute of a node without attributes": (
        model("polyop::Gcd", {"a": np.zeros(4, np.int64), "b": np.zeros(4, np.int64)}, attributes={"descending": 1}),
        BAD_FILE,
        "unknown attribute 'descending'",
        "`polyop ops gcd` lists the attributes",
    ),
    "the same of CustomUnique": (
        model("autoware::CustomUnique", {"x": np.zeros(4, np.int64)}, list("uicn"), attributes={"sorted": 1}),
        BAD_FILE,
        "unknown attribute 'sorted'",
        "`polyop ops custom_unique`",
    ),
    "a value out of range": (
        align(output_width=0, output_height=7),
        BAD_FILE,
        "attribute 'output_width': expected a number in [1, 4096], got 0",
        "`polyop ops roi_align`",
    ),
    "a type without a kernel": (
        model("mmcv::NonMaxSuppression", {"b": np.zeros((1, 3, 4), np.float16), "s": np.zeros((1, 1, 3), np.float16)}),
        BAD_FILE,
        "tensor(float16)",
        "`polyop ops nms` lists the types that it takes",
    ),
    "a standard operator that does not exist": (
        model("::Foo", {"x": X}),
        NOT_PROVIDED,
        "does not load 'm.onnx': This is an invalid model. In Node",
        "ONNX Runtime has no such operator at the model's opset",
    ),
    "a file of libspconv": (
        model("::SparseConvolution", {"x": X}),
        NOT_PROVIDED,
        "No Op registered for SparseConvolution",
        "a node for NVIDIA's libspconv alone: export the PyTorch model with polyop in place of spconv",
    ),
    "a name that is nearly right": (
        model("mmcv::RoiAlignPlus", {"x": X, "rois": ROIS}),
        NOT_PROVIDED,
        "nobody provides mmcv::RoiAlignPlus",
        "RoiAlign; otherwise run with --ops LIB, or write it: `polyop new my_ops --project`",
    ),
}


@pytest.mark.parametrize("kind", BAD_MODELS)
def test_inspect_reports_what_a_session_rejects(program: str, tmp_path: Path, kind: str) -> None:
    proto, code, message, hint = BAD_MODELS[kind]
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    done = run(program, "inspect", "m.onnx", cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert message in done.stdout
    assert hint in done.stdout
    report = json.loads(run(program, "inspect", "m.onnx", "--json", cwd=tmp_path).stdout)
    assert message in report["faults"][0]["message"]
    assert report["faults"][0]["exit_code"] == code


def test_a_good_model_has_no_faults(program: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(align(**ALIGN, plugin_version="1", plugin_namespace=""), path)  # added for TensorRT
    report = run(program, "inspect", path, "--json")
    assert report.returncode == 0, report.stdout
    assert json.loads(report.stdout)["session_checked"]
    without = run(program, "inspect", path, "--onnxruntime", tmp_path / "none.so")
    assert without.returncode == 0
    assert "not checked: ONNX Runtime was not found" in without.stdout


@pytest.mark.parametrize("command", ["run", "verify", "bench"])
def test_commands_refuse_unknown_attributes(program: str, tmp_path: Path, command: str) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(align(output_widht=7, output_height=7), path)
    inputs = ["-i", "x=zeros", "-i", "rois=zeros"] if command == "run" else []
    done = run(program, command, path, *inputs)
    assert done.returncode == BAD_FILE
    assert "unknown attribute 'output_widht'" in done.stderr


@pytest.mark.parametrize(("values", "code", "said"), [(8, 0, ""), (0, 3, "No such file"), (7, 3, "got 0.0 kB")])
def test_external_data(program: str, tmp_path: Path, values: int, code: int, said: str) -> None:
    path = tmp_path / "m.onnx"
    weighted(path, values)
    for arguments in (["inspect", path], ["run", path, "-i", "x=zeros"]):
        done = run(program, *arguments)
        assert done.returncode == code, done.stdout + done.stderr
        assert said in done.stdout + done.stderr


def test_the_same_types_are_printed_once(program: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    boxes = {"boxes": np.zeros((2, 3), np.float32), "scores": np.zeros((4,), np.float32)}
    onnx.save(model("mmcv::NonMaxSuppression", boxes), path)
    done = run(program, "run", path, "-i", "boxes=zeros", "-i", "scores=zeros")
    assert done.returncode != 0
    assert done.stderr.count("(boxes: f32, scores: f32)") <= 1


def test_the_request_for_kernels(program: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(align(**ALIGN), path)
    arguments = ["run", path, "-i", "x=zeros", "-i", "rois=zeros"]
    done = run(program, *arguments, POLYOP_KERNELS="reference")
    assert "reference kernels" in done.stdout
    done = run(program, *arguments, POLYOP_KERNELS="foo")
    assert done.returncode == 2
    assert "POLYOP_KERNELS: expected 'reference' or nothing, got 'foo'" in done.stderr


def test_outputs_get_their_folders(program: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(align(**ALIGN), path)
    arguments = ["run", path, "-i", "x=zeros", "-i", "rois=zeros", "-o"]
    assert run(program, *arguments, tmp_path / "new" / "y.npy").returncode == 0
    assert (tmp_path / "new" / "y.npy").is_file()
    done = run(program, *arguments, path / "y.npy")
    assert done.returncode == BAD_FILE
    assert "cannot be written" in done.stderr


def test_synthetic_inputs_suit_the_operators(program: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    shapes = {"x": ("N", 4, "H", "W"), "rois": ("K", 5)}
    onnx.save(model("mmcv::MMCVRoiAlign", {"x": X, "rois": ROIS}, attributes=ALIGN, shapes=shapes), path)
    for command in (["verify"], ["bench", "--threads", "1", "--seconds", "0.01"]):
        done = run(program, *command, path, "--shape", "x=1x4x32x32", "--shape", "rois=7x5")
        assert done.returncode == 0, done.stderr
        assert "synthetic inputs: x (random), rois (random rois); -i NAME=FILE or --set gives others" in done.stdout
    done = run(program, "verify", path, "--shape", "x=1x4x32x32")
    assert "--shape rois=16x5" in done.stderr


def test_boxes_through_other_nodes(program: str, tmp_path: Path) -> None:
    """The operator that gives an input its meaning may read it through nodes that keep the elements."""
    infos = {"x": [2, 3, 16, 16], "boxes": [1, 5, 4], "index": [5]}
    kinds = {"index": TensorProto.INT64}
    inputs = [helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), s) for n, s in infos.items()]
    nodes = [
        helper.make_node("Constant", [], ["shape"], value=numpy_helper.from_array(np.array([-1, 4]))),
        helper.make_node("Reshape", ["boxes", "shape"], ["rows"]),
        helper.make_node("RoiAlign", ["x", "rows", "index"], ["y"], output_height=2, output_width=2),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8), path)
    done = run(program, "verify", path)
    assert done.returncode == 0, done.stderr
    assert "boxes (random boxes), index (random batch_index)" in done.stdout


def test_the_catalogue_states_roles() -> None:
    import polyop
    from polyop._onnx.catalogue import operators

    assert polyop
    roles = {op["name"]: [i["role"] for i in op["inputs"]] for op in operators()}
    assert roles["roi_align"] == ["", "rois"]
    assert roles["nms_rotated"] == ["rotated_boxes", "probability"]
    assert roles["onnx_roi_align"] == ["", "boxes", "batch_index"]
    assert roles["points_in_boxes_part"] == ["points", "boxes3d"]


def test_attributes_that_exporters_write_are_known(program: str, tmp_path: Path) -> None:
    for node in NODES:
        inputs = {f"in{i}": array for i, array in enumerate(node.inputs)}
        check_attributes(model(node.name, inputs, attributes=node.attributes))
    node = next(node for node in NODES if "im2col_step" in node.attributes)
    inputs = {f"in{i}": array for i, array in enumerate(node.inputs)}
    onnx.save(model(node.name, inputs, attributes=node.attributes), tmp_path / "model.onnx")
    done = subprocess.run([program, "inspect", tmp_path / "model.onnx"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
