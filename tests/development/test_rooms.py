"""The project's folders have an order, and includes and imports follow it."""

from __future__ import annotations

import subprocess
import sys

from tests.support.processes import ROOT


def test_every_inclusion_follows_the_order() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "check_rooms.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all go one way" in done.stdout
