# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: instance normalisation written out, in graphs of both exporters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyop._commands import main as commands
from polyop.optimizing import optimize
from tests.support.exported import EXPORTERS, nodes, optimized, write
from tests.support.optimizable import Written, instance_norm_inputs

pytestmark = pytest.mark.filterwarnings("ignore")

PATTERN = "instance normalisation"


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize(
    "module",
    [Written("variance"), Written("square"), Written("pow", affine=False)],
    ids=["variance", "square", "pow, without scale and shift"],
)
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


def channels_of_any_number() -> onnx.ModelProto:
    """Returns a model with dynamic channels, in which the domain of ONNX's operators has its other name."""
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
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx", 17)], ir_version=8)


@pytest.mark.parametrize("given", ["nothing", "inputs", "shapes"])
def test_a_pattern_that_holds_for_one_size_is_not_replaced(given: str) -> None:
    model = channels_of_any_number()
    how = {
        "nothing": {},
        "inputs": {"inputs": {"x": np.ones((1, 6, 9, 9), np.float32)}},
        "shapes": {"shapes": {"x": [1, 6, 9, 9]}},
    }[given]
    report = optimize(model, all=True, **how)
    (finding,) = report.findings
    assert not finding.replaced
    assert "expected dimension 0 to be C" in finding.details


LAYERS = """
<ir_version: 8, opset_import: ["": 11]>
g (float[n, length, 6] x) => (float[n, length, 6] y) {
  mean = ReduceMean <axes = [AXIS]> (x)
  centred = Sub (x, mean)
  two = Constant <value = float {2}> ()
  square = Pow (centred, two)
  variance = ReduceMean <axes = [AXIS]> (square)
  epsilon = Constant <value = float {0.00001}> ()
  added = Add (variance, epsilon)
  root = Sqrt (added)
  divided = Div (centred, root)
  scale = Constant <value = float[6] {1, 2, 3, 4, 5, 6}> ()
  scaled = Mul (divided, scale)
  shift = Constant <value = float[6] {0, 1, 0, 1, 0, 1}> ()
  y = Add (scaled, shift)
}
"""


@pytest.mark.parametrize("axis", [-1, 2])
@pytest.mark.parametrize("length", ["length", "5", "6"])
def test_layer_normalisation_is_recognized(axis: int, length: str) -> None:
    """Over the last dimension of a tensor with three, as text recognizers have it: dimension 1 is not the channels."""
    model = onnx.parser.parse_model(LAYERS.replace("AXIS", str(axis)).replace("length", length))
    (finding,) = optimize(model, all=True).findings
    assert (finding.pattern, finding.replaced) == ("layer normalisation", False)
    assert finding.why == "polyop has no kernel for it"


def test_a_scale_of_the_channels_is_instance_normalisation() -> None:
    """The same graph over the last dimension, with a value per row."""
    text = LAYERS.replace("AXIS", "2").replace("length", "6").replace("float[6]", "float[6, 1]")
    assert dict(optimize(onnx.parser.parse_model(text), all=True).replaced) == {PATTERN: 1}


def test_reasons_are_a_few_words_and_details_need_verbose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ONNX Runtime's errors have hundreds of characters."""
    onnx.save(channels_of_any_number(), tmp_path / "m.onnx")
    words = ["optimize", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "x.onnx"), "--all"]
    assert commands.main(words) == 0
    out = capsys.readouterr().out
    assert "no: the comparison failed " in out
    assert max(map(len, out.split(str(tmp_path))[0].splitlines())) < 100
    assert "expected dimension 0 to be C" not in out
    assert "--verbose prints the full reasons" in out
    assert commands.main([*words, "--verbose"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "expected dimension 0 to be C" in line]
    assert line.startswith("  instance normalisation at root: the comparison failed: node ")
    assert "ONNXRuntimeError" not in line
    assert ".cc:" not in line


def test_negative_dimensions_are_unknown() -> None:
    """PaddlePaddle's exporter writes -1."""
    model = onnx.parser.parse_model(LAYERS.replace("AXIS", "2"))
    for dim in model.graph.input[0].type.tensor_type.shape.dim[:2]:
        dim.dim_value = -1
    assert len(optimize(model).findings) == 1
