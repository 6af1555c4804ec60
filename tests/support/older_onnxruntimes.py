# SPDX-License-Identifier: Apache-2.0
"""Older releases of ONNX Runtime in .deps/, and processes that run in one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from tests.support.processes import ROOT, environment


def older_runtimes() -> list[Path]:
    """Returns the folders in .deps/ of the versions in requirements/onnxruntime-*.txt, oldest first."""
    versions = set()
    for file in (ROOT / "requirements").glob("onnxruntime-*.txt"):
        lines = (line.split("#")[0].strip() for line in file.read_text().splitlines())
        requirements = [Requirement(line) for line in lines if line.startswith("onnxruntime")]
        versions |= {str(r.specifier).lstrip("=") for r in requirements if r.marker is None or r.marker.evaluate()}
    return [ROOT / ".deps" / f"onnxruntime-{version}" for version in sorted(versions, key=Version)]


OLD = older_runtimes()


def in_runtime(folder: Path, code: str) -> str:
    """Runs the code in a process with the ONNX Runtime of `folder` and returns its stdout. The process must succeed."""
    assert folder.is_dir(), f"{folder} is missing: run `make setup`"
    command = [sys.executable, "-c", "import numpy as np, onnxruntime as ort;" + code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(folder))
    assert result.returncode == 0, result.stderr
    return result.stdout
