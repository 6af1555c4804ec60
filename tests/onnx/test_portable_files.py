# SPDX-License-Identifier: Apache-2.0
"""Portable files: old, large and exported ones, and the program."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import polyop
from polyop import portable
from polyop.tensorrt import preprocess_onnx
from tests.support.exported_nodes import f
from tests.support.portable_calls import OPSET, assert_same, run_alone, several
from tests.support.processes import environment
from tests.support.single_node import model, session

Program = Callable[..., tuple[int, str, str]]


def old_file(opset: int = 11) -> onnx.ModelProto:
    """Writes a file of opset 11 and IR version 6, with standard nodes whose form has changed since."""
    nodes = [
        helper.make_node("MMCVCornerPool", ["x"], ["a"], "pool", domain="mmcv", mode=1),
        helper.make_node("ReduceSum", ["a"], ["b"], "sum", axes=[1], keepdims=1),
        helper.make_node("Add", ["b", "w"], ["y"], "add"),
    ]
    weight = numpy_helper.from_array(f(1, 1, 5, 6), "w")
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", c, 5, 6]) for n, c in (("x", 3), ("y", 1))]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [weight])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("mmcv", 1)], ir_version=6
    )


def test_nodes_without_a_domain_get_no_function() -> None:
    proto = model("::QKVTRT", {name: f(1, 2, 3) for name in "qkv"})
    opset = proto.opset_import[0].version
    (record,) = portable.add_functions(proto)
    assert (record.given, record.name) == (False, "::QKVTRT")
    assert "got none" in record.why
    assert not proto.functions
    assert proto.opset_import[0].version == opset


def test_raises_the_opset_of_an_old_file(tmp_path: Path) -> None:
    x = {"x": f(2, 3, 5, 6)}
    old = old_file()
    want = session(old).run(None, x)
    onnx.save(old, tmp_path / "old.onnx")
    report = portable.convert_file(tmp_path / "old.onnx", tmp_path / "new.onnx")
    assert report == {
        "nodes": [{"node": "pool", "name": "mmcv::MMCVCornerPool", "given": True, "why": ""}],
        "opset_before": 11,
        "opset": 16,
    }
    new = onnx.load(tmp_path / "new.onnx")
    assert new.ir_version == 8
    assert_same(run_alone(new, x), want)
    again = portable.convert_file(tmp_path / "new.onnx", tmp_path / "new.onnx", inlined=True)
    assert again["nodes"][0]["why"] == "the file already has a function"
    assert_same(run_alone(onnx.load(tmp_path / "new.onnx"), x), want)
    assert {p.name for p in tmp_path.iterdir()} == {"old.onnx", "new.onnx"}


def test_selected_nodes_only() -> None:
    proto = several("mmcv::MMCVCornerPool", {"x": f(1, 1, 3, 3)}, [{"mode": 0}], 4)
    assert portable.add_functions(proto, ["mmcv::grid_sampler"]) == []
    assert not proto.functions
    assert [r.given for r in portable.add_functions(proto, ["mmcv::MMCVCornerPool"])] == [True]


def test_nodes_in_branches_have_functions() -> None:
    inner = helper.make_node("MMCVCornerPool", ["x"], ["inner"], "inner", domain="mmcv", mode=3)
    branches = [
        helper.make_graph([node], "b", [], [helper.make_tensor_value_info("inner", TensorProto.FLOAT, [None] * 4)])
        for node in (inner, helper.make_node("Neg", ["x"], ["inner"], "neg"))
    ]
    choice = helper.make_node("If", ["c"], ["y"], "choice", then_branch=branches[0], else_branch=branches[1])
    infos = [
        helper.make_tensor_value_info(n, t, s)
        for n, t, s in (("x", 1, [None] * 4), ("c", TensorProto.BOOL, []), ("y", 1, [None] * 4))
    ]
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("mmcv", 1)]
    proto = helper.make_model(
        helper.make_graph([choice], "g", infos[:2], infos[2:]), opset_imports=opsets, ir_version=8
    )
    feeds = {"x": f(1, 2, 3, 4), "c": np.array(True)}
    want = session(proto).run(None, feeds)
    assert [r.node for r in portable.add_functions(proto)] == ["inner"]
    assert_same(run_alone(proto, feeds), want)


def test_large_tensors_stay_in_external_data(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "a", tmp_path / "b"
    folder.mkdir()
    elsewhere.mkdir()
    proto = old_file(OPSET)
    proto.graph.node.remove(proto.graph.node[1])
    proto.graph.node[1].input[0] = "a"
    proto.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 3
    x = {"x": f(2, 3, 5, 6)}
    want = session(proto).run(None, x)
    onnx.save(proto, folder / "old.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    before = (folder / "weights.bin").read_bytes()
    for target in (folder / "new.onnx", elsewhere / "new.onnx"):
        portable.convert_file(folder / "old.onnx", target)
        assert (target.parent / "weights.bin").read_bytes() == before
        assert onnx.load(target, load_external_data=False).graph.initializer[0].data_location == TensorProto.EXTERNAL
        assert_same(run_alone(onnx.load(target), x), want)
    portable.convert_file(folder / "old.onnx", elsewhere / "new.onnx")  # its data is there already
    (elsewhere / "weights.bin").write_bytes(b"another model's")
    with pytest.raises(ValueError, match="already exists with other data"):
        portable.convert_file(folder / "old.onnx", elsewhere / "newer.onnx")
    assert not (elsewhere / "newer.onnx").exists()


def test_tensorrt_gets_no_functions_for_polyops_nodes() -> None:
    proto = several("mmcv::MMCVCornerPool", {"x": f(1, 1, 3, 3)}, [{"mode": 0}], 4)
    portable.add_functions(proto)
    proto.functions.append(helper.make_function("own", "F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], []))
    assert [f.name for f in preprocess_onnx(proto).functions] == ["F"]
    assert len(proto.functions) == 2


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_export(exporter: str, tmp_path: Path) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
            return polyop.corner_pool(polyop.grid_sample(x, grid), "top")

    inputs = (torch.rand(1, 2, 5, 6), torch.rand(1, 3, 4, 2))
    path = tmp_path / "net.onnx"
    report = polyop.export(Net(), inputs, path, exporter=exporter, portable=True, verbose=False)
    assert report.nodes["mmcv::grid_sampler"] == 1
    feeds = dict(zip(("x", "grid"), (t.numpy() for t in inputs), strict=True))
    assert_same(run_alone(onnx.load(path), feeds), [Net()(*inputs).numpy()])

    class Rotated(torch.nn.Module):
        def forward(self, b: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
            return polyop.nms_rotated(b, s, 0.5)

    with pytest.raises(polyop.ExportError, match=r"some nodes have no portable form: .*rotated boxes"):
        polyop.export(
            Rotated(), (torch.rand(4, 5), torch.rand(4)), path, exporter=exporter, portable=True, verbose=False
        )


# ---- the program ---------------------------------------------------------------------------------------------


@pytest.fixture
def polyop_program(program: str, tmp_path: Path) -> Program:
    def run(*words: object) -> tuple[int, str, str]:
        command = [program, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment())
        return done.returncode, done.stdout, done.stderr

    return run


def test_program(polyop_program: Program, tmp_path: Path) -> None:
    onnx.save(old_file(), tmp_path / "old.onnx")
    code, out, err = polyop_program("portable", "old.onnx", "-o", "new.onnx")
    assert code == 0, err
    assert "mmcv::MMCVCornerPool  1      yes" in out
    assert "opset 11 became 16" in out
    code, out, _ = polyop_program("portable", "old.onnx", "-o", "plain.onnx", "--inline", "--json")
    assert json.loads(out)["nodes"][0]["given"]
    for reference in ("functions", "onnx=old.onnx", "onnx=plain.onnx"):
        code, out, err = polyop_program("verify", "new.onnx", "--shape", "x=2x3x5x6", "--reference", reference)
        assert code == 0, err
        assert "equal: all of 1 tensor(s)" in out
    code, out, _ = polyop_program("inspect", "new.onnx", "--json", "--html", "new.html")
    (needed,) = json.loads(out)["operators"]
    assert needed["function"]
    assert needed["provider"].endswith("or its function")
    page = (tmp_path / "new.html").read_text()
    assert '<details id="function-mmcv-MMCVCornerPool">' in page
    assert "#function-mmcv-MMCVCornerPool" in page
    assert "Scan" in page


def test_program_reports_errors(polyop_program: Program, tmp_path: Path) -> None:
    rotated = several("mmdeploy::NMSRotated", {"b": f(5, 5), "s": f(5)}, [{}], 1)
    rotated.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    onnx.save(rotated, tmp_path / "rotated.onnx")
    code, out, _ = polyop_program("portable", "rotated.onnx", "-o", "new.onnx")
    assert code == 4
    assert "No standard operator intersects rotated boxes" in out
    assert (tmp_path / "new.onnx").is_file()
    code, _, err = polyop_program("portable", "rotated.onnx", "-o", "new.onnx", "--only", "mmdeploy::NMSRotatd")
    assert (code, "did you mean 'mmdeploy::NMSRotated'?" in err) == (2, True), err
    code, _, err = polyop_program("portable", "rotated.onnx", "-o", "new_folder/new.onnx")
    assert (code, (tmp_path / "new_folder" / "new.onnx").is_file()) == (4, True), err
    code, _, err = polyop_program("portable", "rotated.onnx", "-o", "rotated.onnx/new.onnx")
    assert (code, "rotated.onnx/new.onnx" in err) == (3, True), err
    code, _, err = polyop_program(
        "verify", "rotated.onnx", "--shape", "b=5x5", "--shape", "s=5", "--reference", "onnx=no_such.onnx"
    )
    assert (code, "no_such.onnx" in err) == (3, True), err
    code, out, _ = polyop_program("ops", "nms_rotated")
    assert "No function in portable files" in out
    assert "nms_rotated" in polyop_program("ops", "--long")[1].splitlines()[-1]
