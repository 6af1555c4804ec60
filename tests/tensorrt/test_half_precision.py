# SPDX-License-Identifier: Apache-2.0
"""`polyop convert --fp16`: the model that TensorRT gets, run in ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto

from polyop._onnx.graph import graphs_of
from polyop.tensorrt.half import to_fp16
from tests.support.exported_nodes import f
from tests.support.single_node import session

# Two nodes in a branch have no half precision: Max, whose input and result are local, and suppression.
TEXT = """
<ir_version: 8, opset_import: ["": 17, "own": 1, "mmcv": 1]>
g (float[1, 2, 8, 8] x, float[1, 9, 4] boxes, float[1, 1, 9] scores, bool c) => (float[1, 2, 8, 8] y)
<float[2, 2, 1, 1] weight = {0.5, 0.25, -0.5, 1}>
{
  p = mmcv.MMCVCornerPool <mode = 0> (x)
  q = own.F (p)
  y = If (c) <
    then_branch = t () => (float[1, 2, 8, 8] u) {
      local = Conv (q, weight)
      larger = Max (local, q)
      again = Max (local, larger)
      count = Constant <value = int64[1] {5}> ()
      overlap = Constant <value = float[1] {0.5}> ()
      kept = NonMaxSuppression (boxes, scores, count, overlap)
      number = Cast <to = 1> (kept)
      mean = ReduceMean <keepdims = 0> (number)
      u = Add (again, mean)
    },
    else_branch = e () => (float[1, 2, 8, 8] v) { v = Conv (q, weight) }
  >
}
<domain: "own", opset_import: ["": 17]>
F (x) => (y) { half = Constant <value = float {0.5}> ()  y = Mul (x, half) }
"""


def test_branches_and_functions_compute_in_half_precision() -> None:
    model = onnx.parser.parse_model(TEXT)
    halved = to_fp16(model)
    onnx.checker.check_model(halved)
    kinds = [info.type.tensor_type.elem_type for info in (*halved.graph.input, *halved.graph.output)]
    assert kinds == [TensorProto.FLOAT] * 3 + [TensorProto.BOOL, TensorProto.FLOAT]
    assert not halved.functions
    weights = {t.name: t.data_type for graph in graphs_of(halved.graph) for t in graph.initializer}
    assert weights["weight"] == TensorProto.FLOAT16
    kinds = {
        info.name: info.type.tensor_type.elem_type for graph in graphs_of(halved.graph) for info in graph.value_info
    }
    assert {name: kinds[name] for name in ("p", "q", "local")} == dict.fromkeys(
        ("p", "q", "local"), TensorProto.FLOAT16
    )
    corner = np.random.default_rng(0).uniform(0, 5, (1, 9, 2)).astype(np.float32)
    feeds = {"x": f(1, 2, 8, 8), "boxes": np.concatenate([corner, corner + 2], -1), "scores": f(1, 1, 9)}
    for taken in (True, False):
        feeds["c"] = np.array(taken)
        (want,), (got,) = session(model).run(None, feeds), session(halved).run(None, feeds)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=0, atol=5e-3)
        assert np.abs(got - want).max() > 0  # computed in half precision
