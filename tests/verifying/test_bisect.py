# SPDX-License-Identifier: Apache-2.0
"""polyop.verifying: the first node whose output differs, and pairs of the values of two graphs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyop.verifying import sides as sides_module
from polyop.verifying.bisecting import PROBES, BisectError, Found, Sides, bisect
from polyop.verifying.differences import Tolerance, difference
from polyop.verifying.networks import Network, pair
from polyop.verifying.sides import How, InOnnxRuntime, open_side

HEADER = '<ir_version: 8, opset_import: ["": 17, "my": 1]> '


def parsed(graph: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEADER + graph)


def chain(count: int, wrong: int = -1, prefix: str = "t", kinds: str = "Neg Tanh") -> onnx.ModelProto:
    """Returns y = f(… f(x)), in which one node is another function."""
    lines, last = [], "x"
    for i in range(count):
        kind = "Sin" if i == wrong else kinds.split()[i % len(kinds.split())]
        lines.append(f"{prefix}{i} = {kind} ({last})")
        last = f"{prefix}{i}"
    body = "\n".join([*lines, f"y = Identity ({last})"])
    return parsed(f"g (float[2, 5] x) => (float[2, 5] y) {{ {body} }}")


def search(a: onnx.ModelProto, b: onnx.ModelProto, **feeds: object) -> tuple[Found | None, Sides]:
    arrays = {name: np.asarray(value) for name, value in feeds.items()}
    sides = Sides(Network(a), Network(b), (How(), How()), arrays, 1e-5)
    return bisect(sides, sides.ours.outputs, 1e-4)[0], sides


def found_in(a: onnx.ModelProto, b: onnx.ModelProto, **feeds: object) -> Found:
    """Returns what was found, which must differ alone."""
    found, sides = search(a, b, **feeds)
    assert found is not None
    assert found.alone > sides.limit
    ours, theirs = (next(iter(open_side(part, How()).run(found.feeds).values())) for part in found.parts)
    assert not difference(ours, theirs, Tolerance()).ok
    return found


X = np.linspace(0.1, 1, 10, dtype=np.float32).reshape(2, 5)


@pytest.mark.parametrize(
    "wrong", [77, pytest.param(0, marks=pytest.mark.rest), pytest.param(199, marks=pytest.mark.rest)]
)
def test_finds_the_node_in_few_runs_of_few_outputs(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = []
    run = InOnnxRuntime.run
    monkeypatch.setattr(InOnnxRuntime, "run", lambda self, feeds: outputs.append(len(self.outputs)) or run(self, feeds))
    found = found_in(chain(200), chain(200, wrong), x=X)
    assert (found.tensor, len(found.nodes)) == (f"t{wrong}", 1)
    assert max(outputs) <= PROBES + 1
    assert len(outputs) < 2 * 10


def test_other_names_are_paired_by_position() -> None:
    found = found_in(chain(40), chain(40, 21, "other"), x=X)
    assert found.by_position
    assert "Tanh" in found.nodes[0]
    assert found.tensor in ("t21", "t22")


def test_a_graph_that_was_optimized() -> None:
    """The second graph has one node for two, and another fault."""
    a = parsed(
        "g (float[2,5] x) => (float[2,5] y) { a = Tanh (x) b = Mul (a, a) c = Add (b, b) d = Exp (c) y = Neg (d) }"
    )
    b = parsed(
        "g (float[2,5] x) => (float[2,5] y) { a = Tanh (x) two = Add (a, a) c = Mul (two, a) d = Tanh (c) y = Neg (d) }"
    )
    found = found_in(a, b, x=X)
    assert (found.tensor, found.nodes) == ("d", ("Exp",))


def test_numbers_as_names_of_other_tensors_are_no_pairs() -> None:
    a = parsed("g (float[2,5] x) => (float[2,5] y) { n1 = Exp (x) n2 = Tanh (n1) n3 = Neg (n2) y = Sin (n3) }")
    b = parsed("g (float[2,5] x) => (float[2,5] y) { n2 = Exp (x) n3 = Tanh (n2) n1 = Neg (n3) y = Cos (n1) }")
    assert pair(Network(a), Network(b)).of == {"n1": "n2", "n2": "n3", "n3": "n1", "y": "y"}
    assert found_in(a, b, x=X).nodes == ("Sin",)


def test_two_branches_of_a_graph() -> None:
    """A difference in one of two parallel branches, each of which agrees at its start."""
    text = """g (float[2,5] x) => (float[2,5] y) {
        a = Tanh (x) b = Exp (a) c = Neg (b) d = Sin (x) e = %s (d) f = Neg (e) s = Add (c, f) y = Identity (s) }"""
    assert found_in(parsed(text % "Exp"), parsed(text % "Cos"), x=X).tensor == "e"


def test_a_difference_that_vanishes_on_its_way() -> None:
    """What differs in `a` is lost in `b` and is there again in `y`: the search does not end between them."""
    text = """g (float[2,5] x) => (float[2,5] y) {
        a = %s (x) zero = Sub (a, a) b = Add (zero, x) c = Tanh (b) d = Neg (c) y = Add (d, a) }"""
    assert found_in(parsed(text % "Exp"), parsed(text % "Cos"), x=X).tensor == "a"


LOOP = """g (bool c, float[2] x, int64 n) => (float[2] y) {
    a = Neg (x)
    i = If (c) <then_branch = t () => (float[2] p) { q = Relu (a) p = %s (q) }, else_branch = e () => (float[2] r) { r = Neg (a) }>
    l = Loop (n, c, i) <body = b (int64 k, bool on, float[2] s) => (bool o, float[2] u) {
        o = Identity (on) m = %s (k, n) z = Cast <to = 1> (m) v = Add (s, a) u = Add (v, z) }>
    y = Identity (l)
}"""
FUNCTION = """g (float[2,5] x) => (float[2,5] y) { a = Tanh (x) y = my.f (a) }
<domain: "my", opset_import: ["": 17]> f (p) => (q) { r = Neg (p) q = %s (r) }"""


def test_descends_into_if_loop_and_functions() -> None:
    inputs = {"c": np.array(True), "x": np.float32([-1, -2]), "n": np.array(4)}
    branch = found_in(parsed(LOOP % ("Neg", "Less")), parsed(LOOP % ("Sin", "Less")), **inputs)
    assert (branch.path, branch.nodes) == (("If, then_branch",), ("Neg",))
    loop = found_in(parsed(LOOP % ("Neg", "Less")), parsed(LOOP % ("Neg", "Greater")), **inputs)
    assert (loop.path, loop.nodes) == (("Loop, iteration 0",), ("Less",))
    late = LOOP.replace("(k, n)", "(three, k)").replace(
        "a = Neg (x)", "a = Neg (x) three = Constant <value = int64 {3}> ()"
    )
    later = found_in(
        parsed(late % ("Neg", "LessOrEqual")), parsed(late % ("Neg", "Less")), **{**inputs, "n": np.array(9)}
    )
    assert (later.path, later.nodes) == (("Loop, iteration 3",), ("LessOrEqual",))
    function = found_in(parsed(FUNCTION % "Exp"), parsed(FUNCTION % "Sin"), x=X)
    assert (function.path, function.nodes) == (("function my::f",), ("Exp",))


SCAN = """g (float[2] start, float[5,2] rows) => (float[2] s, float[5,2] y) {
    moved = Identity (rows)
    s, y = Scan <num_scan_inputs = 1, body = b (float[2] p, float[2] x) => (float[2] q, float[2] z) {
        m = %s (x) q = Add (p, m) z = Neg (q) }> (start, moved)
}"""


def test_descends_into_scan() -> None:
    rows = np.abs(X).T.copy()
    rows[3, 1] = -1
    found = found_in(parsed(SCAN % "Relu"), parsed(SCAN % "Identity"), start=np.float32([1, 2]), rows=rows)
    assert (found.path, found.nodes) == (("Scan, iteration 3",), ("Relu",))


def as_half(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return array.astype(np.float16)


def half(model: onnx.ModelProto) -> onnx.ModelProto:
    result = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in result.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(as_half(numpy_helper.to_array(tensor)), tensor.name))
    for value in (*result.graph.input, *result.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return result


def test_names_an_overflow_of_half_precision() -> None:
    """The rounding of f16 before it is not the first difference. It is a weight, because ONNX Runtime computes nodes of
    f16 in f32 on the CPU, and leaves out the casts between them."""
    weights = [np.random.default_rng(i).standard_normal((8, 8)).astype(np.float32) for i in range(3)]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"]),
        helper.make_node("Tanh", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w1"], ["c"]),
        helper.make_node("Exp", ["c"], ["d"]),
        helper.make_node("Mul", ["d", "k"], ["f"], name="overflow"),
        helper.make_node("Log", ["f"], ["g"]),
        helper.make_node("MatMul", ["g", "w2"], ["y"]),
    ]
    tensors = [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)]
    tensors.append(numpy_helper.from_array(np.float32(9e5), "k"))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy")
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], tensors), opset_imports=opset, ir_version=8)
    feeds = {"x": np.random.default_rng(9).random((4, 8), np.float32)}
    assert found_in(half(model), model, **feeds).nodes == ("Mul 'overflow'",)


def test_rounding_alone_has_no_first_node() -> None:
    assert search(chain(9), chain(9), x=X)[0] is None


def test_a_node_that_enlarges_rounding() -> None:
    """From equal inputs it agrees: the part goes back to what rounds otherwise."""
    text = """g (float[2,5] x) => (float[2,5] y) {
        k = Constant <value = float {%s}> () a = Mul (x, k) b = Neg (a) c = Round (b) y = Identity (c) }"""
    x = np.full((2, 5), 0.5, np.float32)
    found, sides = search(parsed(text % "1.00001"), parsed(text % "0.99999"), x=x)
    assert found is not None
    assert found.tensor == "c"
    assert found.of_inputs < sides.limit < found.alone
    assert [node.split()[0] for node in found.nodes] == ["Constant", "Mul", "Neg", "Round"]


class _Fusing:
    """A runtime that computes Exp(Neg(x)) wrong, unless it must show Neg(x)."""

    runtime = "fusing"

    def __init__(self, model: onnx.ModelProto) -> None:
        self._side = InOnnxRuntime(model, How())
        self.inputs, self.outputs = self._side.inputs, self._side.outputs

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = self._side.run(feeds)
        return found if "hidden" in found else {name: array + 1 for name, array in found.items()}


def test_a_fused_node_whose_values_cannot_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(model: onnx.ModelProto, how: How, folder: object = None) -> object:
        return _Fusing(model) if how.value == "fusing" else sides_module.open_side(model, how)

    monkeypatch.setattr("polyop.verifying.bisecting.open_side", opened)
    model = parsed("g (float[2,5] x) => (float[2,5] y) { hidden = Neg (x) y = Exp (hidden) }")
    sides = Sides(Network(model), Network(model), (How("provider", "fusing"), How()), {"x": X}, 1e-5)
    found, _ = bisect(sides, ["y"], 1e-4)
    assert found is not None
    assert (found.nodes, found.unseen) == (("Neg", "Exp"), ("hidden",))


def test_outputs_of_other_shapes_differ() -> None:
    a = parsed("g (float[2, 5] x) => (float[2, 5] y, float[2, 5] z) { y = Exp (x) z = Sin (x) }")
    b = parsed(
        "g (float[2, 5] x) => (float[2, 5] y, float[1, 2, 5] z) { y = Exp (x) s = Sin (x) n = Constant<value = int64[1] {0}>() z = Unsqueeze (s, n) }"
    )
    found = found_in(a, b, x=X)
    assert (found.tensor, found.alone) == ("z", np.inf)


def test_a_side_that_does_not_run_is_an_error() -> None:
    with pytest.raises(BisectError, match=r"'y'.*nobody"):
        search(chain(3), parsed("g (float[2,5] x) => (float[2,5] y) { y = my.nobody (x) }"), x=X)


@pytest.mark.parametrize(
    ("got", "want", "ok"),
    [
        (np.array([2**60]), np.array([2**60 + 1]), False), (np.array([2**64 - 1], np.uint64), np.array([2**64 - 2], np.uint64), False),
        (np.array([-(2**63), 2**63 - 1]), np.array([-(2**63), 2**63 - 1]), True),
        (np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), True), (np.float32([np.inf]), np.float32([-np.inf]), False),
        (np.float32([np.nan]), np.float32([0]), False), (np.float16([1]), np.float32([1]), True),
        (np.float32([1]), np.array([1]), False), (np.array(["a"], object), np.array(["b"], object), False),
        (np.array(["a"], object), np.array(["a"], object), True), (np.zeros((0, 4)), np.zeros((0, 5)), False),
        (np.array([True]), np.array([False]), False), ([X], [X], True), ([X], [X + 1], False), ([X], X, False),
    ],
    ids=str,
)  # fmt: skip
def test_differences(got: object, want: object, ok: bool) -> None:
    same: Callable[..., bool] = lambda *pair: difference(*pair, Tolerance()).ok  # noqa: E731
    assert same(got, want) == ok
