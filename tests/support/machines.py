# SPDX-License-Identifier: Apache-2.0
"""Small files and models, and the environments of Ray and Triton, for tests of batches, Ray and Triton."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from PIL import Image

from tests.support import processes
from tests.support.processes import ROOT

SRCNN = ROOT / "models" / "srcnn"
PYTHON = ROOT / "python"


def environment(package: str) -> dict[str, str]:
    """Returns an environment that also has the packages of .deps/PACKAGE: "ray" (with pyarrow), or "triton" (its
    client).
    """
    folder = ROOT / ".deps" / package
    assert folder.is_dir(), f"{folder} is missing: run tools/setup_python.sh"
    # Ray lowers the priority of its workers by default; on a busy machine they would not start in time.
    return processes.environment(PYTHON, folder, RAY_worker_niceness="0", RAY_USAGE_STATS_ENABLED="0")


def child(package: str, program: str, *arguments: object, timeout: int = 900) -> str:
    """Runs Python code in such an environment and returns its stdout."""
    done = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], env=environment(package),
                          capture_output=True, text=True, check=False, timeout=timeout)  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout


def photos(folder: Path, count: int, width: int = 24, height: int = 20, extension: str = "png") -> list[Path]:
    """Writes images of noise, ten per folder, and returns their paths."""
    rng = np.random.default_rng(0)
    written = []
    for i in range(count):
        path = folder / f"{i // 10:03}" / f"{i:05}.{extension}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(path)
        written.append(path)
    return written


def save(path: Path, nodes: list[onnx.NodeProto], inputs: dict[str, list], outputs: dict[str, list], kind: int = TensorProto.FLOAT,
         constants: dict[str, np.ndarray] | None = None) -> Path:  # fmt: skip
    """Writes a model of standard operators."""
    infos = [[helper.make_tensor_value_info(n, kind, s) for n, s in some.items()] for some in (inputs, outputs)]
    initializers = [onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", *infos, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def identity(path: Path, shape: list, kind: int = TensorProto.FLOAT) -> Path:
    return save(path, [helper.make_node("Identity", ["x"], ["y"])], {"x": shape}, {"y": shape}, kind)
