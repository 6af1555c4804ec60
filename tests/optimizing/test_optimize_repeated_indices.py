# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: torch.repeat_interleave by a tensor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch

import polyop
from polyop.optimizing import optimize
from tests.support.exported import nodes, optimized, write


class _Repeated(torch.nn.Module):
    def forward(self, x: torch.Tensor, repeats: torch.Tensor) -> torch.Tensor:
        return x.repeat_interleave(repeats, 0)


def _exported(path: Path, x: torch.Tensor, repeats: torch.Tensor) -> Path:
    rows = torch.export.Dim("rows")
    given = {"x": x, "repeats": repeats}
    with polyop.translations():
        return write(_Repeated(), given, path, "dynamo", {"x": {0: rows}, "repeats": {0: rows}})


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_rows_of_any_number(dtype: torch.dtype, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(500, 4, generator=generator)
    repeats = torch.randint(0, 5, (500,), generator=generator).to(dtype)
    path = _exported(tmp_path / "before.onnx", x, repeats)
    after, report = optimized(path, [{"x": x, "repeats": repeats}])
    assert report.replaced["repeated indices"] == 1, str(report)
    assert nodes(after)["polyop::RepeatIndices"] == 1
    assert not {"CumSum", "ScatterElements"} & set(nodes(after))
    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    session = ort.InferenceSession(after, options)
    for times in ([], [0], [3], [0, 0], [0, 2, 0, 1, 0]):
        rows = np.arange(len(times) * 4, dtype=np.float32).reshape(-1, 4)
        feeds = {"x": rows, "repeats": np.array(times, repeats.numpy().dtype)}
        (got,) = session.run(None, feeds)
        np.testing.assert_array_equal(got, np.repeat(feeds["x"], feeds["repeats"], 0))


@pytest.mark.parametrize("change", ["exclusive", "reverse", "reduction", "updates"])
def test_others_are_kept(change: str, tmp_path: Path) -> None:
    path = _exported(tmp_path / "before.onnx", torch.ones(50, 4), torch.ones(50, dtype=torch.int64))
    model = onnx.load(path)
    sums = [node for node in model.graph.node if node.op_type == "CumSum"]
    scatter = next(node for node in model.graph.node if node.op_type == "ScatterElements")
    if change == "reduction":
        del scatter.attribute[:]
        scatter.attribute.append(onnx.helper.make_attribute("reduction", "max"))
    elif change == "updates":
        ones = next(node for node in model.graph.node if node.output[0] == scatter.input[2])
        del ones.attribute[:]  # zeros
        ones.attribute.append(onnx.helper.make_attribute("value", onnx.numpy_helper.from_array(np.zeros(1, np.int64))))
    else:
        del sums[-1].attribute[:]
        sums[-1].attribute.append(onnx.helper.make_attribute(change, 1))
    onnx.save(model, path)
    feeds = {"x": np.ones((50, 4), np.float32), "repeats": np.ones(50, np.int64)}
    report = optimize(path, tmp_path / "after.onnx", inputs=feeds)
    assert not report.replaced["repeated indices"], str(report)
