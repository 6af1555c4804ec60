# SPDX-License-Identifier: Apache-2.0
"""The tutorial, step by step, for a user who has the wheel and a compiler: shell and Python blocks run, diffs are
applied.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
from pathlib import Path

import pytest

from tests.support.documented import run_blocks
from tests.support.processes import ROOT

TUTORIAL = ROOT / "docs" / "tutorials" / "your-own-operator.md"


def without_the_wheel(author: dict[str, str]) -> dict[str, str]:
    """Returns the environment without the variable that names the wheel's folder."""
    return {**author, "PIP_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", "")}


@pytest.mark.slow
def test_every_step_works(author: dict[str, str], wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "dist").symlink_to(wheel.parent)
    assert run_blocks(TUTORIAL, tmp_path, without_the_wheel(author)) == {"sh", "diff", "python", "text"}


@pytest.mark.slow
def test_the_page_quotes_pips_error_without_the_wheels_folder(author: dict[str, str], tmp_path: Path) -> None:
    said = [line for line in TUTORIAL.read_text().splitlines() if line.startswith("ERROR: ")]
    script = "polyop new my_ops --project && pip install ./my_ops"
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=without_the_wheel(author), capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 1
    assert [line.split("…")[0] in done.stdout + done.stderr for line in said] == [True]
    readme = (tmp_path / "my_ops" / "README.md").read_text()
    assert "`No matching distribution found for polyop`" in readme


QUICK_START = """
polyop new quick_ops --project
pip install ./quick_ops
python - <<END
import torch, polyop, quick_ops
class Net(torch.nn.Module):
    def forward(self, x):
        return torch.ops.quick_ops.times(x)
polyop.export(Net(), torch.rand(2, 3), "net.onnx")
END
"""


@pytest.mark.slow
def test_quick_start_takes_ten_lines_and_two_minutes(author: dict[str, str], tmp_path: Path) -> None:
    """From an empty folder to a run in ONNX Runtime, because polyop.export runs the file.

    Without a compiler cache, on two cores; processor time is measured, because others may use the machine.
    """
    assert len(QUICK_START.strip().splitlines()) <= 10
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        ["bash", "-e"], input=QUICK_START, cwd=tmp_path, env={**author, "CCACHE_DISABLE": "1"}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"quick_ops::Times x1.*yes", done.stdout, re.DOTALL)
    assert (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 2 < 120
