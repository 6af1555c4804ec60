"""Fixtures that every test may use, and one rule: a test that did not run fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import polyop

ROOT = Path(__file__).resolve().parent.parent


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} did not run: {call.excinfo.value}"
    return report
