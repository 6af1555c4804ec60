"""The tutorial, step by step as it is written, by somebody who has the wheel and a compiler: shell and Python blocks run,
diffs are applied."""

from __future__ import annotations

import re
import resource
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TUTORIAL = ROOT / "docs" / "tutorials" / "your-own-operator.md"
COMMANDS = {"sh": ["bash", "-e"], "diff": ["patch", "-p0"], "python": ["python", "-"]}


@pytest.mark.slow
def test_every_step_does_what_it_says(author: dict[str, str], tmp_path: Path) -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", TUTORIAL.read_text(), re.DOTALL | re.MULTILINE)
    assert {kind for kind, _ in blocks} == {"sh", "diff", "python", "text"}
    said = ""
    for kind, text in blocks:
        if kind == "text":  # what the step before it prints, spaces aside; "…" stands for anything
            pattern = r".*?".join(re.escape(" ".join(part.split())) for part in text.split("…"))
            assert re.search(pattern, " ".join(said.split())), f"wanted\n{text}\ngot\n{said}"
            continue
        done = subprocess.run(
            COMMANDS[kind], input=text, cwd=tmp_path, env=author, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, f"{text}\n{said}"


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
def test_ten_lines_and_two_minutes_to_an_operator_of_ones_own(author: dict[str, str], tmp_path: Path) -> None:
    """From an empty folder to a run in ONNX Runtime, for polyop.export runs the file. Without a compiler's cache, on two
    cores; the processor's time is counted, for others may use the machine."""
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
