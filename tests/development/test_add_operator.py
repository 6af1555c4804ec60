# SPDX-License-Identifier: Apache-2.0
"""Adding an operator means one folder of new files: no other file of the project is edited or names it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from tests.support.processes import ROOT, operator_folders
from tests.support.single_node import model

SAMPLE = ROOT / "tests" / "data" / "one_folder_op" / "ops"


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, env=env)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def build(program: str, building_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the libraries and the tests of two operators in a temporary folder: a sample, and one with a gradient that
    `polyop new` writes."""
    folder, operators = building_folder, tmp_path_factory.mktemp("operator") / "ops"
    shutil.copytree(SAMPLE, operators)
    run(program, "new", "scaled", "--gradient", "--into", operators)
    cmake = Path(sys.executable).parent / "cmake"
    run(
        cmake if cmake.exists() else "cmake",
        *("-S", ROOT, "-B", folder / "build", "-G", "Ninja"),
        f"-DPOLYOP_EXTRA_OPS_DIRS={operators}",
        *("-DPOLYOP_OPS=my_add", "-DPOLYOP_BUILD_CLI=OFF"),
        f"-DPython3_EXECUTABLE={sys.executable}",
    )
    run(
        cmake if cmake.exists() else "cmake",
        "--build",
        folder / "build",
        "--target",
        *("polyop_onnxruntime", "polyop_torch"),
        *("scaled_rows_test", "scaled_backward_test"),
    )
    return folder / "build"


@pytest.mark.parametrize("name", ["scaled_rows_test", "scaled_backward_test"])
def test_its_own_test_passes(build: Path, name: str) -> None:
    (program,) = build.rglob(name)
    assert "PASSED" in run(program)


TRAINING = """
import torch
import polyop
from polyop._torch.gradients import RULES

assert RULES["polyop::scaled"].kernel.computes([0], [torch.zeros(1)])
x = torch.linspace(-2, 2, 12).reshape(3, 4).requires_grad_()
torch.ops.polyop.scaled(x, scale=3.0).square().sum().backward()
torch.testing.assert_close(x.grad, 18 * x.detach())
wide = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(torch.ops.polyop.scaled, wide)
assert torch.autograd.gradgradcheck(torch.ops.polyop.scaled, wide)
"""


def test_the_gradient_of_polyop_new_trains_in_pytorch(build: Path) -> None:
    environment = {**os.environ, "POLYOP_LIBRARY_DIR": str(build / "lib")}
    run(sys.executable, "-c", TRAINING, env=environment)


def test_it_runs_in_onnxruntime(build: Path) -> None:
    (library,) = build.rglob("libpolyop_onnxruntime.so")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    weight = np.array([1, 0, -1, 2], np.float32)
    options = ort.SessionOptions()
    options.register_custom_ops_library(str(library))
    proto = model(
        "elsewhere::ScaledRows",
        {"x": x, "weight": weight},
        ["y", "row"],
        {"shift": 0.5},
        {"x": ("N", "C"), "weight": ("N",)},
    )
    session = ort.InferenceSession(proto.SerializeToString(), options)
    assert [o.shape for o in session.get_outputs()] == [["N", "C"], ["N"]]
    y, row = session.run(None, {"x": x, "weight": weight})
    np.testing.assert_allclose(y, x * weight[:, None] + 0.5)
    np.testing.assert_array_equal(row, np.arange(4))


def test_no_operator_is_named_in_adapters_or_core() -> None:
    """The code below and above the operators knows none of them."""
    names = {folder.name for folder in operator_folders()}
    for header in ROOT.glob("ops/*/*/*.h"):
        names.update(re.findall(r'"\w+::(\w+)"', header.read_text()))
    assert "my_add" in names
    pattern = re.compile("|".join(rf"\b{name}\b" for name in sorted(names)))
    for file in [*ROOT.glob("adapters/**/*.*"), *ROOT.glob("core/*.cc"), *ROOT.glob("core/*.h")]:
        if file.name.endswith("_test.cc") or file.suffix not in {".cc", ".h", ".txt"}:
            continue
        code = re.sub(r"//.*", "", file.read_text())
        code = re.sub(r'node\.type == "\w+"', "", code)  # types of ONNX's nodes, whose extents patterns follow
        code = re.sub(r"kLacking\[\] = \{.*?\};", "", code)  # operators of ONNX that a runtime's reader lacks
        assert not pattern.search(code), f"{file.relative_to(ROOT)} names an operator"
