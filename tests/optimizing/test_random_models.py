# SPDX-License-Identifier: Apache-2.0
"""polyop optimize, portable and convert --fp16 on random models: their results equal the original's at three sizes.

`make fuzz` runs new seeds for as long as requested.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.support import random_models
from tests.support.random_models import check, failing_steps, random_model

pytestmark = pytest.mark.filterwarnings("ignore")

PARTS, SEEDS = 6, 10


@pytest.mark.parametrize("part", range(PARTS))
def test_rewritten_models_are_equal(part: int, tmp_path: Path) -> None:
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        (folder := tmp_path / str(seed)).mkdir()
        try:
            check(random_model(seed), folder)
        except Exception as error:
            raise AssertionError(f"random_model({seed}, {failing_steps(seed)}) fails: {error}") from error


def test_the_models_have_all_kinds_of_parts() -> None:
    """A seed gives the same model every time, and fewer steps the same first nodes."""
    models = [random_model(seed) for seed in range(PARTS * SEEDS)]
    assert {model.proto.opset_import[0].version for model in models} >= {11, 12, 15, 16, 17}
    used = {node.op_type for model in models for node in random_models._nodes(model.proto)}
    assert used >= {
        "If",
        "Loop",
        "Scan",
        "MMCVCornerPool",
        "cummax",
        "NonMaxSuppression",
        "RoiAlign",
        "GridSample",
        "Resize",
    }
    assert any(model.proto.functions for model in models)
    assert random_model(3).proto == models[3].proto
    fewer = random_model(3, models[3].steps - 1).proto.graph.node
    assert list(fewer)[:-1] == list(models[3].proto.graph.node)[: len(fewer) - 1]


def test_a_fault_is_found_and_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault is in graphs with a Scan."""

    def broken(model: onnx.ModelProto) -> onnx.ModelProto:
        if any(node.op_type == "Scan" for node in model.graph.node):
            raise ValueError("Scan")
        return model

    monkeypatch.setattr(random_models, "to_fp16", broken)
    seed = next(s for s in range(99) if any(node.op_type == "Scan" for node in random_model(s).proto.graph.node))
    steps = failing_steps(seed)
    assert any(node.op_type == "Scan" for node in random_model(seed, steps).proto.graph.node)
    assert not any(node.op_type == "Scan" for node in random_model(seed, steps - 1).proto.graph.node)
