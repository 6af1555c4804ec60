"""The house has rooms, and inclusion goes one way between them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_every_inclusion_goes_one_way() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "check_rooms.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all go one way" in done.stdout
