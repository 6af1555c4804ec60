# SPDX-License-Identifier: Apache-2.0
"""The custom-op library in ONNX Runtime: types, shape inference, threads, errors, old versions."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from packaging.version import Version

import polyop
from tests.support.older_onnxruntimes import OLD, in_runtime
from tests.support.processes import ROOT, environment
from tests.support.single_node import model, run, session


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("threads", [1, 2])
def test_my_add_equals_numpy(dtype: type, threads: int) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((3, 1, 70001)).astype(dtype)
    b = rng.standard_normal((2, 1)).astype(dtype)
    (c,) = run("custom::my_add", {"a": a, "b": b}, threads=threads)
    want = (2 * a.astype(np.float64) + b.astype(np.float64)).astype(dtype)
    assert c.dtype == dtype
    np.testing.assert_allclose(c, want, rtol=2e-3 if dtype is np.float16 else 1e-6, atol=1e-6)


def test_shape_inference_keeps_symbols() -> None:
    a = np.zeros((2, 3, 4), np.float32)
    b = np.zeros(4, np.float32)
    proto = model("custom::my_add", {"a": a, "b": b}, shapes={"a": ("N", 3, "W"), "b": ("W",)})
    assert session(proto).get_outputs()[0].shape == ["N", 3, "W"]


def test_shape_inference_evaluates_attributes() -> None:
    x = np.zeros((1, 8, 10, 10), np.float32)
    rois = np.zeros((1, 5), np.float32)
    proto = model(
        "mmcv::MMCVRoiAlign",
        {"x": x, "rois": rois},
        attributes={"output_height": 7, "output_width": 5},
        shapes={"x": ("N", 8, "H", "W"), "rois": ("rois", 5)},
    )
    assert session(proto).get_outputs()[0].shape == ["rois", 8, 7, 5]


def test_unknown_rank_is_left_unknown() -> None:
    a = np.ones((2, 3), np.float32)
    proto = model("custom::my_add", {"a": a, "b": a}, shapes={"a": None, "b": None})
    (c,) = session(proto).run(None, {"a": a, "b": a})
    np.testing.assert_array_equal(c, 3 * a)


def boxes_and_scores() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    boxes, scores = rng.random((2, 50, 4), np.float32), rng.random((2, 3, 50), np.float32)
    boxes[..., 2:] += boxes[..., :2]
    return boxes, scores


def test_output_type_depends_on_the_rank() -> None:
    """One node name has two forms: MMCV's for ONNX Runtime outputs i64, its TensorRT plugin outputs i32."""
    boxes, scores = boxes_and_scores()
    (kept,) = run("mmcv::NonMaxSuppression", {"b": boxes[1], "s": scores[1, 2]}, iou_threshold=0.3)
    proto = model(
        "mmcv::NonMaxSuppression",
        {"b": boxes, "s": scores},
        attributes={"iou_threshold": 0.3, "max_output_boxes_per_class": 50},
        shapes={"b": ("B", "N", 4), "s": ("B", "C", "N")},
    )
    session_ = session(proto)
    assert (session_.get_outputs()[0].type, session_.get_outputs()[0].shape) == ("tensor(int32)", ["B*C*min(N, 50)", 3])
    (rows,) = session_.run(None, {"b": boxes, "s": scores})
    assert kept.dtype == np.int64
    assert rows.dtype == np.int32
    np.testing.assert_array_equal(rows[(rows[:, 0] == 1) & (rows[:, 1] == 2), 2], kept)


def test_data_dependent_sizes_reach_other_operators() -> None:
    """Slice's shape inference reads the extent of NMS's output."""
    boxes, scores = boxes_and_scores()
    proto = model("mmcv::NonMaxSuppression", {"b": boxes[0], "s": scores[0, 0]}, attributes={"iou_threshold": 0.9})
    for name, value in (("from", [0]), ("to", [3])):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value), name))
    proto.graph.node.append(onnx.helper.make_node("Slice", ["y", "from", "to"], ["first"]))
    proto.graph.output.append(onnx.ValueInfoProto(name="first"))
    kept, first = session(proto).run(None, {"b": boxes[0], "s": scores[0, 0]})
    np.testing.assert_array_equal(first, kept[:3])


def test_two_data_dependent_sizes_are_not_assumed_equal() -> None:
    boxes, scores = boxes_and_scores()
    proto = model("mmcv::NonMaxSuppression", {"b": boxes[0], "s": scores[0, 0]}, attributes={"iou_threshold": 0.9})
    proto.graph.node.append(
        onnx.helper.make_node("NonMaxSuppression", ["b", "s"], ["z"], domain="mmcv", iou_threshold=0.1)
    )
    proto.graph.output.append(onnx.ValueInfoProto(name="z"))
    session_ = session(proto)
    assert session_.get_outputs()[0].shape != session_.get_outputs()[1].shape
    many, few = session_.run(None, {"b": boxes[0], "s": scores[0, 0]})
    assert len(few) < len(many)


def test_output_type_with_unknown_rank() -> None:
    boxes, scores = boxes_and_scores()
    session_ = session(model("mmcv::NonMaxSuppression", {"b": boxes, "s": scores}, shapes={"b": None, "s": None}))
    assert session_.run(None, {"b": boxes[0], "s": scores[0, 0]})[0].dtype == np.int64
    with pytest.raises(InvalidArgument, match="the model must state the ranks"):
        session_.run(None, {"b": boxes, "s": scores})


def test_error_names_node_and_tensors() -> None:
    a = np.ones((2, 3), np.float32)
    proto = model("custom::my_add", {"a": a, "b": a}, shapes={"b": ("X", "Y")})
    with pytest.raises(InvalidArgument, match=r"custom::my_add \(node 'node'\): .*got 3 and 4"):
        session(proto).run(None, {"a": a, "b": np.ones((2, 4), np.float32)})


def test_session_survives_an_error() -> None:
    a = np.ones((2, 3), np.float32)
    s = session(model("custom::my_add", {"a": a, "b": a}, shapes={"b": ("X", "Y")}), threads=2)
    with pytest.raises(InvalidArgument):
        s.run(None, {"a": a, "b": np.ones((5, 4), np.float32)})
    np.testing.assert_array_equal(s.run(None, {"a": a, "b": a})[0], 3 * a)


def test_wrong_attribute_fails_at_session_creation() -> None:
    x = np.zeros((1, 1, 4, 4), np.float32)
    rois = np.zeros((1, 5), np.float32)
    for attributes, message in (
        ({"mode": "median"}, "'mode': expected one of {avg, max}, got median"),
        ({"output_height": 0}, "'output_height': expected a number in [1, 4096], got 0"),
        ({"output_height": "seven"}, "'output_height': expected int, got string seven"),
    ):
        with pytest.raises(Exception) as error:  # noqa: PT011 (its type differs between versions of ONNX Runtime)
            session(model("mmcv::MMCVRoiAlign", {"x": x, "rois": rois}, attributes=attributes))
        assert "mmcv::MMCVRoiAlign" in str(error.value)
        assert message in str(error.value)


def test_unsupported_type_fails_at_session_creation() -> None:
    a = np.ones(3, np.int32)
    with pytest.raises(Exception, match="my_add"):
        session(model("custom::my_add", {"a": a, "b": a}))


def test_library_can_be_registered_in_many_sessions() -> None:
    a = np.ones((2, 3), np.float32)
    sessions = [session(model("custom::my_add", {"a": a, "b": a})) for _ in range(5)]
    for s in sessions:
        np.testing.assert_array_equal(s.run(None, {"a": a, "b": a})[0], 3 * a)


def test_the_oldest_runtime_is_the_documented_one() -> None:
    version = in_runtime(OLD[0], "print(ort.__version__)").strip()
    assert version == OLD[0].name.removeprefix("onnxruntime-")
    if sys.version_info < (3, 13):  # newer Pythons have no older release
        oldest = re.search(r"onnxruntime>=([\d.]+)", (ROOT / "pyproject.toml").read_text())[1]
        assert version.startswith(oldest + ".")


EVERY_NODE = """
from tests.onnxruntime import test_exported_nodes as nodes
too_old = 0
for node in nodes.NODES:
    try:
        nodes.test_node_runs(node)
    except Exception as error:
        assert Version(ort.__version__) < Version("1.19"), (node.name, error)
        assert (words := node.refusal_before_1_19()) and words in str(error), (node.name, error)
        too_old += 1
print(len(nodes.NODES), too_old)
"""


@pytest.mark.parametrize("folder", OLD, ids=lambda folder: folder.name)
def test_every_node_runs_on_the_older_onnxruntimes(folder: Path) -> None:
    count, too_old = in_runtime(folder, "from packaging.version import Version\n" + EVERY_NODE).split()
    assert int(count) >= 48
    assert int(too_old) == (3 if Version(folder.name.removeprefix("onnxruntime-")) < Version("1.19") else 0)


@pytest.mark.parametrize("folder", OLD, ids=lambda folder: folder.name)
def test_runs_on_the_older_onnxruntimes(folder: Path) -> None:
    """Uses the same library file: threads, and a node name whose form depends on the rank of the inputs."""
    code = (
        "from tests.support import single_node;"
        "a = np.ones((2, 3), np.float32);"
        "c, = single_node.run('custom::my_add', {'a': a, 'b': a}, threads=2);"
        "assert (c == 3).all();"
        "b, s = np.zeros((1, 3, 4), np.float32), np.ones((1, 2, 3), np.float32);"
        "n = 'mmcv::NonMaxSuppression';"
        "forms = [{'b': b[0], 's': s[0, 0]}] + [{'b': b, 's': s}] * (ort.__version__ >= '1.19');"
        "types = [single_node.run(n, f)[0].dtype for f in forms];"
        "assert types == [np.int64, np.int32][:len(forms)], types;"
        "print('ran on', ort.__version__)"
    )
    assert in_runtime(folder, code).strip() == "ran on " + folder.name.removeprefix("onnxruntime-")


def test_every_isa_gives_the_same_result() -> None:
    """POLYOP_ISA selects the instruction set of a process."""
    code = (
        "import numpy as np; from tests.support import single_node;"
        "a = np.arange(100, dtype=np.float32);"
        "c, = single_node.run('custom::my_add', {'a': a, 'b': a[:1]}); assert (c == 2 * a).all()"
    )
    for isa in ("sse4", "avx2", "avx3", "nonsense"):
        result = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            env=environment(POLYOP_ISA=isa),
        )
        assert result.returncode == 0, result.stderr
        if isa == "nonsense":
            assert "ignoring POLYOP_ISA" in result.stderr


def test_paths() -> None:
    assert polyop.get_library_path() == polyop.get_onnxruntime_op_path()
    assert Path(polyop.get_onnxruntime_op_path()).is_file()
