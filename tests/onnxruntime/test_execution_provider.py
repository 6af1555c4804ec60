# SPDX-License-Identifier: Apache-2.0
"""polyop as an execution provider of ONNX Runtime: which nodes it computes, that their results are ONNX Runtime's, and
that nothing that a program does with it crashes or gives wrong results.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.compose
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import polyop
from tests.support.exported import write
from tests.support.older_onnxruntimes import OLD, in_runtime
from tests.support.optimizable import Pool, corner_pool_inputs
from tests.support.processes import ROOT, environment, run
from tests.support.standard_nodes import newest_opset, random_cases
from tests.support.webgpu import environment_of_webgpu

RNG = np.random.default_rng(5)
Feeds = Mapping[str, np.ndarray]


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def options(**given: object) -> ort.SessionOptions:
    """Returns options with the provider and these options of it."""
    created = ort.SessionOptions()
    created.log_severity_level = 4
    created.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    created.add_provider_for_devices(polyop.register(), {name: str(value) for name, value in given.items()})
    return created


def provided(model: onnx.ModelProto | Path, **given: object) -> ort.InferenceSession:
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    return ort.InferenceSession(source, options(**given), enable_fallback=0)


def plain(model: onnx.ModelProto) -> ort.InferenceSession:
    created = ort.SessionOptions()
    created.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), created, providers=["CPUExecutionProvider"])


def claimed(session: ort.InferenceSession) -> list[str]:
    """Returns the types of the nodes that polyop computes, also in subgraphs."""
    graphs = session.get_provider_graph_assignment_info()
    return sorted(n.op_type for g in graphs if g.ep_name == "PolyopExecutionProvider" for n in g.get_nodes())


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Feeds,
    constants: Feeds | None = None,
    opset: int = 18,
    dynamic: bool = False,
    domains: Sequence[str] = (),
) -> onnx.ModelProto:
    infos = [
        helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(a.dtype), [f"{n}{d}" for d in range(a.ndim)] if dynamic else a.shape
        )
        for n, a in inputs.items()
    ]
    outputs = [onnx.ValueInfoProto(name=o) for o in nodes[-1].output if o]
    weights = [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "g", infos, outputs, weights)
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def one(
    op_type: str,
    inputs: Feeds,
    outputs: str = "y",
    constants: Feeds | None = None,
    opset: int = 18,
    **attributes: object,
):
    """Returns a model of a node. Its inputs are `inputs`, then `constants`; names that begin with _ are omitted."""
    names = ["" if n.startswith("_") else n for n in (*inputs, *(constants or {}))]
    node = helper.make_node(op_type, names, ["" if o == "-" else o for o in outputs.split()], name="node", **attributes)
    drop = lambda feeds: {n: a for n, a in feeds.items() if not n.startswith("_")}  # noqa: E731
    return model([node], drop(inputs), drop(constants or {}), opset), drop(inputs)


IMAGE, NONE = f(1, 4, 32, 32), np.zeros(0, np.float32)
BOXES = np.sort(RNG.uniform(0, 30, (1, 200, 2, 2)), 2).reshape(1, 200, 4).astype(np.float32)
ROIS = {"r": BOXES[0], "b": np.zeros(200, np.int64)}
GRID = RNG.uniform(-1, 1, (1, 40, 40, 2)).astype(np.float32)
INTEGERS = RNG.integers(-50, 50, 5000)
UPDATES = {"i": RNG.integers(0, 32, (1, 4, 64, 32)), "u": f(1, 4, 64, 32)}
SIZES = {"_r": NONE, "_s": NONE, "n": np.array([1, 4, 50, 70])}
CLAIMED = {
    "RoiAlign": one("RoiAlign", {"x": IMAGE, **ROIS}, output_height=7, output_width=5, sampling_ratio=2),
    "RoiAlign-10": one("RoiAlign", {"x": IMAGE, **ROIS}, opset=11, output_height=7, output_width=5, sampling_ratio=2),
    "GridSample": one("GridSample", {"x": IMAGE, "g": GRID}, mode="bicubic"),
    "GridSample-20": one("GridSample", {"x": f(1, 2, 9, 9, 9), "g": RNG.uniform(-1, 1, (1, 20, 20, 20, 3)).astype(np.float32)}, opset=20),
    "NonMaxSuppression": one("NonMaxSuppression", {"b": BOXES, "s": RNG.random((1, 2, 200)).astype(np.float32)},
                             constants={"m": np.array([50]), "t": np.float32([0.5])}),
    "InstanceNormalization": one("InstanceNormalization", {"x": f(1, 8, 512, 512), "s": f(8), "b": f(8)}),
    "DeformConv": one("DeformConv", {"x": f(1, 16, 36, 36), "w": f(8, 16, 3, 3), "o": f(1, 18, 34, 34)}, opset=19),
    **{t: one(t, {"x": IMAGE}) for t in ("Tan", "Sinh", "Cosh", "Softplus", "Mish")},
    "Atanh": one("Atanh", {"x": np.tanh(IMAGE)}),
    "Mod": one("Mod", {"x": IMAGE, "z": IMAGE + 4}, fmod=1),
    "Softmax": one("Softmax", {"x": IMAGE}, axis=1),
    "LogSoftmax": one("LogSoftmax", {"x": IMAGE}, axis=-3),
    "CumSum": one("CumSum", {"x": IMAGE}, constants={"a": np.array(-1)}, reverse=1, exclusive=1),
    "CumSum, i64": one("CumSum", {"x": INTEGERS}, constants={"a": np.array(0)}),
    "ScatterElements": one("ScatterElements", {"x": IMAGE, **UPDATES}, axis=2, reduction="add"),
    "NonZero": one("NonZero", {"x": IMAGE > 0}),
    "TopK": one("TopK", {"x": f(20, 400)}, "v i", {"k": np.array([400])}),
    "TopK, smallest": one("TopK", {"x": f(20, 400)}, "v i", {"k": np.array([400])}, largest=0),
    "Unique": one("Unique", {"x": INTEGERS}, "y - inverse counts"),
    "Resize, scales": one("Resize", {"x": IMAGE, "_r": NONE}, constants={"s": np.float32([1, 1, 2, 2])}, mode="cubic"),
    "Resize, sizes": one("Resize", {"x": IMAGE, **SIZES}, mode="cubic", coordinate_transformation_mode="align_corners"),
    "Resize, axes": one("Resize", {"x": IMAGE, "_r": NONE, "_s": NONE, "n": np.array([70, 50])}, mode="cubic", axes=[3, 2]),
}  # fmt: skip
NEAR_MISSES = {
    "max": one("RoiAlign", {"x": IMAGE, **ROIS}, output_height=7, output_width=5, mode="max"),
    "few boxes of a large image": one("RoiAlign", {"x": f(1, 4, 200, 200), "r": BOXES[0][:2], "b": np.zeros(2, np.int64)}),
    "nearest with reflection": one("GridSample", {"x": IMAGE, "g": GRID}, mode="nearest", padding_mode="reflection"),
    "a small grid": one("GridSample", {"x": IMAGE, "g": GRID[:, :5, :5]}),
    "few boxes": one("NonMaxSuppression", {"b": BOXES[:, :20], "s": RNG.random((1, 2, 20)).astype(np.float32)},
                     constants={"m": np.array([50])}),
    "many small channels": one("InstanceNormalization", {"x": f(1, 640, 16, 16), "s": f(640), "b": f(640)}),
    "few channels": one("DeformConv", {"x": IMAGE, "w": f(6, 4, 3, 3), "o": f(1, 18, 30, 30)}, opset=19),
    "few elements": one("Sinh", {"x": IMAGE[:, :, :2, :2]}),
    "broadcast": one("Mod", {"x": IMAGE, "z": np.float32([3])}, fmod=1),
    "of integers": one("Mod", {"x": INTEGERS, "z": np.abs(INTEGERS) + 1}),
    "the last dimension": one("Softmax", {"x": IMAGE}, axis=-1),
    "the last but one": one("Softmax", {"x": IMAGE}, axis=2),
    "flattened dimensions": one("Softmax", {"x": IMAGE}, axis=1, opset=11),
    "the first dimension": one("CumSum", {"x": f(100, 100)}, constants={"a": np.array(0)}),
    "an axis that is an input": one("CumSum", {"x": IMAGE, "a": np.array(3)}),
    "no reduction": one("ScatterElements", {"x": IMAGE, "i": np.zeros((1, 4, 1, 32), np.int64), "u": f(1, 4, 1, 32)}, axis=2),
    "some of the elements": one("TopK", {"x": f(20, 400)}, "v i", {"k": np.array([399])}),
    "not the last dimension": one("TopK", {"x": f(400, 400)}, "v i", {"k": np.array([400])}, axis=0),
    "the first index": one("Unique", {"x": INTEGERS}, "y first"),
    "rows": one("Unique", {"x": INTEGERS.reshape(50, 100)}, axis=0),
    "floats": one("Unique", {"x": f(5000)}),
    "linear": one("Resize", {"x": IMAGE, **SIZES}, mode="linear"),
    "rounded sizes": one("Resize", {"x": IMAGE, "_r": NONE}, constants={"s": np.float32([1, 1, 1.3, 1.3])}, mode="cubic"),
    "antialias": one("Resize", {"x": IMAGE, **SIZES}, mode="cubic", antialias=1),
}  # fmt: skip


def compare(got: Sequence[np.ndarray], want: Sequence[np.ndarray], what: str = "", tolerance: float = 3e-5) -> None:
    for g, w in zip(got, want, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape), what
        if w.dtype.kind == "f":
            np.testing.assert_allclose(g, w, tolerance, tolerance, err_msg=what)
        else:
            np.testing.assert_array_equal(g, w, what)


@pytest.mark.parametrize("name", CLAIMED)
def test_claimed_nodes_equal_the_built_in(name: str) -> None:
    proto, feeds = CLAIMED[name]
    session = provided(proto)
    assert claimed(session) == [proto.graph.node[0].op_type]
    got = session.run(None, feeds)
    if name == "DeformConv" and newest_opset() < 22:
        return  # without a kernel in ONNX Runtime
    compare(got, plain(proto).run(None, feeds), name)


# The first opset for which polyop claims a node of CLAIMED, if it is not 11.
SINCE = {
    "GridSample": 16, "GridSample-20": 20, "DeformConv": 19 if newest_opset() >= 22 else 99, "Mish": 18, "Softmax": 13,
    "LogSoftmax": 13, "ScatterElements": 16, "Resize, scales": 13, "Resize, sizes": 13, "Resize, axes": 18,
}  # fmt: skip


@pytest.mark.parametrize("opset", range(11, min(23, newest_opset()) + 1))
def test_every_opset(opset: int) -> None:
    """All claimed operators in one file equal ONNX Runtime's own."""
    whole, feeds, types = onnx.ModelProto(ir_version=9), {}, []
    whole.opset_import.append(helper.make_opsetid("", opset))
    whole.graph.name = "g"
    for i, (name, (proto, given)) in enumerate(CLAIMED.items()):
        if opset < SINCE.get(name, 11) or (name == "GridSample" and opset >= 20):  # its mode has another name since
            continue
        if name.startswith("RoiAlign") and opset >= 22:  # for which ONNX Runtime has no kernel
            continue
        part = onnx.compose.add_prefix(proto, f"{i}_").graph
        for field in ("node", "initializer", "input", "output"):
            getattr(whole.graph, field).extend(getattr(part, field))
        feeds |= {f"{i}_{n}": a for n, a in given.items()}
        types.append(part.node[0].op_type)
    session = provided(whole)
    assert claimed(session) == sorted(types)
    compare(session.run(None, feeds), plain(whole).run(None, feeds), str(opset))


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses_are_left(name: str) -> None:
    proto, feeds = NEAR_MISSES[name]
    session = provided(proto)
    assert claimed(session) == []
    compare(session.run(None, feeds), plain(proto).run(None, feeds), name)


def test_dynamic_shapes_at_three_sizes() -> None:
    nodes = [
        helper.make_node("Softplus", ["x"], ["a"]),
        helper.make_node("Softmax", ["a"], ["b"], axis=1),
        helper.make_node("GridSample", ["b", "g"], ["y"]),
    ]
    proto = model(nodes, {"x": IMAGE, "g": GRID}, dynamic=True)
    session, expected = provided(proto), plain(proto)
    assert claimed(session) == ["GridSample", "Softmax", "Softplus"]
    for n, size in ((1, 5), (2, 16), (3, 33)):
        feeds = {"x": f(n, 4, size, size + 1), "g": RNG.uniform(-1, 1, (n, size, size, 2)).astype(np.float32)}
        compare(session.run(None, feeds), expected.run(None, feeds))


def test_random_nodes_equal_the_built_in() -> None:
    """Modes, types and opsets of the accelerator's operators, also where polyop would be slower. A fifth of the cases,
    because sessions take most of the time.
    """
    ran = 0
    for case in [*random_cases(1)][::5]:
        try:
            want = plain(case.model()).run(None, case.feeds())
        except Exception:  # ONNX Runtime's errors have different classes
            continue
        session = provided(case.model(), only_faster=0)
        compare(session.run(None, case.feeds()), want, str(case), 6e-3 if want[0].dtype == np.float16 else 3e-5)
        ran += claimed(session) != []
    assert ran > 60


def test_subgraphs_and_functions() -> None:
    """Nodes in the branches of an If, in the body of a Loop, and in a model's function."""
    value = helper.make_tensor_value_info
    branches = [
        helper.make_graph([helper.make_node(op, ["x"], ["t"])], op, [], [value("t", TensorProto.FLOAT, None)])
        for op in ("Softplus", "Abs")
    ]
    nodes = [helper.make_node("Sinh", ["v"], ["w"]), helper.make_node("Identity", ["k"], ["l"])]
    inputs = [value("i", TensorProto.INT64, []), value("k", TensorProto.BOOL, []), value("v", TensorProto.FLOAT, None)]
    outputs = [value("l", TensorProto.BOOL, []), value("w", TensorProto.FLOAT, None)]
    body = helper.make_graph(nodes, "body", inputs, outputs)
    proto = model(
        [
            helper.make_node("If", ["c"], ["a"], then_branch=branches[0], else_branch=branches[1]),
            helper.make_node("Loop", ["n", "", "a"], ["b"], body=body),
            helper.make_node("Norm", ["b"], ["y"], domain="local"),
        ],
        {"c": np.array(True), "x": IMAGE / 9},
        {"n": np.array(2)},
        domains=["local"],
    )
    function = helper.make_function(
        "local", "Norm", ["p"], ["q"], [helper.make_node("Tan", ["p"], ["q"])], [helper.make_opsetid("", 18)]
    )
    proto.functions.append(function)
    session = provided(proto)
    assert claimed(session) == ["Sinh", "Softplus", "Tan"]
    for condition in (True, False):
        feeds = {"c": np.array(condition), "x": IMAGE / 9}
        compare(session.run(None, feeds), plain(proto).run(None, feeds), tolerance=1e-4)


def test_half_nodes_between_nodes_of_onnxruntime_are_left() -> None:
    """Claiming one would add casts: ONNX Runtime computes its neighbours in f32."""
    half = {"x": IMAGE.astype(np.float16), "g": GRID.astype(np.float16)}
    alone = model([helper.make_node("GridSample", ["x", "g"], ["y"])], half)
    assert claimed(provided(alone)) == ["GridSample"]
    chain = [
        helper.make_node("Softplus", ["x"], ["a"]),
        helper.make_node("GridSample", ["a", "g"], ["b"]),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    between = model(chain, half)
    session = provided(between)
    assert claimed(session) == []
    compare(session.run(None, half), plain(between).run(None, half), tolerance=1e-2)


def test_quantized_neighbours_keep_their_fusions(tmp_path: Path) -> None:
    """A Softmax between DequantizeLinear and QuantizeLinear becomes one quantized node, as without polyop."""
    scale = {"s": np.float32(0.05), "z": np.uint8(128)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Softmax", ["d"], ["p"], axis=1),
        helper.make_node("QuantizeLinear", ["p", "s", "z"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    proto = model(nodes, {"x": IMAGE}, scale)
    graphs = []
    for created in (options(), ort.SessionOptions()):
        created.optimized_model_filepath = str(tmp_path / f"{len(graphs)}.onnx")
        ort.InferenceSession(proto.SerializeToString(), created, enable_fallback=0)
        graphs.append(sorted(node.op_type for node in onnx.load(created.optimized_model_filepath).graph.node))
    assert graphs[0] == graphs[1]


def test_polyops_own_nodes_come_with_the_provider() -> None:
    proto = model([helper.make_node("my_add", ["x", "x"], ["y"], domain="custom")], {"x": IMAGE}, domains=["custom"])
    np.testing.assert_allclose(provided(proto).run(None, {"x": IMAGE})[0], 3 * IMAGE, 1e-6)


# ---- options -----------------------------------------------------------------------------------------------


def test_claim_selects_operators() -> None:
    nodes = [helper.make_node("Sinh", ["x"], ["a"]), helper.make_node("Tan", ["a"], ["y"])]
    proto = model(nodes, {"x": IMAGE})
    for claim, want in (("all", ["Sinh", "Tan"]), ("none", []), ("Tan", ["Tan"]), ("Tan,Sinh", ["Sinh", "Tan"])):
        assert claimed(provided(proto, claim=claim)) == want
    assert claimed(provided(proto, patterns=0)) == ["Sinh", "Tan"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"claim": "Tan,Foo"}, "option 'claim': expected all, none, or types separated by commas out of .*; got 'Foo'"),
        ({"claim": ""}, "option 'claim': expected .*; got ''"),
        ({"patterns": 2}, "option 'patterns': expected 0 or 1, got '2'"),
        ({"trace": 2}, "option 'trace': expected 0 or 1, got '2'"),
        ({"only_fast": 1}, "expected the options claim, only_faster, patterns and trace, got 'only_fast'"),
    ],
)
def test_wrong_options_are_refused(given: dict[str, object], expected: str) -> None:
    with pytest.raises(Exception, match=f"PolyopExecutionProvider: {expected}"):
        provided(CLAIMED["Tan"][0], **given)


def test_trace_names_the_nodes(capfd: pytest.CaptureFixture[str]) -> None:
    provided(CLAIMED["Tan"][0], trace=1)
    assert capfd.readouterr().err == "polyop: claimed Tan 'node'\npolyop: claimed 1 of 1 nodes of a graph\n"


# ---- hard to break -----------------------------------------------------------------------------------------


def test_an_error_of_a_kernel_is_the_calls_error() -> None:
    """It names the node, and no session falls back to ONNX Runtime's kernel without a word."""
    proto, feeds = CLAIMED["RoiAlign"]
    session = provided(proto)
    with pytest.raises(Exception, match=r"polyop::RoiAlign \(node 'node'\): 'batch_indices'\[0\]: expected .*, got 7"):
        session.run(None, {**feeds, "b": np.full(200, 7)})
    assert session.get_providers()[0] == "PolyopExecutionProvider"
    compare(session.run(None, feeds), plain(proto).run(None, feeds))


def test_optimized_files_and_ort_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    proto, feeds = CLAIMED["Tan"]
    want = plain(proto).run(None, feeds)
    for name in ("saved.onnx", "saved.ort"):
        saving = options()
        saving.optimized_model_filepath = str(tmp_path / name)
        if name.endswith(".ort"):
            saving.add_session_config_entry("session.save_model_format", "ORT")
        compare(ort.InferenceSession(proto.SerializeToString(), saving, enable_fallback=0).run(None, feeds), want)
        capfd.readouterr()
        session = provided(tmp_path / name, trace=1)
        assert "claimed 1 of 1 nodes" in capfd.readouterr().err  # ONNX Runtime does not record it for .ort files
        compare(session.run(None, feeds), want)
    compare(ort.InferenceSession(str(tmp_path / "saved.onnx")).run(None, feeds), want)  # an ordinary file


PROLOGUE = """
import gc
from concurrent.futures import ThreadPoolExecutor
import numpy as np, onnxruntime as ort, polyop
from tests.onnxruntime.test_execution_provider import CLAIMED, compare, model, options, plain, provided, claimed, helper, IMAGE
proto, feeds = CLAIMED["Tan"]
want = plain(proto).run(None, feeds)
path = polyop.get_onnxruntime_op_path()
own = model([helper.make_node("my_add", ["x", "x"], ["a"], domain="custom"), helper.make_node("Sinh", ["a"], ["y"])],
            {"x": IMAGE}, domains=["custom"])
def refused(call):
    try:
        call()
    except Exception as error:
        print(error)
        return True
"""
STEPS = {
    "unregistered with a live session": """
session = provided(proto)
ort.unregister_execution_provider_library("polyop")
compare(session.run(None, feeds), want)
del session; gc.collect()
compare(provided(proto).run(None, feeds), want)
""",
    "registered, unregistered and registered": """
for name in ("polyop", "a", "polyop"):
    ort.register_execution_provider_library(name, path)
    assert len(polyop.register()) == 1
    compare(provided(proto).run(None, feeds), want)
    ort.unregister_execution_provider_library(name)
""",
    "registered twice": """
polyop.register()
assert refused(lambda: ort.register_execution_provider_library("polyop", path))
compare(provided(proto).run(None, feeds), want)
""",
    "registered under two names": """
ort.register_execution_provider_library("mine", path)
assert len(polyop.register()) == 1
assert refused(lambda: ort.register_execution_provider_library("other", path))
compare(provided(proto).run(None, feeds), want)
""",
    "the operators' library after the provider": """
both = options(trace=0)
both.register_custom_ops_library(path)
ort.InferenceSession(own.SerializeToString(), both, enable_fallback=0).run(None, {"x": IMAGE})
""",
    "the operators' library before the provider": """
both = ort.SessionOptions()
both.log_severity_level = 4
both.register_custom_ops_library(path)
both.add_provider_for_devices(polyop.register(), {})
session = ort.InferenceSession(own.SerializeToString(), both, enable_fallback=0)
session.run(None, {"x": IMAGE})
""",
    "the accelerator after the provider": """
both = options(trace=0)
assert refused(lambda: both.register_custom_ops_library(polyop.get_accelerator_path()))
""",
    "threads that create and run sessions": """
def work(number):
    for _ in range(20):
        compare(provided(proto).run(None, feeds), want)
with ThreadPoolExecutor(8) as pool:
    list(pool.map(work, range(8)))
""",
    "a session in several threads": """
session = provided(proto)
with ThreadPoolExecutor(8) as pool:
    for got in pool.map(lambda _: session.run(None, feeds), range(200)):
        compare(got, want)
""",
    "the process ends with a live session": """
session = provided(proto)
session.run(None, feeds)
""",
}


@pytest.mark.parametrize("name", STEPS)
def test_a_process_survives(name: str) -> None:
    command = [sys.executable, "-c", PROLOGUE + STEPS[name] + "\nprint('survived')"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment())
    assert (done.returncode, done.stdout[-9:]) == (0, "survived\n"), done.stdout + done.stderr
    if name == "registered under two names":
        assert "expected one registration as execution provider, got 'other' after 'mine'" in done.stdout
    if name.startswith("the accelerator"):
        assert "the provider overrides what the accelerator does" in done.stdout


# ---- next to a GPU's provider -------------------------------------------------------------------------------

NEXT_TO_WEBGPU = """
import json, sys
import numpy as np, onnxruntime as ort, polyop
model, feeds, out = sys.argv[1:]
options = ort.SessionOptions()
options.log_severity_level = 4
options.enable_profiling, options.profile_file_prefix = True, out
options.add_provider("WebGpuExecutionProvider", {})
options.add_provider_for_devices(polyop.register(), {"only_faster": "0"})
session = ort.InferenceSession(model, options, enable_fallback=0)
np.savez(out, *session.run(None, dict(np.load(feeds))))
events = json.load(open(session.end_profiling()))
nodes = [e["args"] for e in events if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
print(json.dumps(sorted({(n["op_name"], n["provider"]) for n in nodes})))
"""


@pytest.mark.rest
@pytest.mark.slow
def test_nodes_of_webgpu_stay(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    """polyop computes only the nodes that WebGPU, listed before it, leaves; also of pooling, which would be a
    pattern."""
    env = environment_of_webgpu(not_run)
    if env is None:
        return
    nodes = [
        helper.make_node("GridSample", ["x", "g"], ["z"]),
        helper.make_node("Sinh", ["z"], ["s"]),
        helper.make_node("RoiAlign", ["s", "r", "b"], ["p"], output_height=7, output_width=7, sampling_ratio=2),
        helper.make_node("Tan", ["p"], ["t"]),
        helper.make_node("Greater", ["z", "k"], ["m"]),
        helper.make_node("NonZero", ["m"], ["n"]),
        helper.make_node("DFT", ["x"], ["f"], axis=2),
    ]
    feeds = {"x": IMAGE[..., :1] / 4, "g": GRID, **ROIS}
    mixed = model(nodes, feeds, {"k": np.float32(0.05)})
    mixed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in ("t", "n"))
    onnx.save(mixed, tmp_path / "mixed.onnx")
    image = corner_pool_inputs()
    pooling = write(Pool(2, True), image, tmp_path / "pooling.onnx", "torchscript")
    given = [(tmp_path / "mixed.onnx", feeds), (pooling, {name: t.numpy() for name, t in image.items()})]
    providers = []
    for path, arrays in given:
        np.savez(tmp_path / "feeds.npz", **arrays)
        words = [sys.executable, "-c", NEXT_TO_WEBGPU, path, tmp_path / "feeds.npz", tmp_path / "out.npz"]
        done = subprocess.run(list(map(str, words)), env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        providers.append(dict(json.loads(done.stdout.splitlines()[-1])))
        with np.load(tmp_path / "out.npz") as saved:
            compare([saved[name] for name in saved.files], plain(onnx.load(path)).run(None, arrays), str(path), 1e-3)
    ours, webgpus = "PolyopExecutionProvider", "WebGpuExecutionProvider"
    computed = {op: provider for op, provider in providers[0].items() if not op.startswith("Memcpy")}
    assert {op for op, p in computed.items() if p == webgpus} == {"GridSample", "Sinh", "Tan", "Greater"}
    assert {op.split("_")[0] for op, p in computed.items() if p == ours} >= {"RoiAlign", "NonZero"}
    of_polyop = {op for op, p in computed.items() if p == ours}
    assert {"RoiAlign", "NonZero"} < of_polyop
    assert len(of_polyop) == 3  # also DFT, whose node has another name
    assert ours not in providers[1].values()


# ---- the documentation's programs --------------------------------------------------------------------------


def program_of(language: str) -> str:
    """Returns the first program of the page in this language."""
    page = (ROOT / "docs" / "execution-provider.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[0]


@pytest.mark.parametrize(("language", "command"), [("c", ["gcc", "-std=c11"]), ("cpp", ["g++", "-std=c++20"])])
def test_documented_compiled_programs(language: str, command: list[str], tmp_path: Path) -> None:
    (runtime,) = (Path(ort.__file__).parent / "capi").glob("libonnxruntime.so*")
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (tmp_path / name).symlink_to(runtime)
    headers = Path(os.environ.get("ONNXRUNTIME_ROOT", ROOT / ".deps" / "onnxruntime")) / "include"
    onnx.save(CLAIMED["Tan"][0], tmp_path / "model.onnx")
    source, built = tmp_path / f"program.{language}", tmp_path / "program"
    source.write_text(program_of(language))
    run(*command, "-Wall", "-Wextra", "-Werror", source, "-o", built, "-isystem", headers, f"-L{tmp_path}", "-lonnxruntime",
        f"-Wl,-rpath,{tmp_path}")  # fmt: skip
    done = subprocess.run(
        [built, polyop.get_onnxruntime_op_path(), tmp_path / "model.onnx"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "polyop: claimed Tan 'node'" in done.stderr


def test_documented_python_program(tmp_path: Path) -> None:
    onnx.save(CLAIMED["Tan"][0], tmp_path / "model.onnx")
    words = [sys.executable, "-c", program_of("python")]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert done.stdout == program_of("text"), done.stderr
    assert "polyop: claimed Tan 'node'" in done.stderr


# ---- polyop.register and polyop.session --------------------------------------------------------------------


def test_session_uses_the_provider(tmp_path: Path) -> None:
    proto, feeds = CLAIMED["Tan"]
    onnx.save(proto, tmp_path / "m.onnx")
    session = polyop.session(tmp_path / "m.onnx")
    assert session.get_providers() == ["PolyopExecutionProvider", "CPUExecutionProvider"]
    compare(session.run(None, feeds), plain(proto).run(None, feeds))
    named = polyop.session(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    assert named.get_providers() == ["CPUExecutionProvider"]


def test_older_onnxruntimes_are_refused_with_advice(tmp_path: Path) -> None:
    proto, _ = CLAIMED["Tan"]
    onnx.save(proto, tmp_path / "m.onnx")
    code = (
        "import polyop\n"
        "try:\n    polyop.register()\nexcept Exception as error:\n    print(error, error.hint)\n"
        f"print(polyop.session({str(tmp_path / 'm.onnx')!r}).get_providers())"
    )
    refused, providers = in_runtime(OLD[-1], "\n" + code).splitlines()
    assert refused.startswith("polyop.register: expected ONNX Runtime 1.24 or newer, got 1.2")
    assert refused.endswith("use the accelerator: polyop.get_accelerator_path()")
    assert providers == "['CPUExecutionProvider']"
