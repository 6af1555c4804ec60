# SPDX-License-Identifier: Apache-2.0
"""polyop optimize --for tensorrt: deformable attention becomes NVIDIA's plugin node or polyop's, and the report names
what TensorRT refuses. TensorRT-RTX parses and builds the files where it is installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from polyop.attaching import ImageSteps, attach
from polyop.optimizing import optimize
from polyop.optimizing.patterns.refused_by_tensorrt import _MISSING
from tests.optimizing.test_optimizer import Pyramid, Second, Swapped, assert_same, pyramid_inputs
from tests.support.deformable_attention import ATTENTION, First, inputs, write
from tests.support.detectors import cells
from tests.support.detectors import write as write_detector
from tests.support.exported import nodes
from tests.support.processes import ROOT
from tests.support.single_node import session
from tests.support.tensorrt_rtx import HAS_PLUGINS, NO_ENGINE, build_all
from tests.support.yolo_child import given

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
    assert not {node.domain for node in onnx.load(after).graph.node} - {""}


def single(
    op: str, arrays: list[np.ndarray], opset: int = 20, outputs: int = 1, **attributes: object
) -> onnx.ModelProto:
    """Returns a model of one node. All inputs but the first are constants."""
    names = [f"in{i}" for i in range(len(arrays))]
    node = helper.make_node(op, names, [f"out{i}" for i in range(outputs)], name="it", **attributes)
    kind = helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("in0", kind, arrays[0].shape)],
        [helper.make_tensor_value_info("out0", kind, None)],
        [numpy_helper.from_array(array, name) for array, name in zip(arrays[1:], names[1:], strict=True)],
    )
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
    "reduction mul": single(
        "ScatterElements", [np.ones((4, 3), np.float32), ROWS, np.ones((2, 1), np.float32)], reduction="mul"
    ),
}
REWRITTEN = {
    "reduction add": single(
        "ScatterND", [np.ones((4, 3), np.float32), ROWS, np.ones((2, 3), np.float32)], reduction="add"
    ),
}
TAKEN = {
    "Resize": single("Resize", [IMAGE, np.empty(0, np.float32), SCALES], mode="cubic", cubic_coeff_a=-0.75),
    "ScatterND": single("ScatterND", [np.ones((4, 3), np.float32), ROWS, np.ones((2, 3), np.float32)]),
    "GridSample": single("GridSample", [IMAGE, np.zeros((1, 4, 5, 2), np.float32)]),
    "volumes": single("GridSample", [IMAGE[:, :, None], np.zeros((1, 2, 4, 5, 3), np.float32)]),
    "cubic": single(
        "Resize",
        [IMAGE, np.empty(0, np.float32), SCALES],
        mode="cubic",
        exclude_outside=1,
        coordinate_transformation_mode="pytorch_half_pixel",
    ),
}


def test_the_report_names_what_tensorrt_refuses(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    for name, model in REFUSED.items():
        *_, finding = optimize(model, target="tensorrt").findings
        assert not finding.replaced
        assert name in finding.why, finding.why
        assert finding.where == "it"
    for model in [*REWRITTEN.values(), *TAKEN.values()]:
        assert all(finding.replaced for finding in optimize(model, target="tensorrt").findings)
    assert set(_MISSING) - {"DeformConv", "DFT", "Multinomial"} <= set(REFUSED)
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    models = {**REFUSED, **REWRITTEN, **TAKEN}
    answers = build_all([{"model": model.SerializeToString()} for model in models.values()])
    for name, answer in zip(models, answers, strict=True):
        assert ("error" in answer) == (name not in TAKEN), (name, answer)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_the_report_names_roi_align(mode: str) -> None:
    rois = [np.array([[0, 0, 4, 4]], np.float32), np.array([0])]
    model = single("RoiAlign", [IMAGE, *rois], opset=16, output_height=2, output_width=2, mode=mode)
    (finding,) = optimize(model, target="tensorrt").findings
    assert not finding.replaced
    assert (finding.pattern, finding.where) == ("RoiAlign", "it")
    assert "TensorRT-RTX has no RoiAlign" in finding.why
    if mode == "avg":
        assert optimize(model, target="tensorrt-polyop").replaced["RoiAlign"] == 1


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


def suppression(node: str, attributes: dict, outputs: int, columns: int = 0, images: int | str = 2) -> onnx.ModelProto:
    """Returns a model of one node. columns: boxes are [images, 50, columns, 4] if it is not 0."""
    domain, _, op_type = node.rpartition("::")
    names = [f"out{i}" for i in range(outputs)]
    boxes = [images, 50, columns, 4] if columns else [images, 50, 4]
    real, integer = TensorProto.FLOAT, TensorProto.INT32
    kinds = (real, integer) if outputs == 2 else (integer, real, real, integer, integer)
    graph = helper.make_graph(
        [helper.make_node(op_type, ["boxes", "scores"], names, "it", domain=domain, **attributes)],
        "one",
        [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
            for n, s in (("boxes", boxes), ("scores", [images, 50, 3]))
        ],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(names, kinds, strict=False)],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(domain, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


EFFICIENT = {
    "score_threshold": 0.3,
    "iou_threshold": 0.4,
    "max_output_boxes": 20,
    "background_class": -1,
    "score_activation": 0,
    "box_coding": 0,
}
BATCHED = {"num_classes": 3, "topk": 10, "keep_topk": 15, "score_threshold": 0.3, "iou_threshold": 0.4, "clip_boxes": 0}


def test_suppression_of_other_plugins_becomes_nvidias(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    models = {
        "efficient": suppression("polyop::EfficientNMS_TRT", EFFICIENT, 4),
        "best of each class": suppression("mmdeploy::TRTBatchedNMS", BATCHED, 2, 1),
        "a box for each class": suppression("mmdeploy::TRTBatchedNMS", {**BATCHED, "background_label_id": 1}, 2, 3),
        "clipped": suppression("mmdeploy::TRTBatchedNMS", {**BATCHED, "topk": -1, "clip_boxes": 1}, 2, 1),
    }
    for name, model in models.items():
        report = optimize(model, tmp_path / f"{name}.onnx", target="tensorrt")
        assert dict(report.replaced) == {"batched suppression": 1}, f"{name}: {report}"
        assert report.differences == {"with polyop": 0}
        types = nodes(tmp_path / f"{name}.onnx")
        assert types["EfficientNMS_TRT"] == 1
        assert not any("::" in key for key in types)
        assert types["TopK"] == (name in ("best of each class", "a box for each class"))
    assert_builds([tmp_path / f"{name}.onnx" for name in models], not_run)


def test_suppression_that_nvidias_plugin_lacks_stays(tmp_path: Path) -> None:
    standard = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou"], ["kept"], "it")
    graph = helper.make_graph(
        [standard],
        "one",
        [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
            for n, s in (("boxes", [1, 9, 4]), ("scores", [1, 2, 9]))
        ],
        [helper.make_tensor_value_info("kept", TensorProto.INT64, [None, 3])],
        [numpy_helper.from_array(np.array([5]), "most"), numpy_helper.from_array(np.array([0.5], np.float32), "iou")],
    )
    cases = {
        "no output of indices": suppression("polyop::EfficientNMS_TRT", EFFICIENT, 5),
        "1 to 5000 rows, expected 6000": suppression("mmdeploy::TRTBatchedNMS", {**BATCHED, "keep_topk": 6000}, 2, 1),
        "scores below 0, expected -0.1": suppression(
            "mmdeploy::TRTBatchedNMS", {**BATCHED, "score_threshold": -0.1}, 2, 1
        ),
        "returns no indices; TensorRT has a layer for it": helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ),
    }
    for why, model in cases.items():
        (finding,) = optimize(model, target="tensorrt").findings
        assert not finding.replaced
        assert why in finding.why


def test_the_end_of_a_yolo_file(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    """Boxes by score, suppressed and padded to a fixed number of rows, as Ultralytics' exporter writes them."""
    subprocess.run([sys.executable, "-m", "tests.support.yolo_child", str(tmp_path)], cwd=ROOT, check=True)
    rows, after = {"rows": given().numpy()}, [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for name, file in zip(("plain", "agnostic"), after, strict=True):
        report = optimize(tmp_path / f"{name}.onnx", file, target="tensorrt", inputs=rows)
        assert dict(report.replaced) == {"batched suppression": 1}, str(report)
        assert len(report.findings) == 1
        types = nodes(file)
        assert types["EfficientNMS_TRT"] == 1
        assert types["NonMaxSuppression"] + types["NonZero"] + types["Pad"] == 0
        (node,) = [n for n in onnx.load(file).graph.node if n.op_type == "EfficientNMS_TRT"]
        values = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        assert (values["max_output_boxes"], values["class_agnostic"]) == (20, name == "agnostic")
        expected, got = (session(onnx.load(path)).run(None, rows)[0] for path in (tmp_path / f"{name}.onnx", file))
        assert 5 < np.count_nonzero(expected[0, :, 4]) <= 20
        np.testing.assert_array_equal(got, expected)
    assert_builds(after, not_run)
    for name, why in (("masks", "no output of indices"), ("two images", "expected boxes [1, B, 4]")):
        report = optimize(tmp_path / f"{name}.onnx", target="tensorrt")
        assert not report.replaced
        assert any(why in finding.why for finding in report.findings), str(report)


def test_a_file_with_an_attached_head(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    """Its function of EfficientNMS is removed, because no node calls it."""
    rows = np.zeros((cells((64, 64)), 6), np.float32)
    rows[5], rows[9] = (20, 24, 16, 8, 0, 0.9), (40, 40, 8, 8, 0.6, 0)
    detector = write_detector(tmp_path / "m.onnx", (64, 64), {"output0": rows.T[None]})
    photos = {"photo": [[1, 32, 32, 3], [1, 96, 128, 3], [1, 256, 256, 3]]}
    for image, shapes in ((None, None), (ImageSteps(), photos)):
        attach(detector, tmp_path / "app.onnx", image=image)
        assert onnx.load(tmp_path / "app.onnx").functions
        after = tmp_path / "trt.onnx"
        report = optimize(tmp_path / "app.onnx", after, target="tensorrt")
        assert dict(report.replaced) == {"batched suppression": 1}, str(report)
        assert not onnx.load(after).functions
        assert nodes(after)["EfficientNMS_TRT"] == 1
        assert_builds([after], not_run, shapes)


def test_domain_of_onnxruntimes_provider(tmp_path: Path) -> None:
    """A node whose name has another meaning there stays; a file in which nodes are only moved is written, too."""
    before, after = write(First(), inputs(), tmp_path / "before.onnx", "dynamo"), tmp_path / "after.onnx"
    for target, node in (("tensorrt", NVIDIAS), ("tensorrt-polyop", ATTENTION.partition("::")[2])):
        report = optimize(before, after, target=target, plugin_domain=True)
        assert (report.moved, dict(report.replaced)) == (1, {"deformable attention": 1}), str(report)
        assert nodes(after)[f"trt.plugins::{node}"] == 1
        assert_same(before, after, inputs())
    attributes = {"iou_threshold": 0.5, "offset": 0, "score_threshold": 0.1, "max_output_boxes_per_class": 0}
    ours = helper.make_node("NonMaxSuppression", ["b", "s"], ["kept"], "ours", domain="mmcv", **attributes)
    model = suppression("TRT::EfficientNMS_TRT", EFFICIENT, 4, images=1)
    model.graph.node.extend(
        [
            helper.make_node("Squeeze", ["boxes"], ["b"]),
            helper.make_node("ReduceMax", ["scores"], ["s"], axes=[0, 2], keepdims=0),
            ours,
        ]
    )
    model.graph.output.append(onnx.ValueInfoProto(name="kept"))
    model.opset_import.append(helper.make_opsetid("mmcv", 1))
    model.opset_import[0].version = 17
    report = optimize(model, after, target="tensorrt-polyop", plugin_domain=True)
    assert (report.moved, dict(report.replaced)) == (1, {}), str(report)
    assert nodes(after)["trt.plugins::EfficientNMS_TRT"] == nodes(after)["mmcv::NonMaxSuppression"] == 1


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
    assert "--plugins: expected --runtime tensorrt" in done.stderr
    done = polyop("-o", tmp_path / "other.onnx", "--domain", "trt.plugins")
    assert done.returncode == 2
    assert "--domain: expected --runtime tensorrt" in done.stderr
    assert not (tmp_path / "other.onnx").exists()
    done = polyop("-o", tmp_path / "other.onnx", "--for", "tensorrt", "--domain", "trt.plugins")
    assert done.returncode == 0, done.stderr
    assert "moved 1 node into the domain trt.plugins" in done.stdout
