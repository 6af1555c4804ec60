# SPDX-License-Identifier: Apache-2.0
"""polyop optimize --without: standard nodes as other standard nodes, in ONNX Runtime, OpenVINO and WebGPU."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyop._onnx.graph import nodes_of
from polyop.optimizing import OptimizeError, optimize
from polyop.optimizing.rewrites import modules
from polyop.optimizing.runtimes import RUNTIMES, entries
from tests.support.deformable_attention import First, write
from tests.support.deformable_attention import inputs as attention_inputs
from tests.support.processes import ROOT, environment
from tests.support.webgpu import environment_of_webgpu

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name: str, kind: int, shape: Sequence[int | str] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: Sequence[onnx.NodeProto], inputs: dict[str, np.ndarray], dynamic: Sequence[str] = (), opset: int = 18,
    **constants: Any,
) -> onnx.ModelProto:  # fmt: skip
    """dynamic: the inputs whose sizes are unknown. The outputs are those of the nodes."""
    infos = [
        value(name, helper.np_dtype_to_tensor_dtype(a.dtype), [f"{name}{i}" for i in range(a.ndim)] if name in dynamic else a.shape)
        for name, a in inputs.items()
    ]  # fmt: skip
    outputs = [onnx.ValueInfoProto(name=name) for node in nodes for name in node.output]
    tensors = [numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()]
    graph = helper.make_graph(nodes, "graph", infos, outputs, tensors)
    result = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    inferred = onnx.shape_inference.infer_shapes(result, strict_mode=True)
    result.graph.ClearField("output")
    result.graph.output.extend(
        i for o in outputs for i in (*inferred.graph.output, *inferred.graph.value_info) if i.name == o.name
    )
    return result


def rewritten(before: onnx.ModelProto, without: Sequence[str], **more: Any) -> onnx.ModelProto:
    """Checks that no node remains, that each is equal (within 1e-5 of its scale), and that the file has standard nodes
    only."""
    report = optimize(before, without=without, threads=1, **more)
    assert report.model is not None
    assert not [n.op_type for n in nodes_of(report.model) if n.op_type in without or n.domain]
    assert all(f.replaced and f.difference is not None and f.difference < 1e-4 for f in report.findings), str(report)
    assert {f.pattern for f in report.findings} == {n.op_type for n in nodes_of(before) if n.op_type in without}
    return report.model


def in_openvino(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    compiled = ov.Core().compile_model(
        ov.Core().read_model(proto.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    return [np.array(r) for r in compiled(feeds).values()]


def in_onnxruntime(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    import onnxruntime as ort

    return ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)


def grid_samples(opset: int, volumes: bool, dynamic: bool) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Returns a model with every mode, padding and alignment."""
    names = {"linear": "bilinear", "cubic": "bicubic"} if opset < 20 else {}
    modes = ["linear", "nearest"] if volumes else ["linear", "nearest", "cubic"]
    cases = list(itertools.product(modes, ("zeros", "border", "reflection"), (0, 1)))
    nodes = [
        helper.make_node(
            "GridSample", ["x", "grid"], [f"y{i}"], name=f"{mode} {padding} {align}", mode=names.get(mode, mode),
            padding_mode=padding, align_corners=align,
        )
        for i, (mode, padding, align) in enumerate(cases)
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    sizes, points = ((4, 5, 6), (2, 3, 4)) if volumes else ((7, 9), (5, 6))
    feeds = {
        "x": rng.random((2, 3, *sizes), np.float32),
        "grid": rng.uniform(-1.6, 1.6, (2, *points, len(points))).astype(np.float32),
    }
    proto = model(nodes, feeds, opset=opset)
    if dynamic:
        for info, dims in zip(proto.graph.input, (["n", "c"], ["n"]), strict=True):
            for i, dim in enumerate(info.type.tensor_type.shape.dim):
                if i < len(feeds[info.name].shape) - (info.name == "grid"):
                    dim.dim_param = dims[i] if i < len(dims) else f"{info.name}{i}"
        for info in proto.graph.output:
            info.type.tensor_type.ClearField("shape")
    return proto, feeds


@pytest.mark.parametrize(
    ("opset", "volumes", "dynamic"),
    [
        (16, False, False),
        pytest.param(20, False, True, marks=pytest.mark.rest),
        pytest.param(22, False, False, marks=pytest.mark.rest),
        pytest.param(22, True, True, marks=pytest.mark.rest),
    ],
)
def test_grid_sample(opset: int, volumes: bool, dynamic: bool) -> None:
    before, feeds = grid_samples(opset, volumes, dynamic)
    after = rewritten(before, ["GridSample"], inputs=feeds)
    expected = in_onnxruntime(before, feeds)
    for got in in_onnxruntime(after, feeds), in_openvino(after, feeds):
        for g, e in zip(got, expected, strict=True):
            np.testing.assert_allclose(g, e, rtol=0, atol=1e-5)


def test_points_that_are_no_numbers_read_nothing() -> None:
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], padding_mode="border")
    feeds = {"x": np.ones((1, 1, 3, 3), np.float32), "grid": np.zeros((1, 1, 4, 2), np.float32)}
    after = rewritten(model([node], feeds), ["GridSample"])
    feeds["grid"][0, 0, :3] = [[np.nan, 0], [np.inf, 0], [-1e30, 1e30]]
    assert in_onnxruntime(after, feeds)[0][0, 0, 0, 2:].tolist() == [1, 1]


RNG = np.random.default_rng(1)
TABLE, TUPLES = RNG.random((3, 4, 5), np.float32), np.array([[0, 1], [2, -1], [1, 0]])
SCATTERS = [
    ("ScatterND", {}, TUPLES, RNG.random((3, 5), np.float32)),
    ("ScatterND", {"reduction": "add"}, TUPLES[[0, 1, 0]], RNG.random((3, 5), np.float32)),
    ("ScatterND", {}, TUPLES[:0], RNG.random((0, 5), np.float32)),
    ("ScatterElements", {"axis": 1}, np.argsort(RNG.random((2, 3, 3)), 1) - 2, RNG.random((2, 3, 3), np.float32)),
    ("ScatterElements", {"axis": 2, "reduction": "add"}, RNG.integers(0, 5, (2, 3, 3)), RNG.random((2, 3, 3), np.float32)),
]  # fmt: skip


@pytest.mark.parametrize("without", [["ScatterND"], ["ScatterElements"], ["ScatterND", "ScatterElements"]])
@pytest.mark.parametrize("is_constant", [False, True])
def test_scatters(without: list[str], is_constant: bool) -> None:
    """Each becomes the other; or gathers of constant indices; or comparisons of rows and indices."""
    nodes, inputs, constants = [], {"x": TABLE}, {}
    for i, (operator, attributes, indices, updates) in enumerate(SCATTERS):
        if operator in without:
            nodes.append(helper.make_node(operator, ["x", f"i{i}", f"u{i}"], [f"y{i}"], name=f"n{i}", **attributes))
            inputs[f"u{i}"] = updates
            (constants if is_constant else inputs)[f"i{i}"] = indices
    dynamic = [] if is_constant else list(inputs)
    rewritten(model(nodes, inputs, dynamic, **constants), without, inputs=inputs)


def test_gathers() -> None:
    indices, elements = RNG.integers(-3, 3, (4, 2, 2)), RNG.integers(-3, 3, (3, 3, 2))
    inputs = {"x": TABLE[:, :3], "z": RNG.random((4, 2, 5, 3), np.float32), "i": indices, "e": elements}
    nodes = [
        helper.make_node("GatherND", ["x", "i"], ["a"], name="a"),
        helper.make_node("GatherND", ["z", "i"], ["b"], name="b", batch_dims=1),
        helper.make_node("GatherND", ["z", "i"], ["c"], name="c", batch_dims=2),
        helper.make_node("GatherElements", ["x", "e"], ["d"], name="d", axis=-1),
        helper.make_node("GatherElements", ["x", "e"], ["f"], name="f", axis=0),
    ]
    inputs["z"] = np.ascontiguousarray(inputs["z"])
    indices[..., 0] %= 2  # of the extents 2 and 5 of z, too
    rewritten(model(nodes, inputs, ["x", "e"]), ["GatherND", "GatherElements"], inputs=inputs)


def test_products() -> None:
    equations = [
        ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("bqc,bchw->bqhw", (2, 3, 4), (2, 4, 5, 6)),
        ("ij,jk", (2, 3), (3, 4)), ("...ij,...jk->...ik", (2, 2, 3), (2, 3, 4)), ("i,j->ij", (3,), (4,)),
        ("nlhd,nhdv->nlhv", (2, 4, 3, 5), (2, 3, 5, 6)), ("ab,cd->ca", (2, 3), (4, 5)), ("bij,bij->b", (2, 3, 4), (2, 3, 4)),
    ]  # fmt: skip
    inputs = {
        f"{k}{i}": RNG.random(s, np.float32)
        for i, (_, *shapes) in enumerate(equations)
        for k, s in zip("ab", shapes, strict=True)
    }
    nodes = [
        helper.make_node("Einsum", [f"a{i}", f"b{i}"], [f"y{i}"], name=f"n{i}", equation=equation)
        for i, (equation, *_) in enumerate(equations)
    ]
    rewritten(model(nodes, inputs), ["Einsum"])
    image = {"x": RNG.random((1, 2, 9, 7), np.float32), "sizes": np.array([1, 2, 13, 5])}
    where = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
    nodes = [
        helper.make_node(
            "Resize", inputs, [f"{mode}_{rule}_{len(inputs)}"], name=f"{mode} {rule} {len(inputs)}", mode=mode,
            coordinate_transformation_mode=rule, exclude_outside=int(mode == "cubic" and len(inputs) == 4),
        )
        for mode in ("linear", "cubic") for rule in where for inputs in (["x", "", "scales"], ["x", "", "", "sizes"])
    ]  # fmt: skip
    rewritten(model(nodes, image, ["x"], scales=np.float32([1, 1, 1.7, 0.6])), ["Resize"], inputs=image)
    nodes = [
        helper.make_node("CumSum", ["x", "axis"], [f"y{e}{r}"], name=f"n{e}{r}", exclusive=e, reverse=r)
        for e in (0, 1) for r in (0, 1)
    ]  # fmt: skip
    rewritten(model(nodes, {"x": TABLE}, ["x"], axis=np.array(1)), ["CumSum"])


@pytest.mark.rest
def test_by_formulas() -> None:
    rois = (RNG.random((5, 4)) * 20 + [0, 0, 20, 20]).astype(np.float32)
    inputs = {"x": RNG.random((2, 3, 16, 16), np.float32), "rois": rois, "images": np.array([0, 1, 1, 0, 0])}
    nodes = [
        helper.make_node(
            "RoiAlign", list(inputs), [f"y{ratio}"], name=f"n{ratio}", output_height=3, output_width=2,
            sampling_ratio=ratio, spatial_scale=0.25,
        )
        for ratio in (0, 2)
    ]  # fmt: skip
    rewritten(model(nodes, inputs, list(inputs)), ["RoiAlign"], inputs=inputs)
    shapes = {"x": (2, 4, 8, 8), "w": (6, 2, 3, 3), "o": (2, 18, 8, 8), "b": (6,), "m": (2, 9, 8, 8)}
    inputs = {name: RNG.random(shape, np.float32) for name, shape in shapes.items()}
    node = helper.make_node("DeformConv", list(inputs), ["y"], name="n", group=2, pads=[1, 1, 1, 1])
    rewritten(model([node], inputs, opset=19), ["DeformConv"])


# ---- Graphs and functions ----

_X, _GRID = [2, 3, 5, 7], [2, 5, 7, 2]


def sample(result: str, x: str = "x", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("GridSample", [x, "grid"], [result], name=f"in_{result}", **attributes)


def deep() -> onnx.ModelProto:
    """Returns a model with nodes in both branches of an If, in the body of a Loop, and in a function that another
    function calls."""
    then, other = (
        helper.make_graph([sample(name, **more)], name, [], [value(name, F32, _X)])
        for name, more in (("a", {}), ("b", {"padding_mode": "border"}))
    )
    body = helper.make_graph(
        [sample("moved", "state"), helper.make_node("Identity", ["go"], ["on"])], "body",
        [value("i", I64, []), value("go", BOOL, []), value("state", F32, _X)], [value("on", BOOL, []), value("moved", F32, _X)],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    functions = [
        helper.make_function("own", "Inner", ["x", "grid"], ["r"], [sample("r")], imports),
        helper.make_function("own", "Outer", ["x", "grid"], ["r"], [helper.make_node("Inner", ["x", "grid"], ["r"], domain="own")], imports),
    ]  # fmt: skip
    nodes = [
        helper.make_node("If", ["condition"], ["y1"], name="if", then_branch=then, else_branch=other),
        helper.make_node("Loop", ["n", "", "x"], ["y2"], name="loop", body=body),
        helper.make_node("Outer", ["x", "grid"], ["y3"], name="call", domain="own"),
    ]
    inputs = [value("x", F32, _X), value("grid", F32, _GRID), value("condition", BOOL, []), value("n", I64, [])]
    graph = helper.make_graph(nodes, "graph", inputs, [value(f"y{i}", F32, _X) for i in (1, 2, 3)])
    return helper.make_model(graph, functions=functions, opset_imports=imports, ir_version=9)


def test_branches_bodies_and_functions() -> None:
    report = optimize(deep(), without=["GridSample"], threads=1)
    assert report.replaced == {"GridSample": 4}
    assert not [n for n in nodes_of(report.model) if n.op_type == "GridSample"]
    assert "the nodes of its functions Inner, Outer are in its graph now" in report.lines()


def scan() -> onnx.ModelProto:
    body = helper.make_graph(
        [sample("z", "s")],
        "body",
        [value("s", F32, [1, 3, 5, 7]), value("grid", F32, [1, 5, 7, 2])],
        [value("z", F32, [1, 3, 5, 7])],
    )
    node = helper.make_node("Scan", ["x", "g"], ["y"], name="scan", body=body, num_scan_inputs=2)
    graph = helper.make_graph(
        [node], "graph", [value("x", F32, [2, 1, 3, 5, 7]), value("g", F32, [2, 1, 5, 7, 2])], [value("y", F32, None)]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_no_node_of_polyop_is_written(tmp_path: Path) -> None:
    """Deformable attention would become one."""
    given = attention_inputs(batch=1, queries=300, heads=8, points=(3, 4))
    before = write(First(), given, tmp_path / "a.onnx", "torchscript")
    report = optimize(before, without=["GridSample"], threads=1)
    assert report.replaced == {"GridSample": 3}
    assert {n.domain for n in nodes_of(report.model)} == {""}


def test_what_remains_is_an_error_or_named() -> None:
    with pytest.raises(OptimizeError, match=r"1 node\(s\) of --without remain: GridSample 'in_z'"):
        optimize(scan(), without=["GridSample"])
    assert any("stays: GridSample 'in_z'" in line for line in optimize(scan(), target="webgpu").lines())
    node = helper.make_node("NonZero", ["x"], ["y"], name="n")
    inputs = {"x": TABLE}
    with pytest.raises(
        OptimizeError, match="NonZero 'n': polyop has no other nodes for it; it has for CumSum, "
    ) as raised:
        optimize(model([node], inputs), without=["NonZero", "GridSample"])
    assert str(raised.value).count("CumSum") == 1
    with pytest.raises(OptimizeError, match="expected an operator of ONNX, got 'gridsample'"):
        optimize(model([node], inputs), without=["gridsample"])
    node = helper.make_node("Einsum", ["x"], ["y"], name="n", equation="iij->j")
    with pytest.raises(OptimizeError, match="equation 'iij->j' takes a diagonal"):
        optimize(model([node], {"x": TABLE[:, :3]}), without=["Einsum"])
    assert "the model has no GridSample" in optimize(model([node], {"x": TABLE[:, :3]}), without=["GridSample"]).lines()


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_lists(runtime: str) -> None:
    """Every entry has a reason and can be rewritten; what is in the model is rewritten, and the report says why."""
    listed = entries(runtime)
    assert set(listed) <= set(modules())
    assert all(entry.why for entry in listed.values())
    node = sample("y", mode="bicubic", padding_mode="reflection")
    feeds = {"x": np.ones(_X, np.float32), "grid": np.zeros(_GRID, np.float32)}
    report = optimize(model([node], feeds), target=runtime, threads=1)
    assert report.replaced == {"GridSample": 1}
    assert any(line.startswith("GridSample: ") for line in report.lines())


def test_command(program: str, tmp_path: Path) -> None:
    feeds = {"x": np.ones(_X, np.float32), "grid": np.zeros(_GRID, np.float32)}
    onnx.save(model([sample("y")], feeds), tmp_path / "a.onnx")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [program, "optimize", "a.onnx", "-o", "b.onnx", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment())

    done = run("--without", "ScatterND,GridSample", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["replaced"] == {"GridSample": 1}
    assert "GridSample" not in {n.op_type for n in onnx.load(tmp_path / "b.onnx").graph.node}
    done = run("--without", "Gridsample")
    assert done.returncode != 0
    assert "did you mean GridSample?" in done.stderr


# ---- Models ----

LISTED = ["GridSample", "ScatterND", "ScatterElements", "GatherND", "GatherElements", "Einsum", "CumSum"]
MODELS = ["RT-DETRv2", "D-FINE", "RF-DETR", "Deformable DETR", "Grounding DINO", "Mask2Former"]


@pytest.mark.rest
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    """Small models of transformers, in ONNX Runtime and in OpenVINO."""
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    command = [sys.executable, ROOT / "bench" / "transformers_models.py", name, before]
    subprocess.run(list(map(str, command)), check=True)
    report = optimize(before, after, without=LISTED, threads=2)
    assert max(report.differences.values()) < 1e-3, str(report)
    proto = onnx.load(after)
    assert not {n.op_type for n in nodes_of(proto)} & set(LISTED)
    feeds = {}
    for info in proto.graph.input:
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        is_real = info.type.tensor_type.elem_type == F32
        feeds[info.name] = RNG.random(shape, np.float32) if is_real else np.ones(shape, np.int64)
    try:
        in_openvino(onnx.load(before), feeds)
    except RuntimeError as error:
        not_run(f"OpenVINO rejects {name} as exported: {str(error).splitlines()[-1]}")
        return
    for g, e in zip(in_openvino(proto, feeds), in_onnxruntime(onnx.load(before), feeds), strict=True):
        scale = np.abs(e[np.isfinite(e)]).max()
        np.testing.assert_allclose(g, e, rtol=0, atol=1e-3 * scale)


_IN_WEBGPU = """
import json, sys
import numpy as np
import onnxruntime as ort
model, feeds, out = sys.argv[1:]
options = ort.SessionOptions()
options.enable_profiling, options.profile_file_prefix = True, out
session = ort.InferenceSession(model, options, providers=["WebGpuExecutionProvider", "CPUExecutionProvider"])
np.savez(out, *session.run(None, dict(np.load(feeds))))
events = json.load(open(session.end_profiling()))
ran = [e["args"].get("provider") for e in events if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
print(json.dumps([ran.count("WebGpuExecutionProvider"), len(ran)]))
"""


@pytest.mark.rest
@pytest.mark.slow
def test_in_webgpu(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    """A file without GridSample, in ONNX Runtime's WebGPU provider on a software adapter."""
    env = environment_of_webgpu(not_run)
    if env is None:
        return
    before, feeds = grid_samples(16, False, False)
    onnx.save(rewritten(before, ["GridSample"]), tmp_path / "after.onnx")
    np.savez(tmp_path / "feeds.npz", **feeds)
    words = [sys.executable, "-c", _IN_WEBGPU, tmp_path / "after.onnx", tmp_path / "feeds.npz", tmp_path / "out.npz"]
    done = subprocess.run(list(map(str, words)), env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    there, nodes = json.loads(done.stdout.splitlines()[-1])
    assert there > nodes / 2
    with np.load(tmp_path / "out.npz") as saved:
        for name, expected in zip(saved.files, in_onnxruntime(before, feeds), strict=True):
            np.testing.assert_allclose(saved[name], expected, rtol=0, atol=1e-5)
