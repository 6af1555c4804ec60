"""polyop optimize: instance normalisation written out, in graphs of both exporters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyop.optimizing import optimize
from tests.support.exported import EXPORTERS, nodes, optimized, write
from tests.support.optimizable import Written, instance_norm_inputs

pytestmark = pytest.mark.filterwarnings("ignore")

PATTERN = "instance normalisation"


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("module", [Written("variance"), Written("square"), Written("pow", affine=False)],
                         ids=["variance", "square", "pow, without scale and shift"])  # fmt: skip
def test_instance_norm(module: Written, exporter: str, tmp_path: Path) -> None:
    dynamic = {"x": {2: "h", 3: "w"}} if exporter == "torchscript" else None
    before = write(module, instance_norm_inputs(2, 6, 20, 24), tmp_path / "before.onnx", exporter, dynamic)
    sizes = [(2, 6, 20, 24), (2, 6, 9, 31)] if dynamic else [(2, 6, 20, 24)]
    after, report = optimized(before, [instance_norm_inputs(*size) for size in sizes])
    assert report.replaced[PATTERN] == 1, str(report)
    left = nodes(after)
    assert left["polyop::InstanceNormalization"] == 1
    assert left["ReduceMean"] + left["Sqrt"] == 0
    assert left["Mul"] == 1  # the one before it: scale and shift are inputs of the node


def test_other_dimensions_are_kept(tmp_path: Path) -> None:
    """A mean over channels is layer normalisation."""
    given = instance_norm_inputs(2, 6, 8, 8)
    before = write(Written("square", over=(1, 2, 3)), given, tmp_path / "before.onnx", "torchscript")
    _, report = optimized(before, [given])
    assert report.replaced[PATTERN] == 0


@pytest.mark.parametrize("given", ["nothing", "inputs", "shapes"])
def test_a_pattern_that_holds_for_one_size_is_not_replaced(given: str) -> None:
    """The channels are dynamic, and the domain of ONNX's operators has its other name."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[2, 3]),
        helper.make_node("Sub", ["x", "mean"], ["centred"]),
        helper.make_node("Mul", ["centred", "centred"], ["square"]),
        helper.make_node("ReduceMean", ["square"], ["variance"], axes=[2, 3]),
        helper.make_node("Add", ["variance", "epsilon"], ["added"]),
        helper.make_node("Sqrt", ["added"], ["root"]),
        helper.make_node("Div", ["centred", "root"], ["y"]),
    ]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", "c", "h", "w"]) for name in "xy"]
    epsilon = numpy_helper.from_array(np.float32(1e-3), "epsilon")
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [epsilon])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx", 17)], ir_version=8)
    how = {"nothing": {}, "inputs": {"inputs": {"x": np.ones((1, 6, 9, 9), np.float32)}},
           "shapes": {"shapes": {"x": [1, 6, 9, 9]}}}[given]  # fmt: skip
    report = optimize(model, all=True, **how)
    (finding,) = report.findings
    assert not finding.replaced
    assert "expected dimension 0 to be C" in finding.why
