# SPDX-License-Identifier: Apache-2.0
"""MMCV's own tests of its operators, with their cases for CUDA. POLYOP_MMCV_SOURCE names a checkout of
github.com/open-mmlab/mmcv, whose Python code runs unchanged, with polyop as its compiled module.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

import polyop
from tests.support.processes import ROOT

RUNTIME = "mmcv"
SOURCE = Path(os.environ.get("POLYOP_MMCV_SOURCE", "."))
FILES = sorted(path.stem for path in SOURCE.glob("tests/test_ops/test_*.py"))
PROCESSES = 16
# All tests of these files are for other devices, or expect other results (docs/openmmlab.md).
WITHOUT_RESULTS = {"test_box_iou_quadri", "test_min_area_polygons", "test_tin_shift"}


@pytest.mark.parametrize("number", range(PROCESSES))
def test_files(number: int, tmp_path: Path) -> None:
    files = FILES[number::PROCESSES]
    shutil.copytree(SOURCE / "tests" / "test_ops", tmp_path / "tests" / "test_ops")
    shutil.copytree(SOURCE / "tests" / "data", tmp_path / "tests" / "data")
    result = tmp_path / "result.xml"
    path = [ROOT / "tests" / "support", Path(polyop.__file__).parent.parent, SOURCE]
    given = os.environ.get("PYTHONPATH")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "mmcv_tests_on_gpu", "-p", "no:cacheprovider", "-W", "ignore", "-q",
         "-rfE", "--tb=short", *(f"tests/test_ops/{name}.py" for name in files), f"--junitxml={result}"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), *([given] if given else [])])},
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-10000:]
    ran: Counter[str] = Counter()
    for case in ElementTree.parse(result).iter("testcase"):
        ran[case.attrib["classname"].split(".")[2]] += case.find("skipped") is None
    print(dict(ran))
    assert {name for name in files if not ran[name]} <= WITHOUT_RESULTS
