# SPDX-License-Identifier: Apache-2.0
"""The project's folders have an order, and includes and imports follow it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.processes import ROOT


def test_every_inclusion_follows_the_order() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "check_rooms.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all go one way" in done.stdout


@pytest.fixture
def check_rooms() -> ModuleType:
    spec = spec_from_file_location("check_rooms", ROOT / "tools" / "check_rooms.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_import_by_a_string_counts(check_rooms: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text('import polyop.b\ndef f():\n    return importlib.import_module("polyop.c").d\n')
    modules = {f"polyop.{name}": file for name in "abc"}
    assert check_rooms.imports("polyop.a", file, modules, nested=False) == {"polyop.b"}
    assert check_rooms.imports("polyop.a", file, modules, nested=True) == {"polyop.b", "polyop.c"}


def test_an_import_of_a_later_room_within_a_function_is_refused(
    check_rooms: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        check_rooms,
        "imports",
        lambda module, path, all_modules, nested: {"polyop.triton"} if nested and module == "polyop.ray" else set(),
    )
    assert check_rooms.check_python()[0] == ["python/polyop/ray.py: imports polyop.triton"]


def test_modules_outside_of_rooms_are_names_that_users_import() -> None:
    private = {path.name for path in ROOT.glob("python/polyop/_*.py")}
    assert private == {"__init__.py", "__main__.py"}


def test_private_names_of_the_package_are_found(check_rooms: ModuleType) -> None:
    text = 'from polyop import nms, _calls\ndef f():\n    from polyop import _system\n    return "polyop._onnx.files"\n'
    assert check_rooms.PRIVATE_NAME.findall(text) == ["_calls", "_system", "_onnx"]
