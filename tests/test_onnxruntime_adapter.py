"""The custom-op library in ONNX Runtime: types, shape inference, threads, errors, old versions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from packaging.requirements import Requirement
from packaging.version import Version
from single_node import model, run, session

import polyop

ROOT = Path(__file__).resolve().parent.parent


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


def test_a_type_that_depends_on_the_rank() -> None:
    """One node name, two forms: MMCV's for ONNX Runtime gives i64, its TensorRT plugin's i32."""
    boxes, scores = boxes_and_scores()
    (kept,) = run("mmcv::NonMaxSuppression", {"b": boxes[1], "s": scores[1, 2]}, iou_threshold=0.3)
    proto = model(
        "mmcv::NonMaxSuppression",
        {"b": boxes, "s": scores},
        attributes={"iou_threshold": 0.3, "max_output_boxes_per_class": 50},
        shapes={"b": ("B", "N", 4), "s": ("B", "C", "N")},
    )
    made = session(proto)
    assert (made.get_outputs()[0].type, made.get_outputs()[0].shape) == ("tensor(int32)", ["B*C*min(N, 50)", 3])
    (rows,) = made.run(None, {"b": boxes, "s": scores})
    assert kept.dtype == np.int64
    assert rows.dtype == np.int32
    np.testing.assert_array_equal(rows[(rows[:, 0] == 1) & (rows[:, 1] == 2), 2], kept)


def test_sizes_that_only_the_kernel_finds_feed_other_operators() -> None:
    """Slice's own shape inference reads the extent of what NMS gives."""
    boxes, scores = boxes_and_scores()
    made = model("mmcv::NonMaxSuppression", {"b": boxes[0], "s": scores[0, 0]}, attributes={"iou_threshold": 0.9})
    for name, value in (("from", [0]), ("to", [3])):
        made.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value), name))
    made.graph.node.append(onnx.helper.make_node("Slice", ["y", "from", "to"], ["first"]))
    made.graph.output.append(onnx.ValueInfoProto(name="first"))
    kept, first = session(made).run(None, {"b": boxes[0], "s": scores[0, 0]})
    np.testing.assert_array_equal(first, kept[:3])


def test_two_sizes_of_one_name_are_not_taken_for_equal() -> None:
    boxes, scores = boxes_and_scores()
    made = model("mmcv::NonMaxSuppression", {"b": boxes[0], "s": scores[0, 0]}, attributes={"iou_threshold": 0.9})
    made.graph.node.append(
        onnx.helper.make_node("NonMaxSuppression", ["b", "s"], ["z"], domain="mmcv", iou_threshold=0.1)
    )
    made.graph.output.append(onnx.ValueInfoProto(name="z"))
    session_ = session(made)
    assert session_.get_outputs()[0].shape != session_.get_outputs()[1].shape
    many, few = session_.run(None, {"b": boxes[0], "s": scores[0, 0]})
    assert len(few) < len(many)


def test_a_type_that_depends_on_an_unknown_rank() -> None:
    boxes, scores = boxes_and_scores()
    made = session(model("mmcv::NonMaxSuppression", {"b": boxes, "s": scores}, shapes={"b": None, "s": None}))
    assert made.run(None, {"b": boxes[0], "s": scores[0, 0]})[0].dtype == np.int64
    with pytest.raises(InvalidArgument, match="the model must say the ranks"):
        made.run(None, {"b": boxes, "s": scores})


def test_error_names_node_tensor_wanted_and_got() -> None:
    a = np.ones((2, 3), np.float32)
    proto = model("custom::my_add", {"a": a, "b": a}, shapes={"b": ("X", "Y")})
    with pytest.raises(InvalidArgument, match=r"custom::my_add \(node 'node'\): .*3 against 4"):
        session(proto).run(None, {"a": a, "b": np.ones((2, 4), np.float32)})


def test_a_session_survives_an_error() -> None:
    a = np.ones((2, 3), np.float32)
    s = session(model("custom::my_add", {"a": a, "b": a}, shapes={"b": ("X", "Y")}), threads=2)
    with pytest.raises(InvalidArgument):
        s.run(None, {"a": a, "b": np.ones((5, 4), np.float32)})
    np.testing.assert_array_equal(s.run(None, {"a": a, "b": a})[0], 3 * a)


def test_a_bad_attribute_fails_when_the_session_is_made() -> None:
    x = np.zeros((1, 1, 4, 4), np.float32)
    rois = np.zeros((1, 5), np.float32)
    for attributes, message in (
        ({"mode": "median"}, "'mode' is median, wanted one of {avg, max}"),
        ({"output_height": 0}, "'output_height' is 0, wanted a number in"),
        ({"output_height": "seven"}, "'output_height' is the string seven, wanted int"),
    ):
        with pytest.raises(Exception) as error:  # noqa: PT011 (its type differs between versions of ONNX Runtime)
            session(model("mmcv::MMCVRoiAlign", {"x": x, "rois": rois}, attributes=attributes))
        assert "mmcv::MMCVRoiAlign" in str(error.value)
        assert message in str(error.value)


def test_an_unsupported_type_fails_when_the_session_is_made() -> None:
    a = np.ones(3, np.int32)
    with pytest.raises(Exception, match="my_add"):
        session(model("custom::my_add", {"a": a, "b": a}))


def test_the_library_can_be_registered_in_many_sessions() -> None:
    a = np.ones((2, 3), np.float32)
    sessions = [session(model("custom::my_add", {"a": a, "b": a})) for _ in range(5)]
    for s in sessions:
        np.testing.assert_array_equal(s.run(None, {"a": a, "b": a})[0], 3 * a)


def older_runtimes() -> list[Path]:
    """The folders of .deps/ that requirements/onnxruntime-*.txt ask for, the oldest first."""
    wanted = set()
    for file in (ROOT / "requirements").glob("onnxruntime-*.txt"):
        lines = (line.split("#")[0].strip() for line in file.read_text().splitlines())
        requirements = [Requirement(line) for line in lines if line.startswith("onnxruntime")]
        wanted |= {str(r.specifier).lstrip("=") for r in requirements if r.marker is None or r.marker.evaluate()}
    return [ROOT / ".deps" / f"onnxruntime-{version}" for version in sorted(wanted, key=Version)]


OLD = older_runtimes()


def in_runtime(folder: Path, code: str) -> str:
    """What the code prints in a process whose ONNX Runtime is the one in the folder; it must not fail."""
    assert folder.is_dir(), f"{folder} is missing: run `make setup`"
    prologue = "import sys; sys.path[:0] = sys.argv[1:]; import numpy as np, onnxruntime as ort;"
    command = [sys.executable, "-c", prologue + code, str(folder), str(ROOT / "tests")]
    environment = {**os.environ, "PYTHONPATH": ""}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_oldest_is_the_one_that_users_are_told_of() -> None:
    version = in_runtime(OLD[0], "print(ort.__version__)").strip()
    assert version == OLD[0].name.removeprefix("onnxruntime-")
    if sys.version_info < (3, 13):  # there is no older one for newer Pythons
        oldest = re.search(r"onnxruntime>=([\d.]+)", (ROOT / "pyproject.toml").read_text())[1]
        assert version.startswith(oldest + ".")


EVERY_NODE = """
import test_exported_nodes as nodes
too_old = 0
for node in nodes.NODES:
    try:
        nodes.test_the_node_runs(node)
    except Exception as error:
        # An output whose type depends on the rank of inputs has the type of the other rank there, and says so.
        ranks = node.name == "mmcv::NonMaxSuppression" and node.inputs[0].ndim == 3
        assert ranks and Version(ort.__version__) < Version("1.19"), (node, error)
        assert "ONNX Runtime before 1.19 does not take it from the ranks" in str(error), error
        too_old += 1
print(len(nodes.NODES), too_old)
"""


@pytest.mark.parametrize("folder", OLD, ids=lambda folder: folder.name)
def test_every_node_runs_on_the_older_onnxruntimes(folder: Path) -> None:
    count, too_old = in_runtime(folder, "from packaging.version import Version\n" + EVERY_NODE).split()
    assert int(count) >= 48
    assert int(too_old) == (Version(folder.name.removeprefix("onnxruntime-")) < Version("1.19"))


@pytest.mark.parametrize("folder", OLD, ids=lambda folder: folder.name)
def test_runs_on_the_older_onnxruntimes(folder: Path) -> None:
    """The same library file: threads, and one node name whose form the rank of the inputs chooses."""
    code = (
        "import single_node;"
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


def test_every_isa_gives_the_same_answer() -> None:
    """POLYOP_ISA forces the instruction set for a whole process."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import single_node, numpy as np;"
        "a = np.arange(100, dtype=np.float32);"
        "c, = single_node.run('custom::my_add', {'a': a, 'b': a[:1]}); assert (c == 2 * a).all()"
    )
    for isa in ("sse4", "avx2", "avx3", "nonsense"):
        result = subprocess.run(
            [sys.executable, "-c", code, str(ROOT / "tests")],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "POLYOP_ISA": isa},
        )
        assert result.returncode == 0, result.stderr
        if isa == "nonsense":
            assert "POLYOP_ISA is ignored" in result.stderr


def test_paths() -> None:
    assert polyop.get_library_path() == polyop.get_onnxruntime_op_path()
    assert Path(polyop.get_onnxruntime_op_path()).is_file()
