# SPDX-License-Identifier: Apache-2.0
"""polyop's kernels as overrides of ONNX Runtime's: the same results, in every ONNX Runtime, and no model is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import polyop
from tests.support.processes import environment
from tests.support.single_node import run as run_polyops_node
from tests.support.standard_nodes import Case, newest_opset, odd_cases, random_cases, session

TOLERANCE = {np.dtype(np.float16): 6e-3, np.dtype(np.float32): 3e-5, np.dtype(np.float64): 3e-5}
RNG = np.random.default_rng(3)


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def outcome(case: Case, accelerated: bool, say_opset: bool) -> np.ndarray | str:
    try:
        return case.run(accelerated, say_opset=say_opset)
    except Exception as error:  # ONNX Runtime's errors have different classes
        return str(error)


def compare_random_nodes() -> None:
    """Where the built-in kernel succeeds, the accelerator gives the same result.

    Prints how many cases succeeded and failed.
    """
    equal = refused = 0
    for number, case in enumerate(random_cases(0)):
        want, got = outcome(case, False, True), outcome(case, True, number % 2 == 0)
        if isinstance(want, str):
            refused += 1
            continue
        assert not isinstance(got, str), (str(case), got)
        assert (got.dtype, got.shape) == (want.dtype, want.shape), str(case)
        if want.dtype == np.int64:
            np.testing.assert_array_equal(got, want, str(case))
        else:
            np.testing.assert_allclose(got, want, TOLERANCE[want.dtype], TOLERANCE[want.dtype], err_msg=str(case))
        equal += 1
    print(equal, refused)


def test_random_nodes_equal_the_built_in(capfd: pytest.CaptureFixture[str]) -> None:
    compare_random_nodes()
    equal, _ = capfd.readouterr().out.split()[-2:]
    assert int(equal) > 600


def test_odd_nodes_are_accepted_and_refused_as_before() -> None:
    for case in odd_cases():
        want, got = outcome(case, False, True), outcome(case, True, True)
        assert isinstance(got, str) == isinstance(want, str), (str(case), want, got)
        if not isinstance(want, str):
            assert got.shape == want.shape, str(case)
            np.testing.assert_allclose(got, want, 1e-5, 1e-5, err_msg=str(case))


@pytest.mark.parametrize("opset", [11, 16])
@pytest.mark.parametrize("command", ["run", "bench"])
def test_program_accelerates(program: str, tmp_path: Path, command: str, opset: int) -> None:
    """The program passes the opset. A message of polyop shows whose kernel ran."""
    wrong = Case("RoiAlign", opset, [f(1, 2, 4, 4), np.zeros((1, 4), np.float32), np.array([7])])
    path = tmp_path / "m.onnx"
    model = wrong.model()
    model.graph.initializer.append(numpy_helper.from_array(wrong.inputs[2], "in2"))
    onnx.save(model, path)
    words = [program, command, path, "--accelerate", "-i", "in0=random", "-i", "in1=random"]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    assert said.returncode != 0
    assert "polyop::RoiAlign (node 'node'): 'batch_indices'[0]: expected a batch index in " in said.stderr


# ---- ONNX's own tests ------------------------------------------------------------------------------

OPERATORS = {
    "RoiAlign": (16, 22),
    "GridSample": (16, 20, 22),
    "NonMaxSuppression": (11,),
    "InstanceNormalization": (6, 22),
    "DeformConv": (19, 22),
    "Tan": (7, 22),
    "Sinh": (9, 22),
    "Cosh": (9, 22),
    "Atanh": (9, 22),
}


def node_tests() -> Iterator[tuple[str, onnx.ModelProto, list[np.ndarray], list[np.ndarray]]]:
    """Yields ONNX's node tests of these operators, each for every operator version that can express it."""
    from onnx.backend.test.case import node as cases  # collect_testcases would collect those of every operator

    for op_type, versions in OPERATORS.items():
        module = "instance_normalization" if op_type == "InstanceNormalization" else op_type.lower()
        import_module(f"onnx.backend.test.case.node.{module}")
        for case in [c for c in cases._NodeTestCases if c.model.graph.node[0].op_type == op_type]:
            inputs, outputs = case.data_sets[0]
            for version in versions:
                model = onnx.ModelProto.FromString(case.model.SerializeToString())
                if version > newest_opset():
                    continue
                if version < 20 and op_type == "GridSample" and inputs[0].ndim == 5:
                    continue  # volumes did not exist
                for attribute in model.graph.node[0].attribute:
                    if version < 20 and attribute.name == "mode":
                        attribute.s = {b"linear": b"bilinear", b"cubic": b"bicubic"}.get(attribute.s, attribute.s)
                model.opset_import[0].version = version
                model.ir_version = 8
                yield f"{case.name}-{version}", model, inputs, outputs


def run_node_tests() -> None:
    """Runs all of them and prints their number."""
    count = 0
    for name, model, inputs, outputs in node_tests():
        node = model.graph.node[0]
        feeds = dict(zip([i for i in node.input if i], inputs, strict=True))
        for opset in (0, model.opset_import[0].version):
            got = session(model.SerializeToString(), True, opset=opset).run(None, feeds)
            for g, w in zip(got, outputs, strict=True):
                np.testing.assert_allclose(g, w, 1e-3, 1e-5, err_msg=name)
        count += 1
    print(count)


def test_onnxs_own_tests(capfd: pytest.CaptureFixture[str]) -> None:
    run_node_tests()
    assert int(capfd.readouterr().out.split()[-1]) > 60


# ---- the older ONNX Runtimes -----------------------------------------------------------------------


@pytest.mark.parametrize("what", ["compare_random_nodes", "run_node_tests"])
@pytest.mark.parametrize("version", ["1.17.3", "1.20.1"])
def test_same_results_in_older_onnxruntimes(version: str, what: str) -> None:
    from tests.support.older_onnxruntimes import OLD, in_runtime

    folder = next(folder for folder in OLD if folder.name == f"onnxruntime-{version}")
    count = in_runtime(folder, f"from tests.onnxruntime import test_accelerator; test_accelerator.{what}()").split()[0]
    assert int(count) > (400 if what == "compare_random_nodes" else 30)


# ---- who answers -----------------------------------------------------------------------------------


def test_polyops_kernel_runs() -> None:
    wrong = Case("RoiAlign", 16, [f(1, 2, 4, 4), np.zeros((1, 4), np.float32), np.array([7])])
    with pytest.raises(Exception, match=r"polyop::RoiAlign \(node 'node'\): 'batch_indices'\[0\]: expected .*, got 7"):
        wrong.run(True)
    wrong.opset = 11
    with pytest.raises(Exception, match="polyop::RoiAlign"):
        wrong.run(True)
    # With an unknown opset the node is not overridden: coordinate_transformation_mode had another default before 16.
    assert "polyop" not in str(outcome(wrong, True, say_opset=False))


def test_the_runtimes_own_kernel_runs() -> None:
    boxes = np.array([[0.3, 0.2, 5.1, 6.3]], np.float32)
    attributes = {"mode": "max", "output_height": 2, "output_width": 2, "sampling_ratio": 2}
    case = Case("RoiAlign", 16, [np.abs(f(1, 2, 8, 8)), boxes, np.array([0])], attributes)
    got = case.run(True)
    np.testing.assert_array_equal(got, case.run(False))
    names = ("x", "rois", "batch_indices")
    (right,) = run_polyops_node("polyop::RoiAlign", dict(zip(names, case.inputs, strict=True)), **attributes)
    assert np.abs(right - got).max() > 0.01  # the maximum of samples instead of weighted corners


@pytest.mark.parametrize(("x", "grid"), [(np.float16, np.float32), (np.float32, np.float16)])
def test_mixed_half_and_float(x: type, grid: type) -> None:
    case = Case("GridSample", 16, [f(1, 2, 5, 5).astype(x), RNG.uniform(-1, 1, (1, 3, 3, 2)).astype(grid)])
    want, got = case.run(False), case.run(True)
    assert want.dtype == got.dtype
    np.testing.assert_allclose(got, want, 1e-3, 1e-3)


@pytest.mark.parametrize("value", ["", "x", "-1", "0", "12x", "1" * 40])
def test_reports_a_wrong_opset(value: str) -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("polyop.opset", value)
    with pytest.raises(Exception, match=r"session configuration 'polyop\.opset': expected an integer >= 1"):
        options.register_custom_ops_library(polyop.get_accelerator_path())


# ---- sessions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("accelerator_first", [False, True])
def test_together_with_polyops_own_nodes(accelerator_first: bool) -> None:
    """Both libraries in one session, in either order; several sessions at once."""
    nodes = [
        helper.make_node("GridSample", ["x", "grid"], ["a"]),
        helper.make_node("my_add", ["a", "a"], ["y"], domain="custom"),
    ]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("x", "grid")]
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("custom", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    libraries = [polyop.get_onnxruntime_op_path(), polyop.get_accelerator_path()]
    sessions = []
    for _ in range(3):
        options = ort.SessionOptions()
        for library in reversed(libraries) if accelerator_first else libraries:
            options.register_custom_ops_library(library)
        sessions.append(ort.InferenceSession(model, options, providers=["CPUExecutionProvider"]))
    feeds = {"x": f(1, 2, 9, 9), "grid": RNG.uniform(-1, 1, (1, 40, 30, 2)).astype(np.float32)}
    want = 3 * Case("GridSample", 17, list(feeds.values())).run(False)  # my_add computes 2 a + b
    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(lambda i: sessions[i % 3].run(None, feeds)[0], range(30)):
            np.testing.assert_allclose(got, want, 1e-5, 1e-5)


def test_in_branches_and_functions() -> None:
    """Nodes in the branches of an If and in the body of a model's function; inputs that are initializers."""
    grid = numpy_helper.from_array(RNG.uniform(-1, 1, (1, 3, 3, 2)).astype(np.float32), "grid")
    result = [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)]
    branches = [
        helper.make_graph([helper.make_node("GridSample", ["x", "grid"], ["r"], mode=mode)], mode, [], result)
        for mode in ("bilinear", "nearest")
    ]
    nodes = [
        helper.make_node("If", ["which"], ["a"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Norm", ["a", "s", "b"], ["y"], domain="local"),
    ]
    body = [helper.make_node("InstanceNormalization", ["v", "s", "b"], ["w"])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    function = helper.make_function("local", "Norm", ["v", "s", "b"], ["w"], body, opsets[:1])
    infos = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2, "h", "w"]),
        helper.make_tensor_value_info("which", TensorProto.BOOL, []),
    ]
    weights = [grid, *(numpy_helper.from_array(f(2), n) for n in "sb")]
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name="y")], weights)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=[function]).SerializeToString()
    for which in (False, True):
        feeds = {"x": f(1, 2, 6, 7), "which": np.array(which)}
        want, got = (session(model, accelerated).run(None, feeds)[0] for accelerated in (False, True))
        np.testing.assert_allclose(got, want, 1e-4, 1e-4)


def optimised(model: onnx.ModelProto, accelerated: bool, folder: Path) -> tuple[list[str], list[object]]:
    """Returns the operators of the graph that ONNX Runtime runs, and its outputs' shapes, with symbolic extents as
    None.
    """
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    if accelerated:
        options.register_custom_ops_library(polyop.get_accelerator_path())
    session_ = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    nodes = sorted(n.op_type for n in onnx.load(options.optimized_model_filepath).graph.node)
    return nodes, [[d if isinstance(d, int) else None for d in output.shape] for output in session_.get_outputs()]


def graph_of(
    nodes: list[onnx.NodeProto], inputs: dict[str, list[object]], weights: dict[str, np.ndarray]
) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    constants = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name="y")], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


NORM = helper.make_node("InstanceNormalization", ["a", "s", "b"], ["c"])
ROI = helper.make_node("RoiAlign", ["a", "rois", "of"], ["c"], output_height=7, output_width=5)
CONVS = [
    helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
    helper.make_node("Conv", ["c", "w"], ["y"], pads=[1] * 4),
]
GRAPHS = {
    "convolutions in blocks, around a normalisation": graph_of(
        [CONVS[0], NORM, CONVS[1]], {"x": ["n", 16, "h", "w"]}, {"w": f(16, 16, 3, 3), "s": f(16), "b": f(16)}),
    "convolutions in blocks, around rois": graph_of(
        [CONVS[0], ROI, CONVS[1]], {"x": ["n", 16, "h", "w"], "rois": [3, 4]},
        {"w": f(16, 16, 3, 3), "of": np.zeros(3, np.int64)}),
    "transposes around a normalisation": graph_of(
        [helper.make_node("Transpose", ["x"], ["a"], perm=[0, 3, 1, 2]), NORM,
         helper.make_node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1])], {"x": [1, 4, 4, 2]}, {"s": f(2), "b": f(2)}),
    "a shape that is known": graph_of(
        [ROI, helper.make_node("Shape", ["c"], ["e"]), helper.make_node("Cast", ["e"], ["y"], to=1)],
        {"a": ["n", 16, "h", "w"], "rois": [3, 4]}, {"of": np.zeros(3, np.int64)}),
    "the rows of what stays": graph_of(
        [helper.make_node("NonMaxSuppression", ["boxes", "scores", "max_boxes"], ["c"]),
         helper.make_node("Cast", ["c"], ["y"], to=1)],
        {"boxes": [1, "n", 4], "scores": [1, 2, "n"]}, {"max_boxes": np.array([3])}),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_are_optimised_as_before(name: str, tmp_path: Path) -> None:
    before, after = (optimised(GRAPHS[name], accelerated, tmp_path) for accelerated in (False, True))
    assert after == before


def test_a_node_with_constant_inputs_runs(tmp_path: Path) -> None:
    """ONNX Runtime folds such a node only with its own kernel, so this node stays and runs."""
    node = helper.make_node("GridSample", ["x", "grid"], ["a"])
    weights = {"x": f(1, 2, 4, 4), "grid": RNG.uniform(-1, 1, (1, 3, 3, 2)).astype(np.float32)}
    model = graph_of([node, helper.make_node("Add", ["a", "i"], ["y"])], {"i": [1, 2, 3, 3]}, weights)
    assert optimised(model, False, tmp_path)[0] == ["Add"]
    assert optimised(model, True, tmp_path)[0] == ["Add", "GridSample"]
    feeds = {"i": f(1, 2, 3, 3)}
    want, got = (session(model.SerializeToString(), a).run(None, feeds)[0] for a in (False, True))
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)


@pytest.mark.parametrize("op_type", ["Tan", "Sinh", "Cosh", "Atanh"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_functions_of_constants_run(op_type: str, dtype: type) -> None:
    nodes = [helper.make_node(op_type, ["c"], ["a"]), helper.make_node("Add", ["a", "x"], ["y"])]
    info = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), ["n", 3])
    constant = numpy_helper.from_array(np.array([-0.5, 0.1, 0.9], dtype), "c")
    for opset in (9, 17, 22):
        graph = helper.make_graph(nodes, "g", [info], [onnx.ValueInfoProto(name="y")], [constant])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        feeds = {"x": np.zeros((2, 3), dtype)}
        want = session(model.SerializeToString(), False).run(None, feeds)[0]
        for say in (0, opset):
            got = session(model.SerializeToString(), True, opset=say).run(None, feeds)[0]
            np.testing.assert_allclose(got, want, *[2e-3 if dtype == np.float16 else 1e-6] * 2)


def test_both_libraries_are_unloaded() -> None:
    """The libraries are unloaded with the last session that uses them."""
    code = (
        "import gc, numpy as np\n"
        "from tests.support import standard_nodes\n"
        "case = standard_nodes.Case('GridSample', 16, [np.ones((1, 1, 4, 4), np.float32), np.zeros((1, 2, 2, 2), np.float32)])\n"
        "for _ in range(3):\n"
        "    assert case.run(True).sum() == 4\n"
        "    gc.collect()\n"
        "    assert 'libpolyop' not in open('/proc/self/maps').read()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=environment())
