# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: the same modules in files of old and new opsets."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from torch import nn

from tests.support.exported import Tensors, nodes, optimized, run, write
from tests.support.optimizable import (
    Pool,
    Sample,
    Written,
    corner_pool_inputs,
    grid_sample_inputs,
    instance_norm_inputs,
)

pytestmark = pytest.mark.filterwarnings("ignore")

OLD, NEW = [11, 13, 16], [21, 23]
MODULES = {
    "corner pooling": (Pool(2, False), corner_pool_inputs()),
    "grid sampling": (Sample(True), grid_sample_inputs()),
    "instance normalisation": (Written("pow"), instance_norm_inputs(2, 6, 20, 24)),
}


class Standard(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.instance_norm(x * 1.5, eps=1e-3)


MODULES["InstanceNormalization"] = (Standard(), instance_norm_inputs(2, 6, 20, 24))


def check(before: Path, given: Tensors, kind: str, opset: int) -> None:
    (had,) = (o.version for o in onnx.load(before).opset_import if o.domain == "")
    assert had == opset
    after, report = optimized(before, [given])
    assert dict(report.replaced) == {kind: 1}, str(report)
    assert sum(count for name, count in nodes(after).items() if "::" in name) == 1
    if not report.needs_polyop:
        for want, got in zip(run(before, given, False), run(after, given, False), strict=True):
            torch.testing.assert_close(torch.from_numpy(got), torch.from_numpy(want), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("opset", OLD)
@pytest.mark.parametrize("kind", MODULES)
def test_old_opsets(kind: str, opset: int, tmp_path: Path) -> None:
    module, given = MODULES[kind]
    check(write(module, given, tmp_path / "before.onnx", "torchscript", opset=opset), given, kind, opset)


@pytest.mark.parametrize("opset", NEW)
@pytest.mark.parametrize("kind", MODULES)
def test_new_opsets(kind: str, opset: int, tmp_path: Path) -> None:
    module, given = MODULES[kind]
    check(write(module, given, tmp_path / "before.onnx", "dynamo", opset=opset), given, kind, opset)
