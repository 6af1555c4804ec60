# SPDX-License-Identifier: Apache-2.0
"""MMCV's own tests of its operators. POLYOP_MMCV_SOURCE names a checkout of github.com/open-mmlab/mmcv."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

import polyop
from tests.support.mmcv_tests_on_cpu import OTHERWISE
from tests.support.openmmlab import FOLDER
from tests.support.processes import ROOT

PLUGINS = ROOT / "tests" / "support"


def outcomes(folder: Path, mmcv: Path) -> Counter[str]:
    """Runs the tests in folder/tests/test_ops with the package mmcv of another folder, and counts their outcomes."""
    path = [PLUGINS, Path(polyop.__file__).parent.parent, mmcv, FOLDER]
    result = folder / "result.xml"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "mmcv_tests_on_cpu", "-p", "no:cacheprovider", "-W", "ignore", "-q", "-rfE",
         "--tb=short", "tests/test_ops", f"--junitxml={result}"],
        cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    print(done.stdout[-10000:])
    assert done.returncode in (0, 1), "pytest did not run"
    ends: Counter[str] = Counter()
    for case in ElementTree.parse(result).iter("testcase"):
        if (skipped := case.find("skipped")) is not None:
            ends["otherwise" if skipped.get("type") == "pytest.xfail" else "for other devices"] += 1
        else:
            ends["failed" if case.find("failure") is not None or case.find("error") is not None else "passed"] += 1
    return ends


def test_tests_for_cuda_run_on_the_cpu(tmp_path: Path) -> None:
    tests = tmp_path / "tests" / "test_ops"
    tests.mkdir(parents=True)
    tests.joinpath("test_some.py").write_text(
        """
import pytest
import torch
from mmcv.utils import IS_CUDA_AVAILABLE


@pytest.mark.skipif(not IS_CUDA_AVAILABLE, reason="requires CUDA")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda", 0)])
def test_nms(device):
    from mmcv.ops import nms

    boxes = torch.tensor([[0, 0, 4, 4], [0, 0, 4, 3], [9, 9, 12, 12.0]]).to(device)
    kept = nms(boxes, torch.tensor([0.2, 0.3, 0.1], device=device).cuda(), 0.5)[1]
    assert kept.tolist() == [1, 2]
    assert torch.nn.Linear(2, 2).cuda().to(device).weight.device == kept.device == torch.device("cpu")


def test_that_fails():
    assert not torch.cuda.is_available()


@pytest.mark.skipif(True, reason="requires MLU")
def test_of_another_device():
    pass
"""
    )
    assert outcomes(tmp_path, FOLDER) == {"passed": 3, "failed": 1, "for other devices": 1}


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_mmcvs_own_tests(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    source = os.environ.get("POLYOP_MMCV_SOURCE")
    if source is None:
        not_run("MMCV's own tests: POLYOP_MMCV_SOURCE names no checkout of github.com/open-mmlab/mmcv")
        return
    shutil.copytree(Path(source, "tests"), tmp_path / "tests")
    ends = outcomes(tmp_path, Path(source))
    print(dict(ends))
    assert not ends["failed"]
    assert ends["passed"] > 0
    version = re.search(r"__version__ = '(.*)'", Path(source, "mmcv", "version.py").read_text())
    if version and version[1] == "2.2.0":
        page = (ROOT / "docs" / "openmmlab.md").read_text()
        assert f"{ends['passed']} pass, {ends['otherwise']} expect other results" in page.replace("\n", " ")
        assert all(f"`{part.split('.py')[0]}`" in page for part in OTHERWISE)
