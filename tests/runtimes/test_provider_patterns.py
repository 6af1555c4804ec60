# SPDX-License-Identifier: Apache-2.0
"""Patterns in sessions with polyop's execution provider: which parts of a graph become one node, that the results are
ONNX Runtime's, and that near misses stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx
import onnxruntime as ort
import pytest
import torch
from torch import nn

from tests.optimize.test_optimize_corner_pool import Along, Doubled, Flipped
from tests.runtimes.test_execution_provider import compare, provided
from tests.support.exported import write
from tests.support.optimizable import Pool, corner_pool_inputs

pytestmark = pytest.mark.filterwarnings("ignore")
Tensors = Mapping[str, torch.Tensor]


def fused(session: ort.InferenceSession) -> int:
    """Returns the number of fused nodes, also in subgraphs."""
    graphs = session.get_provider_graph_assignment_info()
    return sum(g.ep_name == "PolyopExecutionProvider" and len(g.get_nodes()) > 1 for g in graphs)


def check(path: Path, sizes: list[Tensors], expected: int = 1, tolerance: float = 1e-4, **given: object) -> None:
    """Compares the results for all inputs with those of ONNX Runtime's nodes, and of polyop's own in the file."""
    proto = onnx.load(path)
    session, nodes = provided(proto, only_faster=0, **given), provided(proto, claim="none", patterns=0)
    assert fused(session) == expected
    for tensors in sizes:
        names = {i.name for i in session.get_inputs()}
        feeds = {name: t.numpy() for name, t in tensors.items() if name in names}
        compare(session.run(None, feeds), nodes.run(None, feeds), tolerance=tolerance)


# ---- corner pooling ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "module",
    [
        *(Pool(axis, forward) for axis in (2, 3) for forward in (True, False)),
        Pool(3, True, lowest=True),
        Doubled(2, True, joined=True),
        Doubled(3, False, joined=True),
        Flipped(2),
        Along(2),
    ],
)
def test_corner_pool(module: nn.Module, tmp_path: Path) -> None:
    path = write(module, corner_pool_inputs(), tmp_path / "m.onnx", "torchscript")
    check(path, [corner_pool_inputs()], tolerance=0)


@pytest.mark.parametrize(
    "module",
    [Along(3, positions=True), Along(1), Doubled(2, True, joined=True, first=2), Pool(2, True, skip=1)],
    ids=["positions are outputs", "channels", "every other row", "another order"],
)
def test_other_running_maxima_are_left(module: nn.Module, tmp_path: Path) -> None:
    path = write(module, corner_pool_inputs(), tmp_path / "m.onnx", "torchscript")
    check(path, [corner_pool_inputs()], expected=0)
