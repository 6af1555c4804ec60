# SPDX-License-Identifier: Apache-2.0
"""polyop optimize and polyop portable: models whose graphs are damaged or malicious, and interrupted writes.
test_optimize_files.py tests damaged files and data.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import polyop
from polyop.optimizing import OptimizeError, optimize
from polyop.portable import convert_file
from tests.support.small_models import matmul, sampling

HEAD = '<ir_version: 8, opset_import: ["": 17, "own": 1]>'
GRAPHS = {
    "cycle": "g (float[4] x) => (float[4] y) { a = Add (x, b) b = Neg (a) y = Neg (b) }",
    "undefined name": "g (float[4] x) => (float[4] y) { y = Add (x, nowhere) }",
    "output that nothing makes": "g (float[4] x) => (float[4] y) { z = Neg (x) }",
    "two of a name": "g (float[4] x) => (float[4] y) { y = Neg (x) y = Abs (x) }",
    "body without outputs": """g (float[4] x, int64 n, bool go) => (float[4] y) {
        y = Loop <body = b (int64 i, bool on, float[4] z) => () { w = Neg (z) }> (n, go, x) }""",
    "function that calls itself": """g (float[4] x) => (float[4] y) { y = own.F (x) }
        <domain: "own", opset_import: ["": 17, "own": 1]> F (a) => (b) { c = Neg (a) b = own.F (c) }""",
    "functions in a circle": """g (float[4] x) => (float[4] y) { y = own.F (x) }
        <domain: "own", opset_import: ["": 17, "own": 1]> F (a) => (b) { b = own.G (a) }
        <domain: "own", opset_import: ["": 17, "own": 1]> G (a) => (b) { b = own.F (a) }""",
}
SAID = {
    "cycle": "ONNX Runtime cannot run .*m.onnx: .*not acyclic",
    "undefined name": "ONNX Runtime cannot run .*m.onnx: .*nowhere",
    "output that nothing makes": "ONNX Runtime cannot run .*m.onnx: .*y",
    "two of a name": "m.onnx is not an ONNX model, or damaged",
    "body without outputs": "ONNX Runtime cannot run .*m.onnx: .*Loop",
    "function that calls itself": "m.onnx is damaged: its function own::F calls itself",
    "functions in a circle": "m.onnx is damaged: its function own::[FG] calls itself",
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_rejects_invalid_graphs(kind: str, tmp_path: Path) -> None:
    path, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(onnx.parser.parse_model(f"{HEAD}\n{GRAPHS[kind]}"), path)
    with pytest.raises(OptimizeError, match=SAID[kind]):
        optimize(path, out)
    assert os.listdir(tmp_path) == ["m.onnx"]


def test_rejects_a_recursive_function_with_polyops_name(tmp_path: Path) -> None:
    """polyop portable keeps a file's own functions, and cannot inline this one."""
    path, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    text = """<ir_version: 8, opset_import: ["": 17, "mmcv": 1]> g (float[4] x) => (float[4] y) { y = mmcv.MMCVCornerPool (x) }
        <domain: "mmcv", opset_import: ["": 17, "mmcv": 1]> MMCVCornerPool (a) => (b) { b = mmcv.MMCVCornerPool (a) }"""
    onnx.save(onnx.parser.parse_model(text), path)
    with pytest.raises(ValueError, match=r"m.onnx: inlining its functions failed: .*MMCVCornerPool"):
        convert_file(path, out, inlined=True)
    assert os.listdir(tmp_path) == ["m.onnx"]


@pytest.mark.parametrize("content", [b"", b"this is no model", None], ids=["empty", "text", "half"])
def test_portable_rejects_what_is_no_model(content: bytes | None, tmp_path: Path) -> None:
    path = matmul(tmp_path / "m.onnx")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(ValueError, match=r"m.onnx is not an ONNX model, or damaged"):
        convert_file(path, tmp_path / "out.onnx")
    assert os.listdir(tmp_path) == ["m.onnx"]


@pytest.mark.parametrize(
    ("location", "said"),
    [("../secret.data", "outside the model's folder"), ("none.data", "'none.data' is missing in")],
)
def test_portable_rejects_malicious_external_data(location: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "secret.data").write_bytes(bytes(256))
    path = sampled(tmp_path / "a" / "m.onnx")
    model = onnx.load(path, load_external_data=False)
    del model.graph.initializer[0].external_data[:]
    for key, value in (("location", location), ("offset", "0"), ("length", "8")):
        model.graph.initializer[0].external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match=said):
        convert_file(path, tmp_path / "b" / "out.onnx")
    assert os.listdir(tmp_path / "b") == []


# ---- Writing ----


def sampled(path: Path) -> Path:
    """Writes a node of polyop that samples rows of a table in external data."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "rows"], ["image"]),
            helper.make_node(
                "grid_sampler", ["image", "grid"], ["y"], domain="mmcv", interpolation_mode=0, padding_mode=0, align_corners=0
            ),
        ],
        "g",
        [info("rows", TensorProto.INT64, [1, 3]), info("grid", TensorProto.FLOAT, [1, 4, 5, 2])],
        [info("y", TensorProto.FLOAT, [1, 3, 4, 5])],
        [helper.make_tensor("table", TensorProto.FLOAT, [7, 8, 9], np.arange(504, dtype=np.float32).tobytes(), raw=True)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mmcv", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, path, save_as_external_data=True, location=f"{path.name}.data", size_threshold=0)
    return path


WRITERS = {
    "optimize": (
        lambda path: sampling(path, external=False),
        "polyop.optimize(path, out, all=True, threads=1)",
    ),
    "optimize, data outside": (sampling, "polyop.optimize(path, out, all=True, threads=1)"),
    "optimize, nothing found": (matmul, "polyop.optimize(path, out, threads=1)"),
    "portable": (sampled, "from polyop.portable import convert_file; convert_file(path, out)"),
}
KILLED = "os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)"
FULL = "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"  # like a full disk: no file can grow further


def run(path: Path, out: Path, before: str, program: str) -> subprocess.CompletedProcess[str]:
    lines = f"import os, resource, signal, polyop, polyop.optimizing; path, out = {str(path)!r}, {str(out)!r}\n"
    command = [sys.executable, "-c", f"{lines}{before}\n{program}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("writer", WRITERS)
def test_killed_before_a_file_is_renamed(writer: str, tmp_path: Path) -> None:
    """The previous file is unchanged, and the next run removes the temporary files."""
    make, program = WRITERS[writer]
    path, folder = make(tmp_path / "m.onnx"), tmp_path / "results"
    folder.mkdir()
    out = folder / "out.onnx"
    out.write_text("what was there")
    done = run(path, out, KILLED, program)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert out.read_text() == "what was there"
    assert all(name.startswith(".") for name in set(os.listdir(folder)) - {"out.onnx"})
    assert len(os.listdir(folder)) > 1
    done = run(path, out, "", program)
    assert done.returncode == 0, done.stderr
    assert not [name for name in os.listdir(folder) if name.startswith(".")]
    assert onnx.load(out).graph.node


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk(writer: str, tmp_path: Path) -> None:
    make, program = WRITERS[writer]
    path, folder = make(tmp_path / "m.onnx"), tmp_path / "results"
    folder.mkdir()
    # The working copy of a model is in another folder, and not under test here.
    done = run(path, folder / "out.onnx", f"{FULL}", program)
    assert done.returncode == 1
    assert "File too large" in done.stderr, done.stderr
    assert os.listdir(folder) == []


@pytest.mark.parametrize("kind", ["a folder", "below a file", "where nobody writes"])
def test_paths_that_cannot_be_written(kind: str, tmp_path: Path) -> None:
    path = matmul(tmp_path / "m.onnx")
    (tmp_path / "folder").mkdir()
    out = {"a folder": tmp_path / "folder", "below a file": path / "out.onnx", "where nobody writes": Path("/proc/out")}
    with pytest.raises(OptimizeError, match="cannot be written"):
        optimize(path, out[kind])
    with pytest.raises(OSError, match=r"out|folder|m\.onnx"):
        convert_file(path, out[kind])
    assert sorted(os.listdir(tmp_path)) == ["folder", "m.onnx"]


# ---- Sizes ----


def giant(path: Path, gigabytes: float) -> Path:
    """Writes an image from rows of a table of that size, sampled. The table is a sparse file of zeros."""
    rows = int(gigabytes * (1 << 30)) // (48 * 64 * 4)
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Gather", ["table", "rows"], ["image"]),
        helper.make_node("GridSample", ["image", "grid"], ["y"], name="sampling"),
    ]
    table = TensorProto(name="table", data_type=TensorProto.FLOAT, dims=[rows, 48, 64])
    table.data_location = TensorProto.EXTERNAL
    for key, value in (("location", f"{path.name}.data"), ("offset", "0"), ("length", str(rows * 48 * 64 * 4))):
        table.external_data.add(key=key, value=value)
    inputs = [info("rows", TensorProto.INT64, [1, 4]), info("grid", TensorProto.FLOAT, [1, 60, 70, 2])]
    graph = helper.make_graph(nodes, "g", inputs, [info("y", TensorProto.FLOAT, [1, 4, 60, 70])], [table])
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8).SerializeToString()
    )
    with path.with_name(f"{path.name}.data").open("wb") as file:
        file.truncate(rows * 48 * 64 * 4)
    return path


@pytest.mark.slow
def test_more_than_two_gigabytes(tmp_path: Path) -> None:
    """More than a protobuf can hold: optimised, and converted to a portable file, with the memory of a small model."""
    path, out = giant(tmp_path / "m.onnx", 2.2), tmp_path / "out.onnx"
    program = "assert polyop.optimize(path, out, threads=1).replaced == {'GridSample': 1}"
    print_peak = "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = run(path, out, "", f"{program}\n{print_peak}")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) << 10 < 1 << 30, f"{int(done.stdout) >> 10} MB"
    assert (tmp_path / "out.onnx.data").stat().st_size > 1 << 31
    report = convert_file(out, tmp_path / "portable.onnx")
    assert [record["name"] for record in report["nodes"]] == ["polyop::GridSample"]
    feeds = {"rows": np.zeros((1, 4), np.int64), "grid": np.zeros((1, 60, 70, 2), np.float32)}
    for written in (out, tmp_path / "portable.onnx"):
        assert not polyop.session(written).run(None, feeds)[0].any()
