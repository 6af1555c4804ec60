# SPDX-License-Identifier: Apache-2.0
"""The comparison behind polyop optimize: every element relative to its own scale."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyop._onnx.comparing import compare, with_rounding
from polyop.optimizing import optimize
from polyop.optimizing.matching import Match, failed_match
from polyop.optimizing.patterns import instance_norm
from polyop.optimizing.target import Target

F = np.float32


def detections() -> np.ndarray:
    """Boxes in pixels, scores and classes, a row each."""
    rng = np.random.default_rng(0)
    boxes, scores = rng.uniform(0, 2000, (50, 4)), rng.uniform(0.1, 1, (50, 1))
    return np.concatenate([boxes, scores, rng.integers(0, 80, (50, 1))], 1).astype(F)


def changed(array: np.ndarray, at: tuple[int, ...], by: float) -> np.ndarray:
    result = array.copy()
    result[at] += by
    return result


def test_elements_are_compared_with_their_own_scale() -> None:
    table = detections()
    assert not compare(table, table + F(1e-6) * table).why
    assert not compare(table, changed(table, (3, 0), 0.05), 1e-3).why  # pixels
    difference = compare(table, changed(table, (3, 4), 0.05), 1e-3)  # a score
    assert difference.why.startswith("differs by 0.05 at [3, 4]: expected ")
    assert difference.largest == pytest.approx(0.05, rel=1e-3)
    features = np.random.default_rng(0).normal(size=(2, 8, 6, 6)).astype(F)
    features[:, 5] *= 1e-6
    assert compare(features, changed(features, (1, 5, 2, 2), 1e-7)).why
    assert not compare(features, changed(features, (1, 4, 2, 2), 1e-7)).why
    tiny = np.full((3, 7), 1e-9, F)
    assert compare(tiny, tiny * 2).why


def test_what_is_not_finite_must_be_equal() -> None:
    values = np.array([[1, np.nan, np.inf, -np.inf, 0, 2]], F)
    assert compare(values, values.copy()).largest == 0
    for i, other in ((0, np.nan), (1, 1), (2, 3e38), (2, -np.inf), (3, np.nan)):
        got = values.copy()
        got[0, i] = other
        assert compare(values, got, 1e3).largest == np.inf
        assert compare(values, got, 1e3).why


def test_the_rest_must_be_equal() -> None:
    integers = np.arange(6)
    assert compare(integers, changed(integers, (5,), 1)).why == "differs by 1 at [5]: expected 5, got 6"
    assert compare(np.array(True), np.array(False)).why
    assert compare(np.array(["a"], object), np.array(["b"], object)).why
    assert "expected float32[2, 3], got float32[3, 2]" in compare(np.zeros((2, 3), F), np.zeros((3, 2), F)).why
    assert compare(np.zeros(2, F), np.zeros(2)).why
    assert compare([integers], [integers, integers]).why
    assert compare(None, integers).why
    assert not compare([integers, None], [integers, None]).why
    assert not compare(np.zeros((0, 4), F), np.zeros((0, 4), F)).why


def test_cancellation_is_allowed_what_rounded_inputs_cause() -> None:
    """A constant channel minus its mean is rounding error alone, which another order of additions changes."""
    x = np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(F)
    x[:, 1] = 10.1

    def normalized(x: np.ndarray, order: slice) -> np.ndarray:
        flat = x.reshape(*x.shape[:2], -1)[..., order]
        centred = x - np.add.accumulate(flat, -1, dtype=F)[..., -1][..., None, None] / F(64)
        return centred / np.sqrt((centred * centred).mean((2, 3), keepdims=True) + F(1e-5))

    reference, got = normalized(x, slice(None)), normalized(x, slice(None, None, -1))
    got[0, 1] *= F(0.98)
    noisy = normalized(with_rounding({"x": x})["x"], slice(None))
    assert compare(reference, got).why
    assert not compare(reference, got, noisy=noisy).why
    assert compare(reference, changed(got, (0, 0, 2, 2), 0.01), noisy=noisy).why  # another channel
    assert compare(reference, changed(got, (0, 1, 2, 2), 1), noisy=noisy).why  # more than the tolerance of the tensor


def test_a_replacement_that_changes_small_channels_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is 1 % of a channel whose values are a millionth of the others'."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 40, 50])
    scale = numpy_helper.from_array(np.array([1, 1e-6], F), "scale")
    shift = numpy_helper.from_array(np.zeros(2, F), "shift")
    node = helper.make_node("InstanceNormalization", ["x", "scale", "shift"], ["y"])
    graph = helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name="y")], [scale, shift])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def find(factor: float):
        def found(scope):
            (root,) = scope.graph

            def build(b, inputs):
                scales = b.constant(np.array([1, 1e-6 * factor]), F)
                return b.node(instance_norm.NODE, [inputs[0], scales, b.constant(np.zeros(2), F)], {"epsilon": 1e-5})

            yield Match("norm", [root.inputs[0]], [root.outputs[0]], build, 1e9)

        return found

    monkeypatch.setattr("polyop.optimizing.optimizer.patterns_for", lambda target: [instance_norm])
    for factor, replaced in ((1.0, True), (1.01, False)):
        monkeypatch.setattr(instance_norm, "find", find(factor))
        (finding,) = optimize(model).findings
        assert finding.replaced == replaced, finding
    assert finding.why.startswith("its results differ by 1.")
    assert finding.details.startswith("output 'y' differs by 1.")


# ---- patterns, scopes and groups that fail ---------------------------------------------------------------------------


NORM = """
<ir_version: 8, opset_import: ["": 17]>
g (float[1, 3, 40, 40] x, bool c) => (float[1, 3, 40, 40] y) {
  scale = Constant <value = float[3] {1, 2, 3}> ()
  shift = Constant <value = float[3] {0, 0, 0}> ()
  n = InstanceNormalization (x, scale, shift)
  OTHER
}
"""


def of_text(other: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(NORM.replace("OTHER", other))


REPLACED = {"InstanceNormalization": 1}


@pytest.mark.parametrize(
    "other",
    [
        # ArgMax, Softmax, Concat… without their attributes, which have defaults
        "i = ArgMax (n)  f = Cast <to = 1> (i)  s = Softmax (n)  g = Gather (s, zero)  zero = Constant <value_int = 0> () y = Mul (n, f)".replace(
            "g = Gather (s, zero)  zero = Constant <value_int = 0> ()",
            "zero = Constant <value_int = 0> ()  g = Gather (s, zero)",
        ),
        # the size of a sequence, and its elements
        "q = SequenceConstruct (n, x)  l = SequenceLength (q)  at = Constant <value_int = 0> ()  y = SequenceAt (q, at)",
        # a sequence that goes through a branch
        "q = If (c) <then_branch = t () => (seq(float[1, 3, 40, 40]) a) { a = SequenceConstruct (n, x) },"
        " else_branch = e () => (seq(float[1, 3, 40, 40]) b) { b = SequenceConstruct (x, n) }>"
        "  at = Constant <value_int = 0> ()  y = SequenceAt (q, at)",
        # strings
        'w = Constant <value_strings = ["a", "b"]> ()  v = Identity (w)  y = Neg (n)',
    ],
    ids=["defaults", "a sequence", "a sequence from a branch", "strings"],
)
def test_nodes_that_no_pattern_foresees_do_not_end_it(other: str) -> None:
    assert dict(optimize(of_text(other), all=True).replaced) == REPLACED


def test_both_names_of_the_domain_of_onnx() -> None:
    model = of_text("y = Neg (n)")
    model.opset_import[0].domain = "ai.onnx"
    model.graph.node[2].domain = "ai.onnx"
    assert dict(optimize(model, all=True).replaced) == REPLACED


@pytest.mark.parametrize("way", ["the search", "a match", "the nodes"])
def test_a_pattern_that_fails_is_reported_and_the_others_apply(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("axis")

    class Failing:
        NAME, ORDER = "failing", 1

        @staticmethod
        def find(scope):
            if way == "the search":
                fail()
            for node in scope.graph:
                if node.op_type == "Neg":
                    output = node.outputs[0]
                    match = Match("here", [node.inputs[0]], [output], fail, 1)
                    yield failed_match("here", KeyError("axis")) if way == "a match" else match

    from polyop.optimizing import optimizer

    patterns = optimizer.patterns_for(Target.ONNXRUNTIME)
    monkeypatch.setattr(optimizer, "patterns_for", lambda target: [Failing, *patterns])
    report = optimize(of_text("y = Neg (n)"), all=True)
    assert dict(report.replaced) == REPLACED
    (finding,) = (f for f in report.findings if f.pattern == "failing")
    assert not finding.replaced
    assert finding.why in ("the pattern failed", "the comparison failed")
    assert finding.details == "KeyError: 'axis'"
    assert report.details() == [f"failing at {finding.where}: {finding.why}: KeyError: 'axis'"]


def test_a_scope_that_cannot_be_read_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch fails alone; the rest of the graph is searched nevertheless."""
    from polyop.optimizing.scope import Scope

    other = (
        "y = If (c) <then_branch = t () => (float[1, 3, 40, 40] a) { a = Neg (n) },"
        " else_branch = e () => (float[1, 3, 40, 40] b) { b = Abs (n) }>"
    )
    whole = Scope._look
    monkeypatch.setattr(Scope, "_look", lambda self: whole(self) if self.graph is self.model.graph else 1 / 0)
    report = optimize(of_text(other), all=True)
    assert dict(report.replaced) == REPLACED
    assert report.notes == [
        f"patterns were not applied to If.{b}_branch, which does not run alone" for b in ("then", "else")
    ]
    assert all("ZeroDivisionError" in details for details in report.details())
    monkeypatch.setattr(Scope, "_look", lambda self: 1 / 0)
    report = optimize(of_text(other), all=True)
    assert not report.replaced
    assert report.notes == ["patterns were not applied: the graph's tensors cannot be read"]


def test_infinity_in_the_report_is_null_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import json

    from polyop._commands import main as commands
    from polyop._onnx.comparing import Difference
    from polyop.optimizing import optimizer

    onnx.save(of_text("y = Neg (n)"), tmp_path / "m.onnx")
    monkeypatch.setattr(optimizer, "compare", lambda *_, **__: Difference(np.inf, "differs by inf", np.inf))
    assert commands.main(["optimize", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "x.onnx"), "--all", "--json"]) == 0

    def reject(text: str) -> None:
        raise AssertionError(f"JSON has no {text}")

    report = json.loads(capsys.readouterr().out, parse_constant=reject)
    (finding,) = report["findings"]
    assert finding["why"] == "then the model's results differ by inf"
