# SPDX-License-Identifier: Apache-2.0
"""tools/zoo.py: its models, its comparison with float64, its rows and its page. Nothing is exported here."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.processes import ROOT

sys.path.append(str(ROOT / "tools"))
import zoo
from zoo_models import entries


def test_models() -> None:
    found = list(entries())
    assert len(found) >= 150
    assert len({entry.package for entry in found}) >= 25
    assert max(Counter((entry.package, entry.name) for entry in found).values()) == 1
    assert all(len(set(sizes)) == 3 for entry in found for sizes in entry.sizes.values())


def test_packages_are_in_the_requirements() -> None:
    lines = (ROOT / "requirements" / "zoo.txt").read_text(encoding="utf-8").splitlines()
    packages = {line.partition("==")[0] for line in lines}
    assert {entry.package for entry in entries()} - packages == {"transformers"}


def test_a_file_may_differ_as_much_as_float32() -> None:
    exact = torch.tensor([1.0, 2.0, 100.0], dtype=torch.float64)
    narrow = (exact + 0.01).float()
    assert zoo.difference([(narrow, exact)], [exact.numpy() + 0.05]) == ""
    assert "differs by 0.2 of 100" in zoo.difference([(narrow, exact)], [exact.numpy() + np.array([0.2, 0, 0])])
    assert "expected shape [3], got [2]" in zoo.difference([(narrow, exact)], [exact.numpy()[:2]])
    assert "expected 1 outputs, got 0" in zoo.difference([(narrow, exact)], [])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_unusual_numbers_must_be_equal(value: float) -> None:
    exact = torch.tensor([1.0, value], dtype=torch.float64)
    assert zoo.difference([(exact.float(), exact)], [exact.numpy()]) == ""
    assert "differs by" in zoo.difference([(exact.float(), exact)], [np.array([1.0, 2.0])])


def test_rows_of_several_runs(tmp_path: Path) -> None:
    rows = [
        {"package": "p", "model": "a", "version": "1", "static": ["right", ""], "dynamic": ["refused", "a branch"]},
        {"package": "p", "model": "b", "built": "ImportError"},
        {"package": "p", "model": "a", "openvino": ["wrong", "output 0"]},
    ]
    file = tmp_path / "rows"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    text = zoo.page([*zoo.merged(file).values()])
    assert "| p 1 | a | yes | refused | - | - | wrong | - | a branch; output 0 |" in text
    assert "# Models of 1 packages" in text
    assert "\n1 of the " in text
    assert "| dynamic | 1 | 0 (0.0 %) | 0 | 1 |" in text
    assert "| OpenVINO | 1 | 0 (0.0 %) | 1 | 0 |" in text
    assert "| p | b |" not in text
