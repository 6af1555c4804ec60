"""Fixtures that every test may use, and one rule: a test that did not run fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel as `pip wheel` makes it, in a build tree that later runs reuse."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*command, "-Cbuild-dir=build/wheel", "-w", folder, "."], cwd=ROOT, check=True)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="session")
def author(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> dict[str, str]:
    """The environment variables of somebody who has the wheel in a fresh Python environment, and no checkout. PyTorch, ONNX
    Runtime and what else a user installs are links to this environment's, so that nothing is downloaded but what pip builds
    packages with."""
    environment = tmp_path_factory.mktemp("author") / "venv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    theirs, mine = (
        Path(subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                            capture_output=True, text=True, check=True).stdout.strip())
        for python in (sys.executable, environment / "bin" / "python")
    )  # fmt: skip
    for path in theirs.iterdir():
        if not (mine / path.name).exists() and not path.name.startswith(("polyop", "_polyop", "scikit_build_core")):
            (mine / path.name).symlink_to(path)
    subprocess.run(
        [environment / "bin" / "python", "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", wheel],
        check=True,
    )
    for tool in ("cmake", "ctest", "ninja"):
        (environment / "bin" / tool).symlink_to(Path(sys.executable).parent / tool)
    kept = {k: v for k, v in os.environ.items() if k.lower().endswith("_proxy") or k.startswith("PIP_")}
    return {
        **kept,
        "PATH": f"{environment / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(environment.parent),
        "LANG": "C.UTF-8",
        "PIP_FIND_LINKS": f"{wheel.parent} {os.environ.get('PIP_FIND_LINKS', '')}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


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
