# SPDX-License-Identifier: Apache-2.0
"""The project's folders have an order, and includes and imports follow it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from tests.support.processes import ROOT


def test_every_inclusion_follows_the_order() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "check_rooms.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all go one way" in done.stdout


def test_an_import_by_a_string_counts(tmp_path: Path) -> None:
    spec = spec_from_file_location("check_rooms", ROOT / "tools" / "check_rooms.py")
    assert spec is not None
    assert spec.loader is not None
    check_rooms = module_from_spec(spec)
    spec.loader.exec_module(check_rooms)
    file = tmp_path / "a.py"
    file.write_text('import polyop.b\ndef f():\n    return importlib.import_module("polyop.c").d\n')
    modules = {f"polyop.{name}": file for name in "abc"}
    assert check_rooms.imports("polyop.a", file, modules, nested=False) == {"polyop.b"}
    assert check_rooms.imports("polyop.a", file, modules, nested=True) == {"polyop.b", "polyop.c"}
