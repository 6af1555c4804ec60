"""The benchmarks run, and hold a run against a recorded one. What is measured is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
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


def test_a_row_says_what_was_measured(recorded: Path) -> None:
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
def test_rows_that_fell_are_named(recorded: Path, tmp_path: Path, times_better: float, code: int) -> None:
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


def test_whole_models_stand_beside_themselves_without_polyop(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "whole_models.py"), "--only", "SRCNN", "--threads", "1", "--seconds", "0.1",
         "--out", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "models.json").read_text())["rows"]
    assert set(row["milliseconds"]) == {"ONNX Runtime", "ONNX Runtime + polyop", "OpenVINO", "OpenVINO + polyop"}
    assert row["missing"] == {}
    assert 0 < row["shares"]["polyop"] < 0.5
    assert sum(row["shares"].values()) == pytest.approx(1)
    assert row["name"] in (tmp_path / "models.md").read_text()
    assert (tmp_path / "models.png").stat().st_size > 10_000
