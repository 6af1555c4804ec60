"""polyop optimize --for tensorrt: deformable attention becomes NVIDIA's plugin node or polyop's, and the report names
what TensorRT refuses. TensorRT-RTX parses and builds the files where it is installed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from polyop.optimizing import optimize
from polyop.optimizing.patterns.refused_by_tensorrt import _MISSING
from tests.optimize.test_optimize import Pyramid, Second, Swapped, assert_same, pyramid_inputs
from tests.support.deformable_attention import ATTENTION, First, inputs, write
from tests.support.exported import nodes
from tests.support.tensorrt_rtx import HAS_PLUGINS, NO_ENGINE, build_all

pytestmark = pytest.mark.filterwarnings("ignore")

NVIDIAS = "MultiscaleDeformableAttnPlugin_TRT"


def attention_node(path: Path) -> onnx.NodeProto:
    (node,) = [n for n in onnx.load(path).graph.node if n.op_type == NVIDIAS]
    return node


def assert_builds(paths: list[Path], not_run: Callable[[str], None], shapes: dict | None = None) -> None:
    """Builds engines of the files. polyop's plugin library has plugins with NVIDIA's names."""
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    for path, answer in zip(
        paths, build_all([{"model": p.read_bytes(), "shapes": shapes} for p in paths]), strict=True
    ):
        assert "error" not in answer, f"{path.name}: {answer['error']}"
        types = [layer["type"] for layer in answer["layers"]]
        assert types.count("PLUGIN_V3") == 1
        assert "GRID_SAMPLE" not in types


def test_every_variant_becomes_nvidias_node(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    variants = {
        "first": (First(), (3, 2)),
        "second": (Second([2, 2, 2]), (6,)),
        "unequal": (Second([3, 6, 1]), (10,)),
        "discrete": (Second([3, 6, 1], "discrete"), (10,)),
    }
    written = []
    for name, (module, points) in variants.items():
        for exporter in ("dynamo", "torchscript"):
            given = inputs(points=points)
            before = write(module, given, tmp_path / f"{name}-{exporter}.onnx", exporter)
            after = tmp_path / f"{name}-{exporter}-trt.onnx"
            report = optimize(before, after, target="tensorrt")
            assert dict(report.replaced) == {"deformable attention": 1}, str(report)
            model = onnx.load(after)
            assert not model.functions  # TensorRT's parser would prefer them to the plugin
            node = attention_node(after)
            assert (node.domain, len(node.input), len(node.attribute)) == ("", 5, 0)
            assert nodes(after)["GridSample"] + nodes(after)["GatherND"] == 0
            assert_same(before, after, given)
            written.append(after)
    assert_builds(written, not_run)


def test_types_of_sizes_are_nvidias(tmp_path: Path) -> None:
    given = inputs()
    before, after = write(First(), given, tmp_path / "before.onnx", "dynamo"), tmp_path / "after.onnx"
    optimize(before, after, target="tensorrt")
    node = attention_node(after)
    casts = {n.output[0]: n for n in onnx.load(after).graph.node if n.op_type == "Cast"}
    for name in node.input[1:3]:
        assert casts[name].attribute[0].i == TensorProto.INT32


def test_sizes_that_the_graph_computes(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    half = {2: torch.export.Dim.AUTO, 3: torch.export.Dim.AUTO}
    dynamic = {"a": half, "b": half, "locations": {}, "weights": {}}
    given = pyramid_inputs(12, 16)
    before, after = write(Pyramid(), given, tmp_path / "before.onnx", "dynamo", dynamic), tmp_path / "after.onnx"
    assert dict(optimize(before, after, target="tensorrt").replaced) == {"deformable attention": 1}
    for height, width in ((12, 16), (4, 30)):
        assert_same(before, after, pyramid_inputs(height, width))
    shapes = {
        "a": [[1, 32, 4, 4], [1, 32, 12, 16], [1, 32, 24, 32]],
        "b": [[1, 32, 2, 2], [1, 32, 6, 8], [1, 32, 12, 16]],
    }
    assert_builds([after], not_run, shapes)


def test_polyops_plugins(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    given = inputs()
    before, after = write(First(), given, tmp_path / "before.onnx", "dynamo"), tmp_path / "after.onnx"
    report = optimize(before, after, target="tensorrt-polyop")
    assert dict(report.replaced) == {"deformable attention": 1}
    assert nodes(after)[ATTENTION] == 1
    assert not onnx.load(after).functions
    assert_same(before, after, given)
    assert_builds([after], not_run)


def test_what_only_resembles_it_stays_and_the_report_says_why(tmp_path: Path) -> None:
    given = inputs(points=(2, 2))
    given["value"] = given["value"][:, :60]
    before, after = write(Swapped(), given, tmp_path / "before.onnx", "torchscript"), tmp_path / "after.onnx"
    report = optimize(before, after, target="tensorrt")
    (finding,) = [f for f in report.findings if f.pattern == "deformable attention"]
    assert not finding.replaced
    assert finding.why
    assert before.read_bytes() == after.read_bytes()


def single(
    op: str, arrays: list[np.ndarray], opset: int = 20, outputs: int = 1, **attributes: object
) -> onnx.ModelProto:
    """Returns a model of one node. All inputs but the first are constants."""
    names = [f"in{i}" for i in range(len(arrays))]
    node = helper.make_node(op, names, [f"out{i}" for i in range(outputs)], name="it", **attributes)
    kind = helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info("in0", kind, arrays[0].shape)],
        [helper.make_tensor_value_info("out0", kind, None)],
        [numpy_helper.from_array(array, name) for array, name in zip(arrays[1:], names[1:], strict=True)],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


IMAGE = np.random.default_rng(0).random((1, 3, 8, 8), np.float32)
SCALES = np.array([1, 1, 2, 2], np.float32)
ROWS = np.array([[0], [1]])
REFUSED = {
    "Det": single("Det", [np.eye(3, dtype=np.float32)[None] + 1]),
    "Unique": single("Unique", [np.arange(9, dtype=np.float32)]),
    "Col2Im": single("Col2Im", [np.ones((1, 27, 36), np.float32), np.array([8, 8]), np.array([3, 3])]),
    "CenterCropPad": single("CenterCropPad", [IMAGE, np.array([1, 3, 6, 6])]),
    "AffineGrid": single("AffineGrid", [np.ones((1, 2, 3), np.float32), np.array([1, 3, 8, 8])]),
    "BitShift": single("BitShift", [np.ones(3, np.uint8), np.ones(3, np.uint8)], direction="LEFT"),
    "MaxUnpool": single("MaxUnpool", [IMAGE, np.arange(192).reshape(1, 3, 8, 8)], kernel_shape=[2, 2], strides=[2, 2]),
    "antialias": single("Resize", [IMAGE, np.empty(0, np.float32), SCALES], mode="linear", antialias=1),
    "half_pixel_symmetric": single(
        "Resize", [IMAGE, np.empty(0, np.float32), SCALES], coordinate_transformation_mode="half_pixel_symmetric"
    ),
    "reduction add": single("ScatterND", [np.ones((4, 3), np.float32), ROWS, np.ones((2, 3), np.float32)], reduction="add"),
    "reduction mul": single(
        "ScatterElements", [np.ones((4, 3), np.float32), ROWS, np.ones((2, 1), np.float32)], reduction="mul"
    ),
}  # fmt: skip
TAKEN = {
    "Resize": single("Resize", [IMAGE, np.empty(0, np.float32), SCALES], mode="cubic", cubic_coeff_a=-0.75),
    "ScatterND": single("ScatterND", [np.ones((4, 3), np.float32), ROWS, np.ones((2, 3), np.float32)]),
    "GridSample": single("GridSample", [IMAGE, np.zeros((1, 4, 5, 2), np.float32)]),
}


def test_the_report_names_what_tensorrt_refuses(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    for name, model in REFUSED.items():
        (finding,) = optimize(model, target="tensorrt").findings
        assert not finding.replaced
        assert name in finding.why, finding.why
        assert finding.where == "it"
    for model in TAKEN.values():
        assert not optimize(model, target="tensorrt").findings
    assert set(_MISSING) - {"DeformConv", "DFT", "Multinomial"} <= set(REFUSED)
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    models = {**REFUSED, **TAKEN}
    answers = build_all([{"model": model.SerializeToString()} for model in models.values()])
    for name, answer in zip(models, answers, strict=True):
        assert ("error" in answer) == (name in REFUSED), (name, answer)


def test_deform_conv_becomes_polyops_plugin(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    rng = np.random.default_rng(0)
    arrays = [IMAGE, *(rng.random(s, np.float32) for s in ((2, 3, 3, 3), (1, 18, 6, 6), (2,), (1, 9, 6, 6)))]
    model, after = single("DeformConv", arrays, kernel_shape=[3, 3]), tmp_path / "after.onnx"
    for target, functions in (("onnxruntime", 1), ("tensorrt-polyop", 0)):
        report = optimize(model, after, target=target)
        assert dict(report.replaced) == {"DeformConv": 1}, str(report)
        assert len(onnx.load(after).functions) == functions
    assert nodes(after)["polyop::DeformConv"] == 1
    assert_builds([after], not_run)
    (finding,) = optimize(model, target="tensorrt").findings
    assert finding.why == "TensorRT has no DeformConv"


def test_command(program: str, tmp_path: Path) -> None:
    before = write(First(), inputs(), tmp_path / "before.onnx", "dynamo")

    def polyop(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [program, "optimize", before, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    done = polyop("-o", tmp_path / "after.onnx", "--for", "tensorrt")
    assert done.returncode == 0, done.stderr
    assert "replaced 1 of 1 found" in done.stdout
    assert "without polyop" not in done.stdout
    done = polyop("-o", tmp_path / "other.onnx", "--plugins", "polyop")
    assert done.returncode == 2
    assert "--plugins: expected --for tensorrt" in done.stderr
    assert not (tmp_path / "other.onnx").exists()
