"""What tests of batches, of Ray and of Triton share: small files, models, and environments of their own for Ray and Triton."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
SRCNN = ROOT / "models" / "srcnn"
PYTHON = ROOT / "python"


def environment(package: str) -> dict[str, str]:
    """For programs that have Ray and pyarrow ("ray"), or Triton's client ("triton"), beside what this Python has."""
    folder = ROOT / ".deps" / package
    assert folder.is_dir(), f"{folder} is missing: run tools/setup_python.sh"
    path = os.pathsep.join([str(PYTHON), str(folder), str(ROOT / "tests")])
    # Ray's workers have a low priority of their own accord: where the machine is busy, they would not start in time.
    return {**os.environ, "PYTHONPATH": path, "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}


def child(package: str, program: str, *arguments: object, timeout: int = 900) -> str:
    """What a program of Python prints in such an environment."""
    done = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], env=environment(package),
                          capture_output=True, text=True, check=False, timeout=timeout)  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout


def photos(folder: Path, count: int, width: int = 24, height: int = 20, extension: str = "png") -> list[Path]:
    """Noise, in folders of ten."""
    rng = np.random.default_rng(0)
    made = []
    for i in range(count):
        path = folder / f"{i // 10:03}" / f"{i:05}.{extension}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(path)
        made.append(path)
    return made


def save(path: Path, nodes: list[onnx.NodeProto], inputs: dict[str, list], outputs: dict[str, list], kind: int = TensorProto.FLOAT,
         constants: dict[str, np.ndarray] | None = None) -> Path:  # fmt: skip
    """A model of standard operators."""
    infos = [[helper.make_tensor_value_info(n, kind, s) for n, s in some.items()] for some in (inputs, outputs)]
    initializers = [onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", *infos, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def identity(path: Path, shape: list, kind: int = TensorProto.FLOAT) -> Path:
    return save(path, [helper.make_node("Identity", ["x"], ["y"])], {"x": shape}, {"y": shape}, kind)
