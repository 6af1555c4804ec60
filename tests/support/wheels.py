"""The portable wheels in dist/, the Pythons of this machine, and a program that uses an installed wheel."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from packaging.version import Version

import polyop
from tests.support.processes import ROOT

SESSION = """
import polyop, onnx, numpy as np, onnxruntime as ort
from onnx import TensorProto, helper
node = helper.make_node("my_add", ["a", "b"], ["c"], domain="custom")
values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "abc"]
graph = helper.make_graph([node], "g", values[:2], values[2:])
opsets = [helper.make_opsetid("", 17), helper.make_opsetid("custom", 1)]
model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
options = ort.SessionOptions()
options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
a = np.float32([1, 2, 3])
print(session.run(None, {"a": a, "b": a})[0].tolist(), polyop.__file__)
"""

WHEELS = {arch: sorted((ROOT / "dist").glob(f"polyop-*manylinux*_{arch}.whl")) for arch in ("x86_64", "aarch64")}
NOT_BUILT = "there is none of this version in dist/: run `make wheels`"


def of_this_version(arch: str) -> Path | None:
    """Returns the wheel of this version for a processor."""
    return next((wheel for wheel in WHEELS[arch] if wheel.name.split("-")[1] == polyop.__version__), None)


OLDEST_PYTHON = Version(re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())[1])


def interpreter(version: str) -> str | None:
    """Returns a Python of the system or of pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *map(str, sorted(versions.glob(f"{version}.*/bin/python{version}")))]
    works = (path for path in found if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0)
    return next(works, None)


@functools.cache
def interpreters() -> dict[str, str]:
    """Returns interpreters by version, from the oldest supported version on."""
    versions = [f"3.{minor}" for minor in range(OLDEST_PYTHON.minor, OLDEST_PYTHON.minor + 20)]
    return {version: path for version in versions if (path := interpreter(version))}
