# SPDX-License-Identifier: Apache-2.0
"""tools/gpu.sh on a machine that pretends to have a GPU: every part's command, its options, and what ends a run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import ROOT

PROGRAMS = {
    "nvidia-smi": 'case "$*" in *compute_cap*) echo 9.0 ;; *) echo "A GPU, 580" ;; esac',
    # Refuses options that the real one does not have, then runs the program.
    "compute-sanitizer": """
case "$1" in --help) echo 'memcheck racecheck initcheck synccheck --error-exitcode'; exit ;; esac
[ "$1" = --tool ] && [ "$3" = --error-exitcode ] && [ "$4" = 9 ] || exit 2
echo "tool $2"; shift 4; exec "$@" """,
    "strip": 'cp "$3" "$2"',
    "python": """
case "$*" in
  -c*xdist*) exit 1 ;;
  -c*) exit 0 ;;
  *--collect-only) echo '7 tests collected in 1.00s' ;;
  '-m pytest'*tests/gpu) echo '7 passed in 1.00s' ;;
  bench/gpu.py*--only\\ nms\\ --list) echo '3 cases' ;;
  bench/gpu.py*--only\\ nms) echo '3 rows in 1 s' ;;
  *) echo "unknown: $*"; exit 2 ;;
esac""",
}
TESTS = {
    "nms_test": "echo '[  PASSED  ] 2 tests.'",
    "roi_align_test": "echo '[  PASSED  ] 2 tests.'",
    "robustness_test": "echo '[  FAILED  ] Random.Calls'; exit 1",
    "op_test": "echo '[  SKIPPED ] 1 test'",  # no kernel's: not under compute-sanitizer
}


def write(folder: Path, programs: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in programs.items():
        (folder / name).write_text(f'#!/usr/bin/env bash\n[ "$1" != --gtest_list_tests ] || exit 0\n{text}\n')
        (folder / name).chmod(0o755)


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write(folder / "programs", PROGRAMS)
        write(folder / "build" / "bin", TESTS)
        (folder / "build" / "lib" / "formulas").mkdir(parents=True)

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PATH": f"{self.folder}/programs:{os.environ['PATH']}",
            "PYTHON": f"{self.folder}/programs/python",
            "BUILD": str(self.folder / "build"),
            "OUTPUT": str(self.folder),
            "BENCH": "--only nms",
            "JOBS": "2",
            **variables,
        }
        command = [str(ROOT / "tools" / "gpu.sh"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    def report(self) -> str:
        return (self.folder / "gpu-report.txt").read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_run_reports_every_part(machine: Machine) -> None:
    run = machine.run()
    assert run.returncode == 1, run.stderr  # robustness_test fails
    report = machine.report()
    assert "FAILED robustness_test: exit code 1" in report
    assert "FAILED op_test: it skips a test or has none" in report
    assert "cpp: 2 programs passed, 2 failed, 0 left out" in report
    for tool in ("memcheck", "racecheck", "initcheck", "synccheck"):
        assert f"{tool}: 2 programs passed, 1 failed, 0 left out" in report
        assert (machine.folder / "gpu-logs" / tool / "nms_test.log").read_text().startswith(f"tool {tool}")
    assert "7 passed in 1.00s" in report
    assert "3 rows in 1 s" in report


def test_parts_run_in_the_given_order_and_pass(machine: Machine) -> None:
    run = machine.run(PARTS="bench memcheck cpp", TESTS="roi_align_test nms_test")
    assert run.returncode == 0, run.stdout + run.stderr
    table = machine.report().rpartition("part ")[2].splitlines()[1:]
    assert [line.split()[0] for line in table] == ["bench", "memcheck", "cpp"]


def test_a_limit_ends_a_program(machine: Machine) -> None:
    (machine.folder / "build" / "bin" / "nms_test").write_text("#!/usr/bin/env bash\nsleep 30\n")
    assert machine.run(PARTS="cpp", TESTS="nms_test", LIMIT="1").returncode == 1
    assert "FAILED nms_test: ended after its limit, or that of the run" in machine.report()


def test_the_budget_leaves_programs_out_and_names_them(machine: Machine) -> None:
    assert machine.run(PARTS="cpp", TESTS="nms_test", BUDGET="0").returncode == 1
    assert "LEFT OUT nms_test" in machine.report()


def test_a_dry_run_prints_the_commands_and_needs_no_gpu(machine: Machine) -> None:
    (machine.folder / "programs" / "nvidia-smi").unlink()
    run = machine.run("--dry-run")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "compute-sanitizer --tool racecheck --error-exitcode 9" in run.stdout
    assert "7 tests collected" in run.stdout
    assert "3 cases" in run.stdout
    assert not (machine.folder / "gpu-report.txt").exists()


def test_a_dry_run_finds_what_would_fail(machine: Machine) -> None:
    run = machine.run("--dry-run", PARTS="cpp bench", TESTS="nms_test nmss_test", BENCH="--onli nms")
    assert run.returncode == 1
    assert "wrong: nmss_test does not start" in run.stdout
    assert "wrong: the benchmark has no case" in run.stdout


def test_an_archive_of_a_build_is_a_build(machine: Machine) -> None:
    (machine.folder / "build" / "lib" / "libpolyop_torch.so").touch()
    archive = machine.folder / "packed.tar.xz"
    pack = machine.run("--pack", str(archive), PARTS="cpp memcheck bench", TESTS="nms_test")
    assert pack.returncode == 0, pack.stdout + pack.stderr
    assert "packed.tar.xz: 0 MiB, 2 files" in pack.stdout
    names = subprocess.run(["tar", "-tf", archive], capture_output=True, text=True, check=True).stdout.split()
    assert {"bin/nms_test", "lib/libpolyop_torch.so", "lib/formulas/"} <= {*names}
    run = machine.run(PARTS="cpp memcheck", BUILD=str(archive))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "cpp: 1 programs passed, 0 failed, 0 left out" in machine.report()


def test_refuses_unknown_parts_and_options(machine: Machine) -> None:
    assert "expected one of: cpp" in machine.run(PARTS="cpp memchek").stderr
    assert machine.run("--dryrun").returncode == 2
    assert machine.run("--pack").returncode == 2
    assert "expected a file that ends in .tar.xz" in machine.run("--pack", "folder").stderr
