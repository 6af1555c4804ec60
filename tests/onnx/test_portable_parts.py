# SPDX-License-Identifier: Apache-2.0
"""Portable files of models with functions, external tensors in branches, and attributes that refer to others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper
from onnx.inliner import inline_local_functions

from polyop import portable
from tests.support.exported_nodes import f
from tests.support.portable_calls import assert_same, run_alone, several
from tests.support.single_node import session

# The forms of Softmax, ReduceSum and Squeeze changed in opset 13, those of Neg and Mul did not.
FUNCTIONS = """
<ir_version: 8, opset_import: ["": 11, "own": 1, "mmcv": 1]>
g (float[n, 2, 3, 4] x, bool c) => (float[n, 2, 3, 4] y) {
  a = own.Kept (x)
  b = own.Outer <k = 3> (a, c)
  d = own.Pooled (b)
  y = mmcv.MMCVCornerPool <mode = 2> (d)
}
<domain: "own", opset_import: ["": 11]>
Kept (x) => (y) { n = Neg (x)  y = Mul (n, x) }
<domain: "own", opset_import: ["": 11, "own": 1]>
Outer <k> (x, c) => (y) {
  y = If (c) <
    then_branch = t () => (float[n, 2, 3, 4] u) { u = own.Changed <axis: int = @k> (x) },
    else_branch = e () => (float[n, 2, 3, 4] v) { v = own.Kept (x) }
  >
}
<domain: "own", opset_import: ["": 11]>
Changed <axis> (x) => (y) {
  s = Softmax <axis: int = @axis> (x)
  r = ReduceSum <axes = [1], keepdims = 1> (s)
  q = Squeeze <axes = [1]> (r)
  p = Unsqueeze <axes = [1]> (q)
  y = Add (p, x)
}
<domain: "own", opset_import: ["": 11, "mmcv": 1]>
Pooled (x) => (y) { n = Neg (x)  y = mmcv.MMCVCornerPool <mode = 2> (n) }
"""


def with_functions() -> onnx.ModelProto:
    return onnx.parser.parse_model(FUNCTIONS)


@pytest.mark.parametrize("taken", [True, False])
def test_functions_are_converted_with_the_model(taken: bool, tmp_path: Path) -> None:
    """Those whose operators have changed are inlined, as are their callers; the rest stay functions."""
    feeds = {"x": f(2, 2, 3, 4), "c": np.array(taken)}
    want = session(inline_local_functions(with_functions())).run(None, feeds)
    onnx.save(with_functions(), tmp_path / "old.onnx")
    for inlined in (False, True):
        portable.convert_file(tmp_path / "old.onnx", tmp_path / "new.onnx", inlined=inlined)
        new = onnx.load(tmp_path / "new.onnx")
        onnx.checker.check_model(new)
        names = {function.name for function in new.functions}
        assert names == {"Kept", "Pooled"} | (set() if inlined else {"MMCVCornerPool"})
        assert {o.version for function in new.functions for o in function.opset_import if not o.domain} == {16}
        assert_same(run_alone(new, feeds), want)
        assert_same(session(new).run(None, feeds), want)


def test_an_old_function_of_a_polyop_node_is_replaced_or_inlined() -> None:
    """Its body has operators of the old opset."""
    text = """
    <ir_version: 8, opset_import: ["": 11, "mmcv": 1]>
    g (float[n, 2, 3, 4] x) => (float[n, 2, 3, 4] y) { y = mmcv.MMCVCornerPool <mode = 0> (x) z = mmcv.cummax <dim = 1> (x) }
    <domain: "mmcv", opset_import: ["": 11]>
    MMCVCornerPool <mode> (x) => (y) { s = Squeeze <axes = [0]> (x)  u = Unsqueeze <axes = [0]> (s)  y = Identity (u) }
    """
    model = onnx.parser.parse_model(text)
    records = portable.add_functions(model)
    assert [(record.name, record.given) for record in records] == [("mmcv::cummax", True)]
    assert_same(run_alone(model, {"x": (x := f(1, 2, 3, 4))}), [x])


def test_external_tensors_of_branches_are_copied(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    target.mkdir()

    def branch(name: str, weight: np.ndarray) -> onnx.GraphProto:
        tensor = numpy_helper.from_array(weight, f"w_{name}")
        external_data_helper.set_external_data(tensor, f"{name}.bin")
        (source / f"{name}.bin").write_bytes(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        nodes = [
            helper.make_node("MMCVCornerPool", ["x"], [f"p_{name}"], f"pool_{name}", domain="mmcv", mode=1),
            helper.make_node("Mul", [f"p_{name}", tensor.name], [f"y_{name}"], f"mul_{name}"),
        ]
        out = helper.make_tensor_value_info(f"y_{name}", TensorProto.FLOAT, [1, 2, 3, 4])
        return helper.make_graph(nodes, name, [], [out], [tensor])

    weights = {"then": f(1, 2, 1, 4), "else": -f(1, 2, 1, 4)}
    parts = {f"{name}_branch": branch(name, weight) for name, weight in weights.items()}
    infos = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 3, 4]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 3, 4]),
    ]
    graph = helper.make_graph([helper.make_node("If", ["c"], ["y"], "if", **parts)], "g", infos[:2], infos[2:])
    opsets = [helper.make_opsetid("", 16), helper.make_opsetid("mmcv", 1)]
    (source / "m.onnx").write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    portable.convert_file(source / "m.onnx", target / "m.onnx")
    for name in weights:
        (source / f"{name}.bin").unlink()
    assert {path.name for path in target.iterdir()} == {"m.onnx", "then.bin", "else.bin"}
    for name, weight in weights.items():
        feeds = {"x": (x := f(1, 2, 3, 4)), "c": np.array(name == "then")}
        pooled = np.maximum.accumulate(x, axis=2)
        assert_same(run_alone(onnx.load(target / "m.onnx"), feeds), [pooled * weight])


def test_attributes_that_refer_to_those_of_a_function() -> None:
    """Only the calls of the function know the values, also where a function passes them on."""
    text = """
    <ir_version: 8, opset_import: ["": 16, "own": 1]>
    g (float[1, 2, 3, 4] x) => (float[1, 2, 3, 4] y) { a = own.F <m = 0> (x)  y = own.G <k = 3> (a) }
    <domain: "own", opset_import: ["": 16, "own": 1]>
    G <k> (x) => (y) { n = Neg (x)  y = own.F <m: int = @k> (n) }
    <domain: "own", opset_import: ["": 16, "mmcv": 1]>
    F <m> (x) => (y) { y = mmcv.MMCVCornerPool <mode: int = @m> (x) }
    """
    model = onnx.parser.parse_model(text)
    feeds = {"x": f(1, 2, 3, 4)}
    want = session(inline_local_functions(model)).run(None, feeds)
    assert [record.given for record in portable.add_functions(model)] == [True, True]
    assert_same(run_alone(model, feeds), want)


def test_an_absent_default_next_to_a_given_attribute() -> None:
    """One node has an attribute whose definition has no default, or its default; the other has none."""
    x = {"x": f(1, 4, 6, 6), "offset": f(1, 18, 6, 6), "weight": f(2, 4, 3, 3)}
    proto = several("mmcv::MMCVDeformConv2d", x, [{"padding": [1, 1], "im2col_step": 32}, {"padding": [1, 1]}], 4)
    want = session(proto).run(None, x)
    records = portable.add_functions(proto)
    assert all(record.given for record in records), records
    assert_same(run_alone(proto, x), want)


def test_two_runs_give_the_same_bytes(tmp_path: Path) -> None:
    onnx.save(with_functions(), tmp_path / "old.onnx")
    kept = []  # so that objects of the second run have other addresses
    for i in range(2):
        kept.append(onnx.load(tmp_path / "old.onnx"))
        for inlined in (False, True):
            portable.convert_file(tmp_path / "old.onnx", tmp_path / f"{i}{inlined}.onnx", inlined=inlined)
    for inlined in (False, True):
        assert (tmp_path / f"0{inlined}.onnx").read_bytes() == (tmp_path / f"1{inlined}.onnx").read_bytes()
