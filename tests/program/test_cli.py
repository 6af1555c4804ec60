# SPDX-License-Identifier: Apache-2.0
"""The program `polyop` runs, inspects and explains; every error says what to do next."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from PIL import Image

from polyop import get_onnxruntime_op_path
from tests.support.processes import ROOT, operator_folders
from tests.support.single_node import model

OK, FAILED, USAGE, BAD_FILE, NOT_PROVIDED, NO_RUNTIME = range(6)


@pytest.fixture
def polyop(program: Path, tmp_path: Path):
    """Runs the program in a temporary folder; returns (exit code, stdout, stderr)."""

    def run(*arguments: object, env: dict[str, str] | None = None) -> tuple[int, str, str]:
        command = [str(program), *map(str, arguments)]
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=tmp_path, env=env, timeout=120
        )
        return result.returncode, result.stdout, result.stderr

    return run


@pytest.fixture
def add(tmp_path: Path) -> Path:
    """Writes a model of custom::my_add with dynamic extents."""
    a = np.zeros((2, 3), np.float32)
    path = tmp_path / "add.onnx"
    onnx.save(model("custom::my_add", {"a": a, "b": a}, ["c"], shapes={"a": ("N", "M"), "b": ("M",)}), path)
    return path


def image_model(
    path: Path, shape: list[object], kind: int = TensorProto.FLOAT, props: dict[str, str] | None = None
) -> Path:
    """Writes the identity on images, with standard operators."""
    value = [helper.make_tensor_value_info(name, kind, shape) for name in ("input", "output")]
    graph = helper.make_graph([helper.make_node("Identity", ["input"], ["output"])], "g", value[:1], value[1:])
    model_ = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model_, props or {})
    onnx.save(model_, path)
    return path


def test_names_do_not_control_the_terminal(polyop, tmp_path: Path) -> None:
    """Names in a model may have control sequences; JSON has the same names."""
    name = "y\x1b]0;title\x07\n\x9b2J"
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in ("x", name)]
    nodes = [helper.make_node("Identity", ["x"], [name]), helper.make_node("Odd\x1b[2J", ["x"], ["z"], domain="own")]
    for count, file in ((1, "named.onnx"), (2, "odd.onnx")):
        graph = helper.make_graph(nodes[:count], "g", value[:1], value[1:])
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / file)
    shown = "y\\u001b]0;title\\u0007\\u000a\\u009b2J"
    for words in (
        ("run", "named.onnx", "-i", "x=zeros"),
        ("inspect", "named.onnx"),
        ("verify", "named.onnx"),
        ("run", "named.onnx", "-i", "x=zeros", "-o", "none=a.npy"),
        ("portable", "odd.onnx", "-o", "p.onnx"),
        ("inspect", "odd.onnx"),
        ("optimize", "odd.onnx", "-o", "o.onnx"),
    ):
        _, out, err = polyop(*words)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", out + err), (words, out, err)
        assert not re.search(r"^\\u009b", out + err, re.MULTILINE), (words, out, err)
        assert ("Odd\\u001b[2J" if "odd.onnx" in words else "y\\u001b]0;title") in out + err, (words, out, err)
    assert shown in polyop("inspect", "named.onnx")[1]
    assert json.loads(polyop("run", "named.onnx", "-i", "x=zeros", "--json")[1])["outputs"][0]["name"] == name


def test_an_interruption_keeps_the_file_before(program: str, tmp_path: Path) -> None:
    """The system ends the program in the middle of its output."""
    path = image_model(tmp_path / "m.onnx", [1, 1, "h", "w"])
    for name in ("out.npy", "out.npz", "out.png"):
        (tmp_path / name).write_bytes(b"before")
        words = [program, "run", path, "-i", "input=random", "--shape", "input=1x1x100x100", "-o", name]
        limited = ["bash", "-c", 'ulimit -f 1; exec "$@"', "bash", *map(str, words)]
        assert subprocess.run(limited, cwd=tmp_path, capture_output=True, check=False).returncode != 0
        assert (tmp_path / name).read_bytes() == b"before"


# ---- run -------------------------------------------------------------------------------------------


def test_run_on_npy_npz_and_numbers(polyop, add: Path, tmp_path: Path) -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "a.npy", a)
    np.savez(tmp_path / "in.npz", a=a, b=np.ones(3, np.float32))
    np.savez_compressed(tmp_path / "packed.npz", a=np.asfortranarray(a), b=np.ones(3, np.float64))
    for inputs in (["-i", "a=a.npy", "--set", "b=1,1,1"], ["-i", "in.npz"], ["-i", "packed.npz"]):
        code, out, err = polyop("run", add, *inputs, "-o", "c=c.npy", "-o", "all.npz", "--threads", 1)
        assert code == OK, err
        assert "f32[2, 3]" in out
        np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), 2 * a + 1)
        np.testing.assert_array_equal(np.load(tmp_path / "all.npz")["c"], 2 * a + 1)


def test_run_writes_a_json_report(polyop, add: Path) -> None:
    code, out, _ = polyop("run", add, "-i", "a=random", "--shape", "a=2x3", "--set", "b=1,2,3", "--repeat", 3, "--json")
    report = json.loads(out)
    assert code == OK
    assert report["outputs"][0] == {"name": "c", "dtype": "f32", "shape": [2, 3], "file": ""}
    assert len(report["run_seconds"]) == 3


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.UINT8, TensorProto.FLOAT16])
def test_images_are_read_and_written_without_loss(polyop, tmp_path: Path, layout: str, kind: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "in.png")
    shape = ["N", 3, "H", "W"] if layout == "NCHW" else ["N", "H", "W", 3]
    path = image_model(tmp_path / "id.onnx", shape, kind)
    code, _, err = polyop("run", path, "-i", "input=in.png", "-o", "output=out.png", "-o", "output=out.npy")
    assert code == OK, err
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "out.png")), pixels)
    tensor = np.load(tmp_path / "out.npy")
    assert tensor.shape == ((1, 3, 5, 7) if layout == "NCHW" else (1, 5, 7, 3))
    assert tensor.max() <= (255 if kind == TensorProto.UINT8 else 1)


def test_images_follow_the_models_metadata_and_the_options(polyop, tmp_path: Path) -> None:
    Image.new("RGB", (4, 3), (255, 0, 0)).save(tmp_path / "red.png")
    note = json.dumps({"layout": "NCHW", "range": [-1, 1], "color": "BGR"})
    path = image_model(tmp_path / "id.onnx", [1, 3, "H", "W"], props={"polyop.image.input": note})
    assert polyop("run", path, "-i", "red.png", "-o", "out.npy")[0] == OK
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy")[0, :, 0, 0], [-1, -1, 1])
    assert polyop("run", path, "-i", "red.png", "-o", "out.npy", "--range", "0,255", "--color", "RGB")[0] == OK
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy")[0, :, 0, 0], [255, 0, 0])


def test_jpeg(polyop, tmp_path: Path) -> None:
    Image.new("RGB", (32, 16), (10, 200, 90)).save(tmp_path / "in.jpg", quality=95)
    path = image_model(tmp_path / "id.onnx", [1, 3, "H", "W"])
    assert polyop("run", path, "-i", "in.jpg", "-o", "out.jpg")[0] == OK
    got = np.asarray(Image.open(tmp_path / "out.jpg")).astype(int)
    assert np.abs(got - [10, 200, 90]).max() < 6


def test_a_gray_model_accepts_a_colour_image(polyop, tmp_path: Path) -> None:
    Image.new("RGB", (4, 3), (255, 255, 255)).save(tmp_path / "white.png")
    path = image_model(tmp_path / "id.onnx", [1, 1, "H", "W"])
    assert polyop("run", path, "-i", "white.png", "-o", "out.npy")[0] == OK
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), np.ones((1, 1, 3, 4)), atol=1e-6)


def test_the_isa_can_be_selected(polyop, add: Path) -> None:
    inputs = ("-i", "a=zeros", "--shape", "a=1x3", "--set", "b=1,2,3")
    code, out, _ = polyop("run", add, *inputs, "--isa", "sse4")
    assert code == OK
    assert "sse4" in out
    code, _, err = polyop("run", add, *inputs, "--isa", "mmx")
    assert code == USAGE
    assert "expected an instruction set" in err


def test_files_need_no_option(polyop, add: Path, tmp_path: Path) -> None:
    """A file is the value of the only input, an image of the only one of its shape; NAME=FILE names one."""
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a=b.png")
    path = image_model(tmp_path / "id.onnx", [1, 3, "H", "W"])
    code, _, err = polyop("run", path, "a=b.png", "-o", "out.png")
    assert code == OK, err
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "out.png")), pixels)
    onnx.save(two_inputs(), tmp_path / "two.onnx")
    assert polyop("run", "two.onnx", "a=b.png", "--set", "factor=2")[0] == OK
    np.save(tmp_path / "a.npy", np.zeros((2, 3), np.float32))
    for command, *words in (("run",), ("verify",), ("bench", "--repeat", 1, "--threads", "1")):
        code, _, err = polyop(command, add, *words, "a=a.npy", "--set", "b=1,2,3")
        assert code == OK, err


def two_inputs() -> onnx.ModelProto:
    """Returns an image times a number."""
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, "h", "w"]),
              helper.make_tensor_value_info("factor", TensorProto.FLOAT, [1]),
              helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, "h", "w"])]  # fmt: skip
    graph = helper.make_graph([helper.make_node("Mul", ["x", "factor"], ["y"])], "g", values[:2], values[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_several_files_have_a_run_each(polyop, tmp_path: Path) -> None:
    path = image_model(tmp_path / "id.onnx", [1, 3, "H", "W"])
    for width in (3, 5):
        Image.new("RGB", (width, 2)).save(tmp_path / f"{width}.png")
    code, out, err = polyop("run", path, "3.png", "5.png", "--json")
    assert code == OK, err
    runs = json.loads(out)["runs"]
    assert [(r["inputs"][0]["source"], r["outputs"][0]["shape"]) for r in runs] == [
        ("3.png", [1, 3, 2, 3]),
        ("5.png", [1, 3, 2, 5]),
    ]
    code, out, _ = polyop("run", path, "3.png", "5.png")
    assert (code, "5.png\n" in out) == (OK, True)
    code, _, err = polyop("run", path, "3.png", "5.png", "-o", "out.png")
    assert (code, "--output: expected one file of an input, got 2" in err, "polyop batch" in err) == (USAGE, True, True)
    code, _, err = polyop("run", path, ".")
    assert (code, "polyop batch" in err) == (USAGE, True)


def test_times_after_a_warm_up(polyop, add: Path) -> None:
    given = ("-i", "a=zeros", "--shape", "a=2x3", "--set", "b=1,2,3")
    code, out, err = polyop("run", add, *given, "--repeat", 5)
    assert code == OK, err
    assert re.search(r"first run .*, min .*, median .*, p90 .*, p99 .* of 5;", out)
    code, out, _ = polyop("run", add, *given, "--warmup", 2, "--repeat", 5)
    assert (code, "first run" in out, " of 5;" in out) == (OK, False, True)
    report = json.loads(polyop("run", add, *given, "--seconds", 0.05, "--json")[1])
    assert sum(report["run_seconds"]) >= 0.05
    report = json.loads(polyop("bench", add, *given, "--repeat", 7, "--threads", 1, "--json")[1])
    assert report["runs"][0]["count"] == 7


def test_an_execution_provider_runs_the_model(polyop, add: Path) -> None:
    given = ("-i", "a=zeros", "--shape", "a=2x3", "--set", "b=1,2,3", "--provider", "cpu")
    code, out, err = polyop("run", add, *given, "--warmup", 1, "--repeat", 3, "-o", "c.npy")
    assert code == OK, err
    assert re.search(r" of 3; ONNX Runtime [\d.]+, CPUExecutionProvider", out)
    assert "CPUExecutionProvider ran 1 of 1 node(s)" in out
    np.testing.assert_array_equal(np.load(add.parent / "c.npy"), [[1, 2, 3]] * 2)
    code, out, err = polyop("bench", add, *given, "--repeat", 3, "--threads", 1, "--layers")
    assert code == OK, err
    assert "CPUExecutionProvider" in out
    assert "my_add" in out
    code, _, err = polyop("run", add, *given[:-1], "nowhere")
    assert (code, "provider 'nowhere'" in err) == (NO_RUNTIME, True)
    code, _, err = polyop("run", add, *given[:-1], "cpu:1")
    assert (code, "only devices of cuda" in err) == (FAILED, True)
    code, _, err = polyop("run", add, *given, "--runtime", "openvino")
    assert (code, "--provider cpu: expected a model that runs in ONNX Runtime" in err) == (USAGE, True)


def test_files_in_onnxruntimes_own_format(polyop, add: Path, tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.register_custom_ops_library(get_onnxruntime_op_path())
    options.optimized_model_filepath = str(tmp_path / "add.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    ort.InferenceSession(str(add), options, providers=["CPUExecutionProvider"])
    given = ("-i", "a=zeros", "--shape", "a=2x3", "--set", "b=1,2,3")
    for provider in ((), ("--provider", "cpu")):
        code, _, err = polyop("run", "add.ort", *given, *provider, "-o", "c.npy")
        assert code == OK, err
        np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), [[1, 2, 3]] * 2)
    code, _, err = polyop("bench", "add.ort", *given, "--repeat", 1, "--threads", 1, "--against", add)
    assert code == OK, err
    for command in ("inspect", "verify"):
        code, _, err = polyop(command, "add.ort")
        assert (code, "expected an ONNX file, got one in ONNX Runtime's own format" in err) == (BAD_FILE, True)
    assert polyop("run", "none.ort")[0] == BAD_FILE


# ---- errors of run ---------------------------------------------------------------------------------


def test_wrong_names_and_values(polyop, add: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3), np.float32))
    cases = [
        (["-i", "aa=a.npy"], "has no input 'aa'", "a: float32[N, M]"),
        (["-i", "aa=zeros", "--onnxruntime", "none.so"], "has no input 'aa'", "did you mean 'a'"),
        (["-i", "a=a.npy"], "no value for b: f32[M]", "--set"),
        (["-i", "a.npy"], "several inputs", "NAME=a.npy"),
        (["-i", "a=random", "--set", "b=1"], "not fixed", "--shape a="),
        (["-i", "a=a.npy", "--set", "b=1,x,3"], "'x' is not a number", ""),
        (["-i", "a=a.txt", "--set", "b=1"], "unknown kind", ".npy"),
        (["-i", "b=a.npy", "--set", "a=1"], "input 'b': expected f32[M]", ""),
        (["-i", "a=a.npy", "--set", "b=1,2,3", "-o", "d=x.npy"], "has no output 'd'", "c: f32"),
        (["-i", "a=a.npy", "--set", "b=1,2,3", "-o", "c=x.txt"], "unknown kind", ".npz"),
        (["--threads", "0"], "'0' is not an integer in [1 - 1024]", "--help"),
        (["-i", "a=random", "--shape", "a=nanx3"], "expected an extent, got 'nan'", "1x3x224x224"),
        (["-i", "a=random", "--shape", "a=-1"], "expected an extent, got '-1'", ""),
        (["-i", "a=random", "--shape", "a=2x3x4"], "expected f32[N, M], got [2, 3, 4] from --shape", ""),
        (["-i", "a=random", "--shape", "a=3000000000x3000000000"], "this machine has", ""),
        (["-i", "a=random", "--shape", "aa=2x3"], "has no input 'aa'", "did you mean 'a'"),
        (["-i", "a=random", "--shape", "2x3"], "NAME= is missing", ""),
        (["-i", "a=a.npy", "--set", "b=1e39,0,0"], "expected a value of f32, got '1e39'", ""),
        (["-i", "a=a.npy", "--set", "b=1,2,"], "'' is not a number", ""),
        (["--thread", "2"], "polyop run has no option '--thread'", "did you mean '--threads'?"),
        (["--nonsense"], "--nonsense", "--help"),
    ]
    for arguments, message, hint in cases:
        code, _, err = polyop("run", add, *arguments)
        assert code == USAGE, (arguments, err)
        assert message in err
        assert hint in err


def test_a_missing_input_lists_all_inputs(polyop, add: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3), np.float32))
    code, _, err = polyop("run", add, "-i", "a=a.npy")
    assert code == USAGE
    rows = [line.split() for line in err.splitlines()]
    assert ["input", "type", "given"] in rows
    assert ["a", "f32[N,", "M]", "a.npy"] in rows
    assert ["b", "f32[M]", "nothing"] in rows


def test_integers_are_used_as_they_are(polyop, tmp_path: Path) -> None:
    path = image_model(tmp_path / "id.onnx", [3], TensorProto.INT64)
    exact = [2**63 - 1, -(2**63), 2**53 + 1]
    code, _, err = polyop("run", path, "--set", "input=" + ",".join(map(str, exact)), "-o", "out.npy")
    assert code == OK, err
    assert np.load(tmp_path / "out.npy").tolist() == exact
    for kind, wrong in ((TensorProto.INT64, "1.5"), (TensorProto.UINT8, "256"), (TensorProto.INT8, "-129"),
                        (TensorProto.INT64, "9223372036854775808"), (TensorProto.INT32, "nan"),
                        (TensorProto.BOOL, "2")):  # fmt: skip
        path = image_model(tmp_path / "id.onnx", [3], kind)
        code, _, err = polyop("run", path, "--set", f"input=0,1,{wrong}")
        assert code == USAGE
        assert f", got '{wrong}'" in err


# Texts where the program expects a number.
NO_NUMBERS = ["nan", "inf", "-inf", "-1", "0", "1e400", "1e-400", "99999999999999999999", "-9223372036854775809", "0x10",
              "010", "", " ", "1x", "1.5", "1,,2", "1,2", ",", "2147483648", "4294967297", "--", "=", "1e5",
              "\u0663"]  # fmt: skip
# Parts of messages of the C++ library or of other libraries.
RAW = (
    "std::",
    "stod",
    "stoi",
    "stol",
    "basic_string",
    "json.exception",
    "vector",
    "bad_alloc",
    "what():",
    "Conversion",
)


def where_numbers_stand() -> list[tuple[str, list[str]]]:
    run, verify = ["run", "add.onnx", "-i", "a=random"], ["verify", "add.onnx", "--shape", "a=2x3"]
    set_b, bench = ["--set", "b=1,2,3"], ["bench", "add.onnx", "--shape", "a=2x3", "--shape", "b=3"]
    return [
        ("--threads", [*run, "--shape", "a=2x3", *set_b, "--threads", "{}"]),
        ("--repeat", [*run, "--shape", "a=2x3", *set_b, "--repeat", "{}"]),
        ("--set", [*run, "--shape", "a=2x3", "--set", "b=1,{},3"]),
        ("--shape", [*run, *set_b, "--shape", "a={}x3"]),
        ("--range", [*run, *set_b, "--shape", "a=2x3", "-i", "a=in.png", "--range=0,{}"]),
        ("--rtol", [*verify, *set_b, "--rtol", "{}"]),
        ("--atol", [*verify, *set_b, "--atol", "{}"]),
        ("--reference threads", [*verify, *set_b, "--reference", "threads={}"]),
        ("verify --set", [*verify, "--set", "b={}"]),
        ("bench --threads", [*bench, "--seconds", "0.01", "--threads", "{}"]),
        ("bench --seconds", [*bench, "--threads", "1", "--seconds", "{}"]),
    ]


@pytest.mark.parametrize(("option", "command"), where_numbers_stand(), ids=lambda value: str(value).split("'")[0])
def test_any_text_for_a_number_gives_a_result_or_a_clear_error(
    polyop, add: Path, tmp_path: Path, option: str, command: list[str]
) -> None:
    Image.new("RGB", (3, 2)).save(tmp_path / "in.png")
    for text in NO_NUMBERS:
        if option == "bench --seconds" and text in ("010", "1.5", "1,2"):  # valid, and slow
            continue
        code, out, err = polyop(*(word.replace("{}", text) for word in command))
        assert code in (OK, FAILED, USAGE), (text, code, err)
        assert not any(raw in err for raw in RAW), (text, err)
        if code == OK:
            assert out
            continue
        if code == USAGE:
            assert err.startswith("polyop: error: "), (text, err)
            assert len(err.strip()) > len("polyop: error: "), text
        assert "terminate" not in err


def test_an_operator_with_a_very_long_name(polyop) -> None:
    code, _, err = polyop("new", "a" * 100_000)
    assert code == USAGE
    assert "more than 100 characters" in err


def test_an_error_of_the_model_names_operator_and_sizes(polyop, add: Path) -> None:
    code, _, err = polyop("run", add, "-i", "a=zeros", "--shape", "a=2x3", "--set", "b=1,2,3,4")
    assert code == FAILED
    assert "custom::my_add" in err
    assert "got 3 and 4" in err


def test_unknown_operator(polyop, tmp_path: Path) -> None:
    x = np.zeros((1, 1, 2, 2), np.float32)
    path = tmp_path / "unknown.onnx"
    onnx.save(model("nobody::Frobnicate", {"x": x}), path)
    code, _, err = polyop("run", path, "-i", "zeros")
    assert code == NOT_PROVIDED
    assert "nobody::Frobnicate" in err
    assert "polyop inspect" in err


def test_missing_onnxruntime(polyop, add: Path, tmp_path: Path) -> None:
    (tmp_path / "not.so").write_bytes(b"not a library")
    code, _, err = polyop("run", add, "-i", "a=zeros", "--onnxruntime", "not.so")
    assert code == NO_RUNTIME
    assert "pip install onnxruntime" in err


def damaged(tmp_path: Path) -> list[tuple[str, bytes]]:
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 256, (40, 40, 3), np.uint8)).save(tmp_path / "ok.png")
    Image.fromarray(rng.integers(0, 256, (40, 40, 3), np.uint8)).save(tmp_path / "ok.jpg")
    np.save(tmp_path / "ok.npy", np.zeros((1, 3, 8, 8), np.float32))
    np.savez(tmp_path / "ok.npz", input=np.zeros((1, 3, 8, 8), np.float32))
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    read = {name: (tmp_path / name).read_bytes() for name in ("ok.png", "ok.jpg", "ok.npy", "ok.npz", "object.npy")}
    huge = read["ok.npy"].replace(b"(1, 3, 8, 8)", b"(9999999999,)")
    overflow = read["ok.npy"].replace(b"(1, 3, 8, 8), }", b"(9999999999,9999999999,9,9),}"[:15])
    return [
        ("truncated.png", read["ok.png"][: len(read["ok.png"]) // 2]),
        ("truncated.jpg", read["ok.jpg"][: len(read["ok.jpg"]) // 2]),
        ("text.png", b"this is no image"),
        ("empty.png", b""),
        ("truncated.npy", read["ok.npy"][:200]),
        ("short.npy", read["ok.npy"][:9]),
        ("untyped.npy", read["ok.npy"].replace(b"'descr': '<f4', ", b" " * 16)),
        ("unshaped.npy", read["ok.npy"].replace(b"'shape': (1, 3, 8, 8), ", b" " * 23)),
        ("negative.npy", read["ok.npy"].replace(b"(1, 3, 8, 8)", b"(1,-3, 8, 8)")),
        ("twice.npy", read["ok.npy"].replace(b"'fortran_order': False", b"'descr':'|u1','descr':")),
        ("huge.npy", huge),
        ("overflow.npy", overflow),
        ("object.npy", read["object.npy"]),
        ("endian.npy", read["ok.npy"].replace(b"<f4", b">f4")),
        ("truncated.npz", read["ok.npz"][: len(read["ok.npz"]) // 2]),
        ("text.npz", b"PK but not really"),
        ("empty.npy", b""),
    ]


def test_damaged_inputs(polyop, tmp_path: Path) -> None:
    path = image_model(tmp_path / "id.onnx", [1, 3, "H", "W"])
    for name, content in damaged(tmp_path):
        (tmp_path / name).write_bytes(content)
        code, _, err = polyop("run", path, "-i", f"input={name}")
        assert code == BAD_FILE, (name, code, err)
        assert name in err
    code, _, err = polyop("run", path, "-i", "input=missing.png")
    assert (code, "does not exist" in err) == (BAD_FILE, True)


def test_damaged_models(polyop, add: Path, tmp_path: Path) -> None:
    good = add.read_bytes()
    cases = {
        "text.onnx": b"this is no model",
        "empty.onnx": b"",
        "truncated.onnx": good[: len(good) // 2],
        "zeros.onnx": bytes(100),
        "claim.onnx": b"\x3a\xff\xff\xff\xff\x0f" + good,
    }
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        for command in ("run", "inspect"):
            code, _, err = polyop(command, name)
            assert code == BAD_FILE, (command, name, err)
            assert name in err
    for command in ("run", "inspect"):
        assert polyop(command, tmp_path)[0] == BAD_FILE  # a directory
        assert polyop(command, "missing.onnx")[0] == BAD_FILE


# ---- inspect ---------------------------------------------------------------------------------------


def test_inspect_lists_the_operators_and_their_providers(polyop, tmp_path: Path) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    nodes = [
        helper.make_node("my_add", ["x", "x"], ["a"], domain="custom"),
        helper.make_node("my_add", ["a", "x"], ["b"], domain="mmcv"),  # the right type in another domain
        helper.make_node("my_ad", ["b", "x"], ["c"], domain="custom"),  # misspelt
        helper.make_node("Gelu", ["c"], ["d"], domain="com.microsoft"),
        helper.make_node("Quux", ["d"], ["y"], domain="else", level=3, names=["p", "q"]),
    ]
    branch = helper.make_graph(
        [helper.make_node("Hidden", ["x"], ["h"], domain="deep")],
        "then",
        [],
        [helper.make_tensor_value_info("h", TensorProto.FLOAT, None)],
    )
    nodes.append(helper.make_node("If", ["flag"], ["z"], then_branch=branch, else_branch=branch))
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "z")]
    graph = helper.make_graph(nodes, "g", [x, flag], outputs)
    opsets = [helper.make_opsetid(d, 1 if d else 17) for d in ("", "custom", "mmcv", "else", "com.microsoft", "deep")]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx")

    code, out, _ = polyop("inspect", "m.onnx")
    assert code == NOT_PROVIDED
    for text in (
        "float32[N, 4]",
        "polyop (ONNX Runtime CPU, PyTorch CPU, OpenVINO CPU)",
        "ONNX Runtime contrib",
        "level=3",
        "deep::Hidden",
    ):
        assert text in out
    assert "polyop has it as custom::my_add" in out
    assert "the nearest is custom::my_add" in out

    report = json.loads(polyop("inspect", "m.onnx", "--json")[1])
    provided = {o["name"]: o["provided"] for o in report["operators"]}
    assert provided["custom::my_add"]
    assert provided["com.microsoft::Gelu"]
    assert not provided["else::Quux"]
    assert {o["name"]: o["count"] for o in report["operators"]}["deep::Hidden"] == 2
    assert "Quux" in polyop("inspect", "m.onnx", "--verbose")[1]


@pytest.mark.parametrize("name", ["FPSampling", "FurthestPointSampling", "BallQuery", "GridBallQuery", "RotateTRT"])
def test_inspect_names_without_a_domain(polyop, tmp_path: Path, name: str) -> None:
    onnx.save(model(f"::{name}", {"x": np.zeros((1, 3, 3), np.float32)}), tmp_path / "m.onnx")
    _, out, _ = polyop("inspect", "m.onnx", "--json")
    (needed,) = json.loads(out)["operators"]
    assert (needed["name"], needed["provided"]) == (name, True)


def test_inspect_a_standard_model(polyop, tmp_path: Path) -> None:
    code, out, _ = polyop("inspect", image_model(tmp_path / "id.onnx", [1, 3, "H", "W"]))
    assert code == OK
    assert "Every operator is ONNX's own" in out


# ---- ops, help -------------------------------------------------------------------------------------


def test_ops_lists_every_folder(polyop) -> None:
    folders = {f.name for f in operator_folders()}
    listed = {o["name"] for o in json.loads(polyop("ops", "--json")[1])}
    assert listed == folders
    code, out, _ = polyop("ops")
    assert code == OK
    assert all(name in out for name in folders)


def test_ops_explains_an_operator_by_any_of_its_names(polyop) -> None:
    pages = [polyop("ops", name)[1] for name in ("roi_align", "mmcv::MMCVRoiAlign", "MMCVRoiAlign")]
    assert pages[0] == pages[1] == pages[2]
    for text in ("input: T[N, C, H, W]", "sampling_ratio", "{avg, max}", "Mask R-CNN", "mmdeploy::MMCVRoiAlign"):
        assert text in pages[0]
    assert "| `sampling_ratio` |" in polyop("ops", "roi_align", "--markdown")[1]
    code, _, err = polyop("ops", "roi_alin")
    assert code == USAGE
    assert "did you mean 'roi_align'" in err


def test_ops_lists_operators_by_room(polyop, program: str) -> None:
    lines = polyop("ops")[1].splitlines()
    rois = lines[lines.index("rois") + 1 : lines.index("", lines.index("rois"))]
    assert {line.split()[0] for line in rois} == {
        folder.name for folder in operator_folders() if folder.parent.name == "rois"
    }
    assert {o["name"]: o["room"] for o in json.loads(polyop("ops", "--json")[1])}["svd"] == "linalg"
    assert "sampling_ratio" not in polyop("ops", "--search", "RoIAlign rotated")[1]
    found = json.loads(polyop("ops", "--search", "ROTATED suppress", "--json")[1])
    assert "nms_rotated" in {o["name"] for o in found}
    assert "roi_align" not in {o["name"] for o in found}
    assert polyop("ops", "--search", "no such words")[0] == USAGE
    assert "did you mean 'nms_rotated'" in polyop("ops", "nms_rot")[2]
    assert polyop("ops", "roi_align", "--long")[0] == USAGE


def test_the_list_is_as_wide_as_the_terminal(program: str) -> None:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    with subprocess.Popen([program, "ops"], stdout=follower, env={**os.environ, "NO_COLOR": "1"}):
        os.close(follower)
        said = b""
        try:
            while part := os.read(leader, 65536):
                said += part
        except OSError:  # the program has closed its side
            pass
    os.close(leader)
    lines = said.decode().replace("\r", "").splitlines()
    assert max(map(len, lines[:-2])) == 60
    assert any(line.endswith("…") for line in lines)


def test_ops_shows_gradients(polyop) -> None:
    """By a kernel, by the formula alone, or none: in the table, on the operator's page and as JSON."""
    rows = {line.split()[0]: line.rstrip() for line in polyop("ops", "--long")[1].splitlines() if line.strip()}
    assert rows["roi_align"].endswith("kernel (CPU, CUDA)")
    assert rows["dft"].endswith("formula")
    assert rows["nms"].endswith("none")
    page = " ".join(polyop("ops", "roi_align")[1].split())
    assert page.endswith(
        "Gradients In PyTorch, of input: by the kernel polyop::roi_align_backward on the CPU and on CUDA, else the "
        "formula."
    )
    assert " ".join(polyop("ops", "dft")[1].split()).endswith("In PyTorch, of signal: by the formula.")
    assert polyop("ops", "nms")[1].endswith("Gradients\n  none\n")
    assert "## Gradients" not in polyop("ops", "nms", "--markdown")[1]
    listed = {o["name"]: o["gradient"] for o in json.loads(polyop("ops", "--json")[1])}
    assert listed["roi_align"] == {"inputs": ["input"], "kernels": ["CPU", "CUDA"]}
    assert listed["nms"] is None
    for name, gradient in listed.items():
        files = {"CPU": f"{name}_backward_cpu.cc", "CUDA": f"{name}_backward_cuda.cu"}
        kernels = [device for device, file in files.items() if any(ROOT.glob(f"ops/*/{name}/{file}"))]
        assert kernels == (gradient or {"kernels": []})["kernels"], name


def test_help(polyop) -> None:
    for arguments in (["--help"], ["run", "--help"], ["inspect", "--help"], ["ops", "--help"]):
        code, out, _ = polyop(*arguments)
        assert code == OK
        assert "Usage" in out
    assert "Exit codes" in polyop("--help")[1]
    assert polyop()[0] == USAGE
    assert polyop("--version")[1].startswith("polyop ")


def test_misspelt_commands_and_options(polyop, add: Path) -> None:
    cases = [
        (["rnu"], "polyop has no command 'rnu'", "did you mean 'run'?"),
        (["Verfy", add], "polyop has no command 'Verfy'", "did you mean 'verify'?"),
        (["something-else"], "no command 'something-else'", "`polyop --help` lists all"),
        ([add], "has no command", "`polyop --help` lists all"),
        (["--versoin"], "polyop has no option '--versoin'", "did you mean '--version'?"),
        (["bench", add, "--agianst=x.onnx"], "polyop bench has no option '--agianst'", "did you mean '--against'?"),
        (["inspect", "--hmtl", "x.html"], "polyop inspect has no option '--hmtl'", "did you mean '--html'?"),
        (["run", add, "-z"], "polyop run has no option '-z'", "`polyop run --help` lists all"),
    ]
    for arguments, message, hint in cases:
        code, _, err = polyop(*arguments)
        assert code == USAGE, arguments
        assert message in err
        assert hint in err


# ---- bench -----------------------------------------------------------------------------------------


@pytest.fixture
def additions(tmp_path: Path) -> None:
    """Writes 2a + b as one custom node, with standard nodes, and with exchanged inputs."""
    a = np.zeros((2, 3), np.float32)
    onnx.save(model("custom::my_add", {"a": a, "b": a}, ["c"]), tmp_path / "custom.onnx")
    onnx.save(model("custom::my_add", {"b": a, "a": a}, ["c"]), tmp_path / "exchanged.onnx")
    nodes = [helper.make_node("Add", ["a", "a"], ["d"], name="twice"), helper.make_node("Add", ["d", "b"], ["c"])]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n in "abc"]
    graph = helper.make_graph(nodes, "g", values[:2], values[2:])
    model_ = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model_, tmp_path / "standard.onnx")


def test_bench_shows_the_nodes(polyop, additions: None) -> None:
    code, out, err = polyop("bench", "standard.onnx", "--seconds", 0.05, "--threads", "1,2", "--layers")
    assert code == OK, err
    assert "median" in out
    assert "twice" in out
    assert "100" not in out.split("twice")[1].splitlines()[0]  # there is another node


def test_bench_interleaves_models(polyop, additions: None) -> None:
    command = ["bench", "custom.onnx", "--against", "standard.onnx", "--seconds", 0.05, "--json"]
    code, out, err = polyop(*command)
    assert code == OK, err
    runs = json.loads(out)["runs"]
    assert [(run["model"], run["threads"]) for run in runs] == [
        ("custom.onnx", 1),
        ("standard.onnx", 1),
        ("custom.onnx", 2),
        ("standard.onnx", 2),
    ]
    times = [[run[f"{which}_seconds"] for which in ("min", "median", "p90", "p99")] for run in runs]
    assert all(row[0] > 0 and row == sorted(row) for row in times)


@pytest.mark.parametrize("order", [("few", "many"), ("many", "few")])
def test_bench_says_how_many_times_faster(polyop, tmp_path: Path, order: tuple[str, str]) -> None:
    """The speed is that of the second model, and follows from the medians in the table, which are rounded."""
    for name, count in (("few", 10), ("many", 40)):
        names = ["x", *[f"x{i}" for i in range(1, count)], "y"]
        nodes = [helper.make_node("Neg", [a], [b]) for a, b in pairwise(names)]
        values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [512, 1024]) for n in "xy"]
        graph = helper.make_graph(nodes, "g", values[:1], values[1:])
        onnx.save(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
            tmp_path / f"{name}.onnx",
        )
    first, second = (f"{name}.onnx" for name in order)
    code, out, err = polyop("bench", first, "--against", second, "--threads", 1, "--seconds", 0.1)
    assert code == OK, err
    row = r"{} +1 +[\d.]+ ms +([\d.]+) ms +[\d.]+ ms +[\d.]+ ms +\d+ *(.*)"
    before, after = (re.search(row.format(re.escape(name)), out) for name in (first, second))
    assert before[2].strip() == "", "the first model has no speed"
    factor, word = re.fullmatch(r"(\d+\.\d\d)x (faster|slower)", after[2].strip()).groups()
    medians = float(before[1]), float(after[1])
    assert word == ("faster" if medians[1] < medians[0] else "slower")
    rounding = 0.005
    least = (max(medians) - rounding) / (min(medians) + rounding)
    most = (max(medians) + rounding) / (min(medians) - rounding)
    assert least - rounding <= float(factor) <= most + rounding


def test_bench_refuses_models_that_do_not_agree(polyop, additions: None) -> None:
    code, _, err = polyop("bench", "custom.onnx", "--against", "exchanged.onnx", "-i", "b=zeros")
    assert code == FAILED
    assert "do not agree" in err
