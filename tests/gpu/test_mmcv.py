"""MMCV's own tests of its operators, with their cases for CUDA. POLYOP_MMCV_SOURCE names a checkout of
github.com/open-mmlab/mmcv, whose Python code runs unchanged, with polyop as its compiled module.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import polyop
from tests.support.mmcv_tests_on_gpu import OTHERWISE
from tests.support.processes import ROOT

RUNTIME = "mmcv"
SOURCE = Path(os.environ.get("POLYOP_MMCV_SOURCE", "."))
FILES = sorted(path.stem for path in SOURCE.glob("tests/test_ops/test_*.py"))
# Files all of whose tests are for other devices, or check MMCV's own build.
WITHOUT_CUDA_TESTS = {"test_info", "test_syncbn"}


@pytest.mark.parametrize("name", FILES)
def test_file(name: str, tmp_path: Path) -> None:
    shutil.copytree(SOURCE / "tests" / "test_ops", tmp_path / "tests" / "test_ops")
    shutil.copytree(SOURCE / "tests" / "data", tmp_path / "tests" / "data")
    result = tmp_path / "result.xml"
    path = [ROOT / "tests" / "support", Path(polyop.__file__).parent.parent, SOURCE]
    given = os.environ.get("PYTHONPATH")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "mmcv_tests_on_gpu", "-p", "no:cacheprovider", "-W", "ignore", "-q",
         "-rfE", "--tb=short", f"tests/test_ops/{name}.py", f"--junitxml={result}"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), *([given] if given else [])])},
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False,
    )  # fmt: skip
    cases = list(ElementTree.parse(result).iter("testcase")) if result.exists() else []
    skipped = [case for case in cases if case.find("skipped") is not None]
    print(
        f"{name}: {len(cases) - len(skipped)} tests ran, {len(skipped)} are for other devices or expect other results"
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert (
        len(cases) > len(skipped)
        or name in WITHOUT_CUDA_TESTS
        or any(part.startswith(f"{name}.py") for part in OTHERWISE)
    ), done.stdout[-6000:]
