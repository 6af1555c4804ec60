"""Adding an operator means one folder of new files: no other file of the project is edited or names it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from tests.support.processes import ROOT
from tests.support.single_node import model

SAMPLE = ROOT / "tests" / "data" / "one_folder_op" / "ops"


def run(*command: str | Path) -> str:
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def build(building_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the library and the test of an operator in a temporary folder."""
    folder, operators = building_folder, tmp_path_factory.mktemp("operator") / "ops"
    shutil.copytree(SAMPLE, operators)
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
        "polyop_onnxruntime",
        "scaled_rows_test",
    )
    return folder / "build"


def test_its_own_test_passes(build: Path) -> None:
    (program,) = build.rglob("scaled_rows_test")
    assert "PASSED" in run(program)


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
    names = {folder.name for folder in (ROOT / "ops").iterdir() if folder.is_dir()}
    for header in (ROOT / "ops").glob("*/*.h"):
        names.update(re.findall(r'"\w+::(\w+)"', header.read_text()))
    assert "my_add" in names
    pattern = re.compile("|".join(rf"\b{name}\b" for name in sorted(names)))
    for file in [*ROOT.glob("adapters/**/*.*"), *ROOT.glob("core/*.cc"), *ROOT.glob("core/*.h")]:
        if file.name.endswith("_test.cc") or file.suffix not in {".cc", ".h", ".txt"}:
            continue
        code = re.sub(r"//.*", "", file.read_text())
        assert not pattern.search(code), f"{file.relative_to(ROOT)} names an operator"
