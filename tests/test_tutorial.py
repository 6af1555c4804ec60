"""The tutorial, step by step as it is written: shell and Python blocks run, diffs are applied."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TUTORIAL = ROOT / "docs" / "tutorials" / "your-own-operator.md"


@pytest.mark.slow
def test_every_step_does_what_it_says(building_folder: Path) -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", TUTORIAL.read_text(), re.DOTALL | re.MULTILINE)
    assert {kind for kind, _ in blocks} == {"sh", "diff", "python", "text"}
    environment = {
        **os.environ,
        "POLYOP": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "python"),
    }
    said = ""
    for kind, text in blocks:
        if kind == "text":  # what the step before it prints, spaces aside; "…" stands for anything
            pattern = r".*?".join(re.escape(" ".join(part.split())) for part in text.split("…"))
            assert re.search(pattern, " ".join(said.split())), f"wanted\n{text}\ngot\n{said}"
            continue
        command = {"sh": ["bash", "-e"], "diff": ["patch", "-p0"], "python": [sys.executable, "-"]}[kind]
        if "export POLYOP_LIBRARY_DIR=" in text:
            environment["POLYOP_LIBRARY_DIR"] = str(
                building_folder / re.search(r"POLYOP_LIBRARY_DIR=\$PWD/(\S+)", text)[1]
            )
        done = subprocess.run(
            command, input=text, cwd=building_folder, env=environment, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, f"{text}\n{said}"
