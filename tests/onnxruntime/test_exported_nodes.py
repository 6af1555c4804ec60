# SPDX-License-Identifier: Apache-2.0
"""Every exported node runs in ONNX Runtime and has the types and shapes that its exporter expects."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.exported_nodes import NODES, Node
from tests.support.single_node import run


@pytest.mark.parametrize("node", NODES, ids=lambda n: f"{n.name}-{len(n.inputs)}")
def test_node_runs(node: Node) -> None:
    inputs = {f"in{i}": array for i, array in enumerate(node.inputs)}
    names = [f"out{o}" for o in range(len(node.outputs))]
    results = run(node.name, inputs, names, threads=2, **node.attributes)
    for result, (dtype, shape) in zip(results, node.outputs, strict=True):
        assert result.dtype == dtype
        assert shape is None or result.shape == shape
        assert np.isfinite(result).all()
