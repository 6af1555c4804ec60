# SPDX-License-Identifier: Apache-2.0
"""Small models of one standard node, with their weights in the file or outside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def matmul(path: Path, size: int = 8, external: bool = False) -> Path:
    """x @ weight."""
    weight = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name in "xy")
    node = helper.make_node("MatMul", ["x", "weight"], ["y"], name="product")
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(weight, "weight")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=external, location=f"{path.name}.data", size_threshold=0)
    return path


def sampling(path: Path, external: bool = True) -> Path:
    """Samples x with a grid that is stored in external data."""
    grid = np.random.default_rng(0).uniform(-1, 1, (1, 40, 50, 2)).astype(np.float32)
    x, y = (
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
        for n, s in (("x", [1, 4, 20, 30]), ("y", [1, 4, 40, 50]))
    )
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], name="sampling")
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(grid, "grid")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    onnx.save(model, path, save_as_external_data=external, location=f"{path.name}.data", size_threshold=0)
    return path
