# SPDX-License-Identifier: Apache-2.0
"""polyop on Ray: the workers of a cluster of two nodes on this machine give the results of one machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polyop import batch
from tests.support.machines import SRCNN, child, photos

pytestmark = pytest.mark.slow

RUN = "import runpy; runpy.run_module('tests.support.ray_child', run_name='__main__', alter_sys=True)"


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Returns the report of ray_child.py."""
    folder = tmp_path_factory.mktemp("ray")
    child("ray", RUN, folder, SRCNN / "srcnn.onnx", timeout=1800)
    return json.loads((folder / "said.json").read_text())


def part(said: dict[str, Any], name: str) -> dict[str, Any]:
    assert "error" not in said[name], said[name]["error"]
    return said[name]


def test_results_equal_those_of_one_machine(said: dict[str, Any]) -> None:
    found = part(said, "batch")
    assert said["nodes"] == 2
    assert found == {"samples": [30, 30, 0], "equal": True, "workers": 2, "threads": 1}


def test_a_worker_is_killed_during_the_run(said: dict[str, Any]) -> None:
    """Nothing is lost or partially written, and no result is computed twice."""
    found = part(said, "killed")
    assert 40 <= found["done_when_killed"] < found["count"]
    assert found["files"] == found["count"]
    assert found["whole"]
    assert found["kept"]
    assert found["failed"] == found["partial"] == []


def test_predictor(said: dict[str, Any]) -> None:
    """Reads and writes images, Parquet and NumPy."""
    found = part(said, "predictor")
    assert found["numbers"] == list(range(50))
    assert found["images"]
    assert found["parquet"]
    assert found["numpy"]
    assert found["errors"][0] == ""
    assert "expected PNG, JPEG" in found["errors"][1]


def test_memory_stays_flat(said: dict[str, Any]) -> None:
    found = part(said, "memory")
    assert found["rows"] == found["different"] == 10000
    assert found["late"] < found["early"] * 1.1 + 5
    print(
        f"10000 images in {found['seconds']:.0f} s, a worker's memory {found['early']:.0f} then {found['late']:.0f} MiB"
    )


def test_rejects_a_cluster_that_is_too_small(said: dict[str, Any]) -> None:
    assert "got 3 CPUs" in said["too_many"]
    assert "9 worker(s) of 1 CPU(s)" in said["too_many"]


def test_missing_ray(tmp_path: Path) -> None:
    """This Python has no Ray."""
    photos(tmp_path / "in", 1)
    with pytest.raises(batch.BatchError, match="running on a cluster needs Ray") as caught:
        batch.run(SRCNN / "srcnn.onnx", [str(tmp_path / "in")], tmp_path / "out", cluster=batch.Cluster())
    assert caught.value.hint == "pip install 'polyop[ray]'"
