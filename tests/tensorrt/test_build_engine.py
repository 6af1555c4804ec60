# SPDX-License-Identifier: Apache-2.0
"""The folder in which TensorRT-RTX's parser finds its library is private and unpredictable.

Fakes replace the runtime's module and its library: neither TensorRT nor a GPU is needed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

LIBRARY = "int fake(void) { return 7; }"

# Imported as the runtime. Loads its library as the wheel does, and records what the loader would search.
MODULE = """
import ctypes, json, os, pathlib, stat
library = ctypes.CDLL(os.environ["FAKE"])
folders = [f for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f]
seen = []
for folder in folders:
    status = os.stat(folder)
    seen.append([folder, stat.S_IMODE(status.st_mode), status.st_uid, os.listdir(folder)])
try:
    answers = ctypes.CDLL("libtensorrt_rtx.so").fake()
except OSError:
    answers = None
with open(os.environ["SEEN"], "a") as file:
    print(json.dumps({"folders": seen, "answers": answers}), file=file)
"""


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A temporary directory that others can write. It has a trap at the predictable name of the folder."""
    folder = tmp_path / "shared"
    folder.mkdir()
    trap = folder / f"polyop-tensorrt-rtx-{os.getuid()}"
    trap.mkdir(mode=0o777)
    (trap / "libtensorrt_rtx.so").write_text("malicious")
    return folder


def build(tmp_path: Path, shared: Path) -> list[dict]:
    """Runs the program and returns what each of its processes saw: the first one, and the one that it restarts as."""
    (tmp_path / "fake.c").write_text(LIBRARY)
    library = tmp_path / "libtensorrt_rtx.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", str(tmp_path / "fake.c"), "-o", str(library)], check=True)
    (tmp_path / "fake_tensorrt_rtx.py").write_text(MODULE)
    relu = helper.make_node("Relu", ["x"], ["y"])
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([relu], "g", info[:1], info[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "model.onnx")
    seen = tmp_path / "seen"
    seen.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "TMPDIR": str(shared),
        "FAKE": str(library),
        "SEEN": str(seen),
        "POLYOP_TENSORRT": "fake_tensorrt_rtx",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    environment.pop("LD_LIBRARY_PATH", None)
    command = [sys.executable, "-m", "polyop", "convert", "model.onnx", "-o", "model.engine"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "ILogger" in done.stderr, done.stderr  # the fake has no ILogger: this is as far as the program gets
    return [json.loads(line) for line in seen.read_text().splitlines()]


def test_the_folder_is_private_unique_and_removed(tmp_path: Path, shared: Path) -> None:
    names = set()
    for _ in range(2):
        first, second = build(tmp_path, shared)
        assert first == {"folders": [], "answers": None}
        ((folder, mode, owner, content),) = second["folders"]
        assert (mode, owner, content) == (0o700, os.getuid(), ["libtensorrt_rtx.so"])
        assert second["answers"] == 7
        assert Path(folder).parent == shared
        assert not Path(folder).exists()
        names.add(folder)
    assert len(names) == 2
    assert len(list(shared.iterdir())) == 1  # the trap


def test_a_folder_with_other_files_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    code = "from polyop._commands import convert as b; b.restart_with_parser_path()"
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "POLYOP_RESTARTED": str(tmp_path)},
        check=True,
        capture_output=True,
    )
    assert (tmp_path / "precious").read_text() == "kept"
    assert os.listdir(tmp_path) == ["precious"]
