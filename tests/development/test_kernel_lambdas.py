# SPDX-License-Identifier: Apache-2.0
"""nvcc keeps the copy function of a `__host__ __device__` lambda in a variable of each file. Where two files have the
same inline function with such a lambda, the linker keeps one of them, and a call from the other file jumps to null.
"""

from __future__ import annotations

import re
import subprocess

from tests.support.processes import ROOT

ON_BOTH_DEVICES = re.compile(r"\]\s*POLYOP_HD\b")


def test_lambdas_of_kernels_are_for_one_device() -> None:
    files = subprocess.run(
        ["git", "ls-files", "*.cu", "*.h", "*.cc"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    texts = {file: (ROOT / file).read_text() for file in files if (ROOT / file).exists()}
    assert sum("] POLYOP_DEVICE" in text for text in texts.values()) > 100
    assert [file for file, text in texts.items() if ON_BOTH_DEVICES.search(text)] == []
