# SPDX-License-Identifier: Apache-2.0
"""Runs the shell, Python and diff blocks of a page in order and compares their output with the page.

Blocks without a language are commands if they begin with `polyop`; others are not run.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

COMMANDS = {"sh": ["bash", "-e"], "diff": ["patch", "-p0"], "python": ["python", "-"]}
EXCERPTS = {"cmake"}  # parts of files, which are not run


def run_blocks(page: Path, folder: Path, environment: dict[str, str], fails: bool = False) -> set[str]:
    """Runs the page's blocks in `folder` and returns the kinds of its blocks.

    No block may fail unless `fails` is set; then each block is followed by its output.
    """
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    blocks = [(kind or "sh", text) for kind, text in found if kind or text.startswith("polyop ")]
    blocks = [(kind, text) for kind, text in blocks if kind not in EXCERPTS]
    said = ""
    if fails:
        assert [kind == "text" for kind, _ in blocks] == [False, True] * (len(blocks) // 2)
    for kind, text in blocks:
        if kind == "text":  # The output of the previous block, ignoring white space; "…" matches anything.
            pattern = r".*?".join(re.escape(" ".join(part.split())) for part in text.split("…"))
            assert re.search(pattern, " ".join(said.split())), f"{page.name}: expected\n{text}\ngot\n{said}"
            continue
        done = subprocess.run(
            COMMANDS[kind], input=text, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        assert fails or done.returncode == 0, f"{page.name}:\n{text}\n{said}"
    return {kind for kind, _ in blocks}
