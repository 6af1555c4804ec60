"""Fixtures that every test may use, and one rule: a test that did not run fails."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import polyop

ROOT = Path(__file__).resolve().parent.parent

# As tools/common.sh has them, so that tests that build find in ccache what `make build` compiled.
for name, value in {"CC": "gcc", "CXX": "g++", "CCACHE_BASEDIR": str(ROOT)}.items():
    os.environ.setdefault(name, value)


@pytest.fixture(scope="session")
def library() -> str:
    """Path of the ONNX Runtime custom-op library."""
    return polyop.get_onnxruntime_op_path()


@pytest.fixture(scope="session")
def program() -> str:
    """Path of the program `polyop`; POLYOP_PROGRAM names another build of it."""
    path = Path(os.environ.get("POLYOP_PROGRAM", ROOT / ".venv" / "bin" / "polyop"))
    assert path.is_file(), f"{path} is missing: run `make build`"
    return str(path)


@pytest.fixture
def not_run(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """For a test whose other parts ran: says at the end of the run which part did not, and why."""
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
    """A temporary folder for a test that builds polyop. A build tree in it lies as deep as build/release: ccache compares
    paths relative to the tree, and finds what was compiled there."""
    folder = Path(tempfile.mkdtemp(prefix=".test-", dir=ROOT))
    yield folder
    shutil.rmtree(folder)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: of two processes none shall end with the longest of all."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} did not run: {call.excinfo.value}"
    return report
