# SPDX-License-Identifier: Apache-2.0
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
from tests.support.processes import BIN, ROOT, run

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


def author_environment(python: str, wheel: Path, environment: Path) -> dict[str, str]:
    """Creates a fresh environment of this Python with the wheel. Returns the environment variables of its user.

    PyTorch, ONNX Runtime and the user's other packages are links to those of `python`, so that pip downloads only build
    requirements. polyop's own library for OpenVINO is missing, as in builds without OpenVINO.
    """
    run(python, "-m", "venv", environment)
    theirs, mine = (
        Path(run(path, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        for path in (python, environment / "bin" / "python")
    )
    for path in theirs.iterdir():
        if not (mine / path.name).exists() and not path.name.startswith(("polyop", "_polyop", "scikit_build_core")):
            (mine / path.name).symlink_to(path)
    run(environment / "bin" / "python", "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", wheel)
    (mine / "polyop" / "lib" / "libpolyop_openvino.so").unlink(missing_ok=True)
    for tool in ("cmake", "ctest", "ninja"):
        (environment / "bin" / tool).symlink_to(BIN / tool)
    kept = {k: v for k, v in os.environ.items() if k.lower().endswith("_proxy") or k.startswith("PIP_")}
    return {
        **kept,
        "PATH": f"{environment / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(environment.parent),
        "LANG": "C.UTF-8",
        "PIP_FIND_LINKS": f"{wheel.parent} {os.environ.get('PIP_FIND_LINKS', '')}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
