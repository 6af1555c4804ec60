"""The tutorial, step by step, for a user who has the wheel and a compiler: shell and Python blocks run, diffs are
applied.
"""

from __future__ import annotations

import re
import resource
import subprocess
from pathlib import Path

import pytest

from tests.support.documented import run_blocks
from tests.support.processes import ROOT

TUTORIAL = ROOT / "docs" / "tutorials" / "your-own-operator.md"


@pytest.mark.slow
def test_every_step_works(author: dict[str, str], tmp_path: Path) -> None:
    assert run_blocks(TUTORIAL, tmp_path, author) == {"sh", "diff", "python", "text"}


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
