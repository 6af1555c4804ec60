# SPDX-License-Identifier: Apache-2.0
"""polyop convert --half: what half precision would lose stays in single precision, and is named."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyop._onnx.graph import nodes_of
from polyop.tensorrt.half import with_types
from polyop.verifying.halving import HalfError, Halved, Halving, prepared, tensor_loss
from polyop.verifying.rounding import rounded
from polyop.verifying.sides import How, open_side
from tests.support.processes import environment
from tests.support.tensorrt_rtx import RUNTIME, convert

F32, F16 = TensorProto.FLOAT, TensorProto.FLOAT16
RNG = np.random.default_rng(0)


def model(
    nodes: Sequence[tuple[str, str, str]], constants: Mapping[str, Any], shape: Sequence[int] = (1, 3, 8, 8), opset: int = 17,
    **attributes: Mapping[str, Any],
) -> onnx.ModelProto:  # fmt: skip
    """nodes: type, inputs and output, which is the node's name. attributes: by output."""
    made = [
        helper.make_node(kind.rpartition(":")[2], inputs.split(), [output], name=output, domain=kind.rpartition(":")[0], **attributes.get(output, {}))
        for kind, inputs, output in nodes
    ]  # fmt: skip
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    outputs = [onnx.ValueInfoProto(name=nodes[-1][-1])]
    outputs[0].type.tensor_type.elem_type = F32
    graph = helper.make_graph(made, "graph", [helper.make_tensor_value_info("x", F32, shape)], outputs, tensors)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("mmcv", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


PLANTED = model(
    [
        ("Conv", "x w", "conv"), ("Mul", "conv gain", "amplify"), ("Mul", "amplify loss", "attenuate"), ("Sigmoid", "attenuate", "y")
    ],
    {"w": RNG.random((4, 3, 1, 1), np.float32), "gain": np.float32(4e4), "loss": np.float32(2.5e-5)},
)  # fmt: skip


def halved(proto: onnx.ModelProto, limit: float = 0.01) -> Halved:
    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    ready, feeds = prepared(proto), [{"x": RNG.random(shape, np.float32)} for _ in range(2)]
    side = open_side(ready, How())
    return Halving(ready, ready, feeds, tensor_loss([side.run(feed) for feed in feeds]), limit).run()


def test_onnxruntimes_cpu_does_not_round_but_the_measured_model_does() -> None:
    """If ONNX Runtime rounds some day, the measured model may be the file itself."""
    chain = model(
        [("Mul", "x gain", "a"), ("Mul", "a loss", "y")], {"gain": np.float16(1e3), "loss": np.float16(1e-3)}, [2]
    )
    for info in (*chain.graph.input, *chain.graph.output):
        info.type.tensor_type.elem_type = F16
    x = np.array([0.5, 100], np.float16)
    exact = ort.InferenceSession(chain.SerializeToString()).run(None, {"x": x})[0]
    assert np.isfinite(exact).all()
    got = ort.InferenceSession(rounded(chain).SerializeToString()).run(None, {"x": x.astype(np.float32)})[0]
    assert np.isinf(got[1])
    assert got[0] == np.float16(np.float16(500.0) * np.float16(1e-3))


def test_a_planted_overflow_is_found_and_named() -> None:
    found = halved(PLANTED)
    assert {kept.node for kept in found.kept} == {"amplify", "attenuate"}
    assert found.kept[0].why.startswith("its result 'amplify' reaches ")
    assert found.loss < 0.01
    assert [n.op_type for n in found.model.graph.node] == [
        "Cast",
        "Conv",
        "Cast",
        "Mul",
        "Mul",
        "Cast",
        "Sigmoid",
        "Cast",
    ]
    assert found.casts == 4
    types = {t.name: t.data_type for t in found.model.graph.initializer}
    assert types == {"w": F16, "gain": F32, "loss": F32}


@pytest.mark.parametrize(
    ("nodes", "constants", "kept"),
    [
        # Numbers near 4,096 are 4 apart in half precision.
        ([("Add", "x far", "shift"), ("Sub", "shift far", "back")], {"far": np.float32(4096)}, {"shift", "back"}),
        ([("Add", "x eps", "guard"), ("Div", "x guard", "y")], {"eps": np.float32(1e-12)}, {"guard"}),
        # A mean of 64 x 3 numbers up to 1,000 sums up 2e5 inside.
        ([("Mul", "x k", "large"), ("ReduceMean", "large", "mean"), ("Div", "mean k", "y")], {"k": np.float32(1000)}, {"mean"}),
        ([("Sigmoid", "x", "a"), ("Relu", "a", "y")], {}, set()),
    ],
)  # fmt: skip
def test_what_is_kept(nodes: list[tuple[str, str, str]], constants: dict[str, Any], kept: set[str]) -> None:
    found = halved(model(nodes, constants))
    assert {k.node for k in found.kept} == kept, found.kept
    assert found.loss <= 0.01
    if kept == {"shift", "back"}:
        assert all("alone in half precision it loses" in k.why for k in found.kept)


def test_a_branch_stays_in_single_precision_as_a_whole() -> None:
    """It overflows inside, and reads a value of half precision from outside."""
    text = """<ir_version: 9, opset_import: ["": 17]>
    g (float[1,3,8,8] x) => (float[1,3,8,8] y) <float k = {1e5}, float back = {1e-5}> {
        a = Sigmoid (x) zero = Constant <value = float {0}> () m = ReduceMax <keepdims = 0> (a) c = Greater (m, zero)
        b = If (c) <then_branch = t () => (float[1,3,8,8] s) { r = Mul (a, k) s = Mul (r, back) },
            else_branch = e () => (float[1,3,8,8] n) { n = Neg (a) }>
        y = Add (a, b) }"""
    found = halved(onnx.parser.parse_model(text))
    assert {kept.operator for kept in found.kept} == {"If", "Mul", "Neg"}
    assert found.loss < 0.01


def test_polyops_nodes_compute_in_half_and_are_not_inlined() -> None:
    rois = np.float32([[0, 0, 0, 4, 4], [0, 1, 1, 7, 6]])
    proto = model(
        [("Relu", "x", "a"), ("mmcv:MMCVRoiAlign", "a rois", "pooled"), ("Sigmoid", "pooled", "y")], {"rois": rois},
        pooled={"output_height": 2, "output_width": 2},
    )  # fmt: skip
    body = [helper.make_node("Identity", ["x"], ["y"])]
    imports = [helper.make_opsetid("", 17)]
    proto.functions.append(helper.make_function("mmcv", "MMCVRoiAlign", ["x", "rois"], ["y"], body, imports))
    ready = prepared(proto)
    assert [n.op_type for n in ready.graph.node] == ["Relu", "MMCVRoiAlign", "Sigmoid"]
    typed = with_types(halved(proto).model)
    kinds = {i.name: i.type.tensor_type.elem_type for i in typed.graph.value_info}
    node = next(n for n in nodes_of(typed) if n.op_type == "MMCVRoiAlign")
    assert kinds[node.input[0]] == kinds[node.output[0]] == F16


def test_models_that_cannot_be_halved() -> None:
    with pytest.raises(HalfError, match="expected a model in single precision, got weights in half precision"):
        prepared(halved(PLANTED).model)
    with pytest.raises(HalfError, match="empty, NaN or infinite"):
        halved(model([("Neg", "x", "a"), ("Sqrt", "a", "y")], {}))
    with pytest.raises(HalfError, match="expected opset 13 or newer, got 11"):
        prepared(model([("Relu", "x", "y")], {}, opset=11))


def test_command(program: str, tmp_path: Path) -> None:
    onnx.save(PLANTED, tmp_path / "a.onnx")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [program, *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment())

    done = run("convert", "a.onnx", "-o", "half.onnx", "--half", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["half"]
    assert [k["node"] for k in report["kept"]] == ["amplify", "attenuate"]
    assert (report["nodes_in_half"], report["casts"], report["of"]) == (2, 4, "outputs")
    assert [i.type.tensor_type.elem_type for i in onnx.load(tmp_path / "half.onnx").graph.input] == [F32]
    done = run("convert", "a.onnx", "-o", "half.xml", "--half", "--runtime", "openvino")
    assert done.returncode == 0, done.stderr
    assert "amplify" in done.stdout
    assert "in OpenVINO" in done.stdout
    assert (tmp_path / "half.xml").is_file()
    assert "expected --half" in run("convert", "a.onnx", "-o", "b.onnx", "--images", "photos").stderr
    onnx.save(model([("bar:Foo", "x", "y")], {}), tmp_path / "foo.onnx")
    assert "nobody provides bar::Foo" in run("convert", "foo.onnx", "-o", "b.onnx", "--half").stderr
    empty = onnx.ModelProto.FromString(PLANTED.SerializeToString())
    del empty.graph.node[:], empty.graph.output[:3]
    empty.graph.output.add().CopyFrom(empty.graph.input[0])
    onnx.save(empty, tmp_path / "empty.onnx")
    done = run("convert", "empty.onnx", "-o", "b.onnx", "--half")
    assert "empty.onnx: expected a model with nodes and outputs" in done.stderr


def test_engine(program: str, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    """TensorRT-RTX builds engines without a GPU. The nodes that stay compute in single precision in the engine, too."""
    if not (RUNTIME / "tensorrt_rtx_libs").is_dir():
        not_run("no engine was built: TensorRT-RTX is not installed")
        return
    onnx.save(PLANTED, tmp_path / "a.onnx")
    report = convert(program, tmp_path / "a.onnx", "--half")
    assert [kept["node"] for kept in report["half"]["kept"]] == ["amplify", "attenuate"]
    assert report["needs"]["precision"] == "fp16, but for 2 node(s) in fp32"
    assert (report["needs"]["inputs"]["x"]["type"], report["needs"]["outputs"]["y"]["type"]) == ("f32", "f32")
    precisions = {layer["name"]: layer["precision"] for layer in report["layers"]}
    assert {name: precisions[name] for name in ("conv", "amplify", "attenuate", "y")} == {
        "conv": "f16",
        "amplify": "f32",
        "attenuate": "f32",
        "y": "f16",
    }


def test_no_tensorrt(program: str, tmp_path: Path) -> None:
    """Is said before the calibration."""
    onnx.save(PLANTED, tmp_path / "a.onnx")
    done = subprocess.run(
        [program, "convert", "a.onnx", "-o", "a.engine", "--half"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=environment(POLYOP_TENSORRT="not_installed"),
    )  # fmt: skip
    assert done.returncode != 0
    assert "no TensorRT was found (tried not_installed)" in done.stderr
    assert "single precision" not in done.stdout
