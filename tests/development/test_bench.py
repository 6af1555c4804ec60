# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run, and compare a run with a recorded one. This does not judge the times."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT, environment, run

SMALL = ["--only", "10 boxes", "--threads", "1"]


def bench(*arguments: object) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "bench" / "run.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    done = bench(*SMALL, "--out", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_rows_have_all_measurements(recorded: Path) -> None:
    rows = json.loads((recorded / "results.json").read_text())["rows"]
    assert rows
    for row in rows:
        assert 0 < row["ours"]["minimum"] <= row["ours"]["median"]
        assert row["ours"]["cold"] > 0
        assert row["scratch"] >= 0
        assert row["faults"] >= 0
    table = (recorded / "results.md").read_text()
    assert all(row["title"] in table for row in rows)
    assert (recorded / "results.png").stat().st_size > 0


@pytest.mark.parametrize(("times_better", "code"), [(1e-6, 0), (1e6, 1)])
def test_names_rows_that_became_slower(recorded: Path, tmp_path: Path, times_better: float, code: int) -> None:
    then = json.loads((recorded / "results.json").read_text())
    for row in then["rows"]:
        row["ours"]["median"] /= times_better
    (tmp_path / "results.json").write_text(json.dumps(then))
    done = bench(*SMALL, "--against", tmp_path, "--out", tmp_path / "now")
    assert done.returncode == code, done.stdout + done.stderr
    rows = len(then["rows"])
    assert f"{rows if code else 0} of {rows} rows fell by more than 20%" in done.stdout
    named = [row for row in then["rows"] if f"{row['title']}, best, 1 thread(s): rival / us" in done.stdout]
    assert len(named) == (rows if code else 0)


def test_attached_files_and_the_usual_code() -> None:
    """The program compares the detections of all contenders before it times them."""
    command = [sys.executable, ROOT / "bench" / "attach.py", "--threads", "1", "--counts", "200", "--seconds", "0.01"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line[:6] in ("| 480 ", "| 1080", "| 200,")]
    assert len(lines) == 3
    for line in lines:
        assert all(float(time) > 0 for time in line.split("|")[2:-1]), line


def test_whole_models_with_and_without_polyop(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "whole_models.py"), "--only", "SRCNN", "--threads", "1", "--seconds", "0.1",
         "--out", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "models.json").read_text())["rows"]
    ours = {"ONNX Runtime, accelerator", "ONNX Runtime, provider", "ONNX Runtime + polyop", "OpenVINO + polyop"}
    measured = {"ONNX Runtime", "OpenVINO", *ours}
    assert set(row["milliseconds"]) == measured
    assert row["missing"] == {}
    assert 0 < row["shares"]["polyop"] < 0.5
    assert sum(row["shares"].values()) == pytest.approx(1)
    assert row["name"] in (tmp_path / "models.md").read_text()
    assert (tmp_path / "models.png").stat().st_size > 10_000


def test_every_recorded_operator_has_a_title_in_the_charts() -> None:
    code = """
import json, sys
from chart import OTHER, title_of
for file in sys.argv[1:]:
    print(*{row["operator"] for row in json.load(open(file))["rows"] if title_of(row["operator"]) == OTHER})
"""
    files = [str(ROOT / "bench" / "results" / f"{name}.json") for name in ("results", "growth")]
    assert run(sys.executable, "-c", code, *files, env=environment(ROOT / "bench")).split() == []


def test_a_case_that_does_not_run_is_named_and_fails(tmp_path: Path) -> None:
    code = """
import sys
import run
first, second = run.selected(run.ALL, "10 boxes,my_add")[:2]
first.make = lambda threads: 1 / 0
run.ALL[:] = [first, second]
sys.argv[1:] = ["--threads", "1", "--out", sys.argv[1]]
run.main()
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(ROOT / "bench"))
    assert done.returncode == 1, done.stderr
    assert "ZeroDivisionError" in done.stdout
    assert "without a row: " in done.stdout
    assert len(json.loads((tmp_path / "results.json").read_text())["rows"]) == 1


@pytest.mark.slow
def test_every_case_runs() -> None:
    """Those whose rivals need a package that only the benchmarks install are left out, and printed."""
    code = """
from accelerator import CASES
from benchmark import cases
for case in CASES + cases("cpu"):
    try:
        case.make(1).ours()
    except ModuleNotFoundError as error:
        print(f"{case.operator}, {case.title}: not run: {error}")
"""
    print(run(sys.executable, "-c", code, env=environment(ROOT / "bench")))
