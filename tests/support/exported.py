# SPDX-License-Identifier: Apache-2.0
"""Exports modules with both of PyTorch's exporters and runs the files before and after polyop optimize."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch

import polyop
from polyop.optimizing import Report, optimize

EXPORTERS = ["dynamo", "torchscript"]
Tensors = Mapping[str, torch.Tensor]


def write(
    module: torch.nn.Module,
    given: Tensors,
    path: Path,
    exporter: str,
    dynamic: Mapping[str, Any] | None = None,
    opset: int = 18,
    **more: Any,
) -> Path:
    """Exports `module` to `path`.

    `dynamic` is `dynamic_shapes` for the dynamo exporter and `dynamic_axes` for the other; `more` is for the dynamo
    exporter only.
    """
    if exporter == "dynamo":
        how = {"dynamo": True, "dynamic_shapes": dynamic, "external_data": False, **more}
    else:
        how = {"dynamo": False, "dynamic_axes": dynamic}
    torch.onnx.export(
        module.eval(), tuple(given.values()), str(path), input_names=list(given), opset_version=opset, verbose=False, **how
    )  # fmt: skip
    return path


def nodes(model: Path | onnx.ModelProto) -> Counter[str]:
    """Counts the nodes by name, in subgraphs too, but not in functions."""
    model = model if isinstance(model, onnx.ModelProto) else onnx.load(model, load_external_data=False)
    counted: Counter[str] = Counter()

    def count(graph: onnx.GraphProto) -> None:
        for node in graph.node:
            counted[f"{node.domain}::{node.op_type}" if node.domain else node.op_type] += 1
            for attribute in node.attribute:
                for inner in [attribute.g, *attribute.graphs]:
                    count(inner)

    count(model.graph)
    return counted


def run(path: Path, given: Tensors, with_polyop: bool = True) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if with_polyop:
        options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = {i.name for i in session.get_inputs()}
    return session.run(None, {name: tensor.numpy() for name, tensor in given.items() if name in names})


def optimized(before: Path, given: Sequence[Tensors], tolerance: float = 1e-4, **options: Any) -> tuple[Path, Report]:
    """Optimizes the file with the first inputs and compares the results for all inputs.

    Returns the new file and the report.
    """
    after = before.with_name("after.onnx")
    report = optimize(before, after, inputs={n: t.numpy() for n, t in given[0].items()}, **{"all": True, **options})
    for feeds in given:
        for want, got in zip(run(before, feeds), run(after, feeds), strict=True):
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    return after, report
