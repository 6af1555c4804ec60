# SPDX-License-Identifier: Apache-2.0
"""Fixtures for every test, and one rule: a test that did not run fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import polyop
from tests.support.processes import ROOT
from tests.support.rest import REST, SAMPLED
from tests.support.wheels import author_environment

# The same values as in tools/common.sh, so that tests that build find the objects of `make build` in ccache.
for name, value in {"CC": "gcc", "CXX": "g++", "CCACHE_BASEDIR": str(ROOT)}.items():
    os.environ.setdefault(name, value)


@pytest.fixture(scope="session")
def library() -> str:
    """Returns the path of the ONNX Runtime custom-op library."""
    return polyop.get_onnxruntime_op_path()


@pytest.fixture(scope="session")
def program() -> str:
    """Returns the path of the program `polyop`. POLYOP_PROGRAM names another build of it."""
    path = Path(os.environ.get("POLYOP_PROGRAM", ROOT / ".venv" / "bin" / "polyop"))
    assert path.is_file(), f"{path} is missing: run `make build`"
    return str(path)


@pytest.fixture
def not_run(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Returns a function that records which part of a test did not run, and why. The run ends with a list of them."""
    return lambda why: request.node.user_properties.append(("not run", why))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    said = {(r.nodeid, why) for r in reports for what, why in getattr(r, "user_properties", []) if what == "not run"}
    if said:
        terminalreporter.section("parts of tests that were not run")
        for nodeid, why in sorted(said):
            terminalreporter.line(f"{nodeid}: {why}")


@pytest.fixture(scope="module")
def building_folder() -> Iterator[Path]:
    """Creates a temporary folder for a test that builds polyop, and removes it afterwards.

    A build tree in it has the same depth as build/release: ccache compares paths relative to the tree and finds the
    objects that were compiled there.
    """
    folder = Path(tempfile.mkdtemp(prefix=".test-", dir=ROOT))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds a wheel with `pip wheel`, in a build tree that later runs reuse. POLYOP_WHEEL names one that exists."""
    if named := os.environ.get("POLYOP_WHEEL"):
        return Path(named).absolute()
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*command, "-Cbuild-dir=build/wheel", "-w", folder, "."], cwd=ROOT, check=True)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="session")
def author(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> dict[str, str]:
    """Returns the environment variables of a user who has the wheel and this environment's packages, and no
    checkout."""
    return author_environment(sys.executable, wheel, tmp_path_factory.mktemp("author") / "venv")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves tests/gpu out unless the command line names it: its tests need a GPU."""
    folder = ROOT / "tests" / "gpu"
    if collection_path == folder and not any(folder == Path(arg.split("::")[0]).resolve() for arg in config.args):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Adds markers by tests/support/rest.py. Moves files with slow tests to the front, so that the longest one does not
    run last.
    """
    seen: Counter[str] = Counter()
    slow = set()
    for item in items:
        if item.get_closest_marker("slow"):
            slow.add(item.path)
            continue
        file = item.path.relative_to(ROOT / "tests").as_posix() if item.path.is_relative_to(ROOT / "tests") else ""
        name = f"{file}::{getattr(item, 'originalname', item.name)}"
        number = SAMPLED.get(name, 1)
        of_test, of_rest = number if isinstance(number, tuple) else (number, 2)
        turn, left_out = divmod(seen[name], of_test)
        if file in REST or name in REST:
            item.add_marker("slow" if left_out else "rest")
        elif left_out:
            before = turn * (of_test - 1) + left_out - 1  # the number of parameters that were left out so far
            item.add_marker("slow" if before % of_rest else "rest")
        seen[name] += 1
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} did not run: {call.excinfo.value}"
    return report
