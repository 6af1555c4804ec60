"""Formulas and portable files: an operator's formula in torch, and its function in ONNX Runtime, beside its kernel."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from single_node import DTYPES, model, session
from test_exported_nodes import NODES, Node, boxes, f, rois, rotated_rois
from test_onnxruntime_adapter import OLD, in_runtime

import polyop
from polyop import formulas, portable
from polyop._catalogue import find_node, operators
from polyop._node_groups import values
from polyop._torch import OPERATORS
from polyop.tensorrt import preprocess_onnx

F32, I64 = np.float32, np.int64
OPSET = 18
EMPTY = np.empty


def larger(pictures_and_boxes: np.ndarray) -> np.ndarray:
    return pictures_and_boxes * np.array([1, 3, 3, 3, 3], F32)


pool = {"output_height": 2, "output_width": 2, "spatial_scale": 0.5, "aligned": 0}
# Calls beside those of test_exported_nodes: nothing to compute, samples outside, NaN, other attributes.
EDGES = [
    Node("mmcv::MMCVRoiAlign", [f(2, 3, 6, 7), EMPTY((0, 5), F32)], [(F32, (0, 3, 2, 2))], {**pool, "mode": "max"}),
    Node("mmcv::MMCVRoiAlign", [f(2, 3, 6, 7), larger(rois(7))], [(F32, (7, 3, 2, 2))], {**pool, "mode": "max", "sampling_ratio": 0}),
    Node("mmcv::MMCVRoiAlign", [f(1, 3, 6, 7), larger(rois(7, 1))], [(F32, (7, 3, 2, 2))], {**pool, "mode": "avg", "sampling_ratio": 0}),
    Node("mmcv::MMCVRoIAlignRotated", [f(2, 3, 6, 7), rotated_rois(9)], [(F32, (9, 3, 2, 2))], {**pool, "sampling_ratio": 0}),
    Node("mmcv::MMCVDeformConv2d", [f(2, 4, 7, 8), f(2, 24, 3, 4) * 9 - 4, f(2, 2, 3, 2)], [(F32, (2, 2, 3, 4))],
         {"stride": [2], "padding": [0, 1], "dilation": [1, 3], "groups": 2, "deform_groups": 2}),
    Node("mmcv::MMCVDeformConv2d", [f(1, 6, 5, 5), np.full((1, 18, 3, 3), np.nan, F32), f(6, 1, 3, 3)], [(F32, (1, 6, 3, 3))],
         {"groups": 6}),
    Node("mmcv::cummax", [np.array([[1, np.nan, 3], [-np.inf, -np.inf, 2], [4, 4, 4]], F32)], [(F32, (3, 3)), (I64, (3, 3))], {"dim": 1}),
    Node("mmcv::cummin", [np.array([2, 1, 1, 5], F32)], [(F32, (4,)), (I64, (4,))], {"dim": 0}),
    Node("mmcv::MMCVCornerPool", [f(1, 1, 1, 9)], [(F32, (1, 1, 1, 9))], {"mode": 2}),
    Node("mmcv::NonMaxSuppression", [boxes(40), np.round(f(40), 1)], [(I64, None)], {"iou_threshold": 0.2, "offset": 1}),
    Node("mmcv::NonMaxSuppression", [boxes(2, 20), f(2, 3, 20)], [(np.int32, (120, 3))],
         {"max_output_boxes_per_class": 0, "iou_threshold": 0.3, "score_threshold": 0.4, "center_point_box": 1}),
    Node("mmdeploy::TRTBatchedNMS", [boxes(2, 30, 3) / 20, np.round(f(2, 30, 3), 1)], [(F32, (2, 50, 5)), (np.int32, (2, 50)), (np.int32, (2, 50))],
         {"background_label_id": 1, "num_classes": 3, "topk": 12, "keep_topk": 50, "score_threshold": 0.3, "iou_threshold": 0.1,
          "clip_boxes": 1, "return_index": 1}),
    Node("mmdeploy::MMCVMultiLevelRoiAlign", [np.concatenate([np.zeros((6, 1), F32), boxes(6) * 20], 1), f(1, 2, 30, 30), f(1, 2, 15, 15), f(1, 2, 8, 8)],
         [(F32, (6, 2, 3, 3))], {"output_height": 3, "output_width": 3, "sampling_ratio": 0, "pool_mode": 0, "aligned": 0,
                                 "featmap_strides": [4.0, 8.0, 16.0], "roi_scale_factor": 0.0, "finest_scale": 30}),
    Node("custom::knnquery", [np.array(9, I64), np.round(f(20, 3) * 3), np.array([3, 20], I64)], [(np.int32, (20, 9)), (F32, (20, 9))]),
    Node("mmdeploy::GatherTopk", [f(9, 2, 3), np.array([8, 0], I64)], [(F32, (2, 2, 3))]),
    Node("mmdeploy::TRTBicubicInterpolate", [f(1, 2, 5, 6)], [(F32, (1, 2, 7, 9))], {"scale_factor": [1.5], "align_corners": 1}),
    Node("custom::torch_cluster_grid", [np.array([[0.1, 7], [np.nan, 1], [3, 3]], F32), np.array([0.5, 2], F32)], [(I64, (3,))]),
    Node("mmcv::MMCVRotatedFeatureAlign", [f(1, 2, 4, 5), f(1, 4, 5, 5) * 9 - 3], [(F32, (1, 2, 4, 5))], {"points": 5}),
    Node("mmdeploy::MMCVMultiScaleDeformableAttention",
         [f(1, 6, 2, 3), np.array([[2, 3]], I64), np.array([0], I64), f(1, 4, 2, 1, 2, 2) * 3 - 1, f(1, 4, 2, 1, 2)], [(F32, (1, 4, 6))]),
]  # fmt: skip
CALLS = NODES + EDGES


def operator_of(node: Node) -> dict:
    return find_node(*node.name.split("::"))[0]


def has_body(node: Node) -> bool:
    return not operator_of(node)["not_portable"]


# Each call once: domains share operators.
WITH_BODIES = list({
    (n.name.split("::")[1], repr(n.attributes), tuple(None if a is None else (a.shape, a.dtype) for a in n.inputs)): n
    for n in CALLS
    if has_body(n)
}.values())  # fmt: skip
WITH_FORMULAS = [node for node in WITH_BODIES if hasattr(formulas.find(operator_of(node)["name"]), "formula")]


def name_of(node: Node) -> str:
    return node.name


def opset_of(node: Node) -> int:
    """ONNX samples volumes from opset 20 on."""
    return 20 if node.inputs[0].ndim == 5 else OPSET


def typed(
    proto: onnx.ModelProto, outputs: Sequence[tuple[type, tuple[int, ...] | None]], opset: int = OPSET
) -> onnx.ModelProto:
    """With opset and the outputs' types; their sizes are left open; where only data tells a size the rank is 1."""
    for info, (dtype, shape) in zip(proto.graph.output, outputs, strict=True):
        info.CopyFrom(
            helper.make_tensor_value_info(
                info.name, DTYPES[np.dtype(dtype)], [None] * (1 if shape is None else len(shape))
            )
        )
    next(o for o in proto.opset_import if o.domain == "").version = opset
    return proto


def dynamic_model(node: Node, half: bool = False) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A file of this node, all of whose sizes are symbols, and its inputs."""
    kinds = operator_of(node)["inputs"]
    kinds = kinds + [kinds[-1]] * (len(node.inputs) - len(kinds))  # of a variadic input
    halves = [half and "f16" in kind["types"] for kind in kinds]
    inputs = {f"in{i}": _half(a) if halves[i] else a for i, a in enumerate(node.inputs)}
    feeds = {name: array for name, array in inputs.items() if array is not None}
    shapes = {name: [f"{name}_{d}" for d in range(a.ndim)] for name, a in feeds.items()}
    proto = model(node.name, inputs, [f"out{o}" for o in range(len(node.outputs))], node.attributes, shapes)
    outputs = [(np.float16 if half and t == F32 else t, s) for t, s in node.outputs]
    return typed(proto, outputs, opset_of(node)), feeds


def _half(array: np.ndarray | None) -> np.ndarray | None:
    return array if array is None or array.dtype != F32 else array.astype(np.float16)


def run_alone(proto: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Where polyop's library is not registered."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)


def assert_same(got: Sequence[np.ndarray], want: Sequence[np.ndarray], atol: float = 2e-5) -> None:
    for g, w in zip(got, want, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), rtol=atol, atol=atol)


# ---- formulas ----------------------------------------------------------------------------------------------


def test_every_operator_has_a_formula_or_a_reason() -> None:
    for operator in operators():
        assert (formulas.find(operator["name"]) is None) == bool(operator["not_portable"]), operator["name"]
    assert {operator_of(node)["name"] for node in WITH_BODIES} == {
        o["name"] for o in operators() if not o["not_portable"]
    }


@pytest.mark.parametrize("node", WITH_FORMULAS, ids=name_of)
def test_the_formula_is_what_the_kernel_computes(node: Node) -> None:
    found, names = find_node(*node.name.split("::"))
    operator = OPERATORS[found["name"]]
    attributes = values(found, names, onnx.helper.make_node("n", [], [], **node.attributes))
    attributes = {name: v for name, v in attributes.items() if v is not None}
    tensors = [None if a is None else torch.from_numpy(np.ascontiguousarray(a)) for a in node.inputs]
    tensors += [None] * (len(operator.inputs) - len(tensors))
    variadic = next((i for i, spec in enumerate(operator.inputs) if spec.variadic), None)
    args = tensors if variadic is None else [*tensors[:variadic], tensors[variadic:]]
    want = operator.overload(*args, **attributes)
    got = formulas.decompositions()[operator.overload](*args, **attributes)
    pairs = zip(*((r,) if isinstance(r, torch.Tensor) else r for r in (got, want)), strict=True)
    for g, w in pairs:
        torch.testing.assert_close(g, w, rtol=2e-5, atol=2e-5, equal_nan=True)


def test_a_program_is_taken_apart() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor, offset: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return polyop.corner_pool(polyop.deform_conv2d(x, offset, weight, padding=1), "left")

    inputs = (torch.rand(1, 4, 6, 7), torch.rand(1, 18, 6, 7), torch.rand(3, 4, 3, 3))
    program = torch.export.export(Net(), inputs).run_decompositions(formulas.decompositions())
    assert not any("polyop" in str(node.target) for node in program.graph.nodes)
    torch.testing.assert_close(program.module()(*inputs), Net()(*inputs))


def test_a_compiler_may_take_formulas() -> None:
    from torch._dynamo.backends.common import aot_autograd

    seen: list[str] = []

    def compiler(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    x, boxes_of = torch.rand(2, 3, 8, 8), torch.from_numpy(rois(5))
    compiled = torch.compile(
        lambda a, b: polyop.roi_align(a, b, 2, 0.5, 2), backend=aot_autograd(fw_compiler=compiler, decompositions=formulas.decompositions())
    )  # fmt: skip
    torch.testing.assert_close(compiled(x, boxes_of), polyop.roi_align(x, boxes_of, 2, 0.5, 2))
    assert seen
    assert not any("polyop" in target for target in seen)


# ---- functions ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The portable file of every call, with its inputs and what polyop's kernel makes of them."""
    folder = tmp_path_factory.mktemp("portable")
    for i, node in enumerate(WITH_BODIES):
        proto, feeds = dynamic_model(node)
        want = session(proto).run(None, feeds)
        assert [r.why for r in portable.add_functions(proto)] == [""]
        onnx.save(proto, folder / f"{i}.onnx")
        np.savez(folder / f"{i}.npz", **feeds, **{f"want{o}": w for o, w in enumerate(want)})
    return folder


def saved(files: Path, i: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray], list[np.ndarray]]:
    arrays = dict(np.load(files / f"{i}.npz"))
    feeds = {name: a for name, a in arrays.items() if name.startswith("in")}
    return onnx.load(files / f"{i}.onnx"), feeds, [arrays[f"want{o}"] for o in range(len(arrays) - len(feeds))]


@pytest.mark.parametrize("i", range(len(WITH_BODIES)), ids=lambda i: name_of(WITH_BODIES[i]))
def test_the_function_is_what_the_kernel_computes(i: int, files: Path) -> None:
    proto, feeds, want = saved(files, i)
    onnx.checker.check_model(proto)
    assert_same(run_alone(proto, feeds), want)
    assert_same(session(proto).run(None, feeds), want, 0)  # polyop's kernel comes before the function
    plain = portable.inline(proto)
    onnx.checker.check_model(plain)
    assert [o.domain for o in plain.opset_import] == [""]
    assert not plain.functions
    assert_same(run_alone(plain, feeds), want)


OLDER = """
import glob
from pathlib import Path
done = 0
for file in sorted(glob.glob(FOLDER + "/*.onnx")):
    arrays = dict(np.load(Path(file).with_suffix(".npz")))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    s = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    for o, got in enumerate(s.run(None, {i.name: arrays[i.name] for i in s.get_inputs()})):
        want = arrays[f"want{o}"]
        assert (got.dtype, got.shape) == (want.dtype, want.shape), file
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=2e-5, atol=2e-5, err_msg=file)
    done += 1
print(done)
"""


@pytest.mark.parametrize("folder", OLD, ids=lambda folder: folder.name)
def test_functions_in_older_onnxruntimes(folder: Path, files: Path) -> None:
    assert int(in_runtime(folder, f"FOLDER = {str(files)!r}\n" + OLDER)) == len(WITH_BODIES)


HALF = [
    n for n in WITH_BODIES if operator_of(n)["half"] and not any(a is not None and np.isnan(a).any() for a in n.inputs if a is not None and a.dtype == F32)
]  # fmt: skip


@pytest.mark.parametrize("node", HALF[::4], ids=name_of)
def test_half_precision(node: Node) -> None:
    proto, feeds = dynamic_model(node, half=True)
    want = session(proto).run(None, feeds)
    assert portable.add_functions(proto)[0].given
    assert_same(run_alone(proto, feeds), want, 2e-3)


# ---- several nodes of a name ---------------------------------------------------------------------------------


def several(
    name: str,
    inputs: Mapping[str, np.ndarray],
    attributes: Sequence[Mapping[str, object]],
    rank: int,
    opset: int = OPSET,
) -> onnx.ModelProto:
    """A file with a node of this name for each of the attributes, all of the same inputs."""
    domain, op_type = name.split("::")
    infos = [helper.make_tensor_value_info(n, DTYPES[a.dtype], [None] * a.ndim) for n, a in inputs.items()]
    nodes = [
        helper.make_node(op_type, list(inputs), [f"y{i}"], f"node{i}", domain=domain, **a)
        for i, a in enumerate(attributes)
    ]
    outputs = [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, [None] * rank) for i in range(len(nodes))]
    graph = helper.make_graph(nodes, "g", infos, outputs)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(domain, 1)], ir_version=8
    )


def check_several(proto: onnx.ModelProto, feeds: Mapping[str, np.ndarray], tmp_path: Path) -> None:
    want = session(proto).run(None, feeds)
    assert all(r.given for r in portable.add_functions(proto))
    assert len(proto.functions) == 1
    assert_same(run_alone(proto, feeds), want)
    assert_same(run_alone(portable.inline(proto), feeds), want)
    onnx.save(proto, tmp_path / "several.onnx")
    np.savez(tmp_path / "several.npz", **feeds, **{f"want{o}": w for o, w in enumerate(want)})
    assert in_runtime(OLD[0], f"FOLDER = {str(tmp_path)!r}\n" + OLDER).strip() == "1"


def test_numbers_that_differ_are_referred_to(tmp_path: Path) -> None:
    """A pyramid's levels have a scale each: one body, no branches."""
    for mode in ("avg", "max"):
        levels = [{**pool, "mode": mode, "sampling_ratio": 2, "spatial_scale": scale} for scale in (0.25, 0.5, 1.0)]
        proto = several("mmcv::MMCVRoiAlign", {"x": f(2, 3, 9, 9), "rois": rois(6)}, levels, 4)
        check_several(proto, {"x": f(2, 3, 9, 9), "rois": rois(6)}, tmp_path)
        assert not any(node.op_type == "If" for node in proto.functions[0].node)


def test_a_number_that_only_some_nodes_have(tmp_path: Path) -> None:
    x = {"x": f(2, 3, 4), "scale": f(3), "B": f(3)}
    proto = several("mmcv::MMCVInstanceNormalization", x, [{"epsilon": 0.1}, {}], 3)
    check_several(proto, x, tmp_path)


def test_words_and_whole_numbers_that_differ_are_branches(tmp_path: Path) -> None:
    x = {"x": f(1, 2, 5, 6), "grid": f(1, 3, 4, 2) * 3 - 1.5}
    modes = [
        {"interpolation_mode": m, "padding_mode": p, "align_corners": 0} for m, p in ((0, 0), (1, 1), (2, 0), (0, 2))
    ]
    check_several(several("mmcv::grid_sampler", x, modes, 4), x, tmp_path)
    x = {"x": f(1, 2, 5, 6)}
    check_several(several("mmcv::MMCVCornerPool", x, [{"mode": m} for m in range(4)], 4), x, tmp_path)
    x = {"x": f(1, 2, 6, 6), "offset": f(1, 18, 4, 4), "weight": f(2, 2, 3, 3)}
    ways = [{"stride": [1, 1]}, {"dilation": [1, 1], "stride": [1, 1]}]
    check_several(several("mmcv::MMCVDeformConv2d", x, ways, 4), x, tmp_path)
    x = {"x": f(1, 4, 6, 6), "offset": f(1, 18, 6, 6), "weight": f(2, 4, 3, 3)}
    ways = [{"padding": [1, 1]}, {"padding": [2, 2], "dilation": [2, 2]}]
    check_several(several("mmcv::MMCVDeformConv2d", x, ways, 4), x, tmp_path)


def test_texts_that_differ(tmp_path: Path) -> None:
    x = {"x": f(1, 2, 9, 9), "rois": rois(4, 1)}
    ways = [{**pool, "mode": mode, "sampling_ratio": 2} for mode in ("avg", "max")]
    (record, _) = portable.add_functions(several("mmcv::MMCVRoiAlign", x, ways, 4))
    assert not record.given
    assert record.why == "its nodes differ in 'mode', a text; texts can be compared from opset 19 on"
    check_several(several("mmcv::MMCVRoiAlign", x, ways, 4, opset=19), x, tmp_path)


def test_nodes_that_one_function_cannot_serve() -> None:
    x, offset, mask, weight = f(1, 2, 6, 6), f(1, 18, 6, 6), f(1, 9, 6, 6), f(2, 2, 3, 3)
    proto = several("mmcv::MMCVModulatedDeformConv2d", {"x": x, "o": offset, "m": mask, "w": weight, "b": f(2)},
                    [{"padding": [1, 1]}] * 2, 4)  # fmt: skip
    del proto.graph.node[1].input[4:]
    assert {r.why for r in portable.add_functions(proto)} == {"its nodes differ in which inputs they have"}
    proto = several("mmcv::NonMaxSuppression", {"b": boxes(5), "s": f(5)}, [{}], 1)
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    assert "the rank of input 0 must be known" in portable.add_functions(proto)[0].why
    proto = several("mmdeploy::NMSRotated", {"b": f(5, 5), "s": f(5)}, [{}], 1)
    (record,) = portable.add_functions(proto)
    assert (record.node, record.name, record.given) == ("node0", "mmdeploy::NMSRotated", False)
    assert "No standard operator intersects rotated boxes" in record.why
    assert not proto.functions


# ---- nodes that mirror ONNX's own ----------------------------------------------------------------------------

MIRRORS = {
    "RoiAlign": ({"x": f(2, 3, 8, 9), "b": boxes(3), "i": np.array([0, 1, 1])}, [{"output_height": 2, "spatial_scale": 0.5}, {"mode": "max"}]),
    "GridSample": ({"x": f(2, 3, 8, 9), "g": f(2, 4, 5, 2)}, [{}, {"padding_mode": "border", "align_corners": 1}]),
    "InstanceNormalization": ({"x": f(2, 3, 8, 9), "s": f(3), "b": f(3)}, [{}, {"epsilon": 0.5}]),
    "NonMaxSuppression": ({"b": boxes(1, 9), "s": f(1, 2, 9), "most": np.array(4)}, [{}, {"center_point_box": 1}]),
    "Resize": ({"x": f(2, 3, 8, 9), "r": EMPTY(0, F32), "s": np.array([1, 1, 2, 1.5], F32)}, [{}, {"mode": "cubic", "cubic_coeff_a": -0.5}]),
}  # fmt: skip


@pytest.mark.parametrize("name", MIRRORS)
def test_mirrors_hand_their_attributes_on(name: str) -> None:
    inputs, ways = MIRRORS[name]
    proto = several(f"polyop::{name}", inputs, ways, 4)
    for output in proto.graph.output:
        if name == "NonMaxSuppression":
            output.CopyFrom(helper.make_tensor_value_info(output.name, TensorProto.INT64, [None, 3]))
    standard = onnx.ModelProto.FromString(proto.SerializeToString())
    for node in standard.graph.node:
        node.domain = ""
    assert all(r.given for r in portable.add_functions(proto))
    assert [len(f.node) for f in proto.functions] == [1]
    want = run_alone(standard, inputs)
    assert_same(run_alone(proto, inputs), want, 0)
    assert_same(run_alone(portable.inline(proto), inputs), want, 0)


# ---- files ---------------------------------------------------------------------------------------------------


def old_file(opset: int = 11) -> onnx.ModelProto:
    """Years old: opset 11, IR version 6, standard nodes whose form has changed since."""
    nodes = [
        helper.make_node("MMCVCornerPool", ["x"], ["a"], "pool", domain="mmcv", mode=1),
        helper.make_node("ReduceSum", ["a"], ["b"], "sum", axes=[1], keepdims=1),
        helper.make_node("Add", ["b", "w"], ["y"], "add"),
    ]
    weight = numpy_helper.from_array(f(1, 1, 5, 6), "w")
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", c, 5, 6]) for n, c in (("x", 3), ("y", 1))]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [weight])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("mmcv", 1)], ir_version=6
    )


def test_an_old_file_is_raised(tmp_path: Path) -> None:
    x = {"x": f(2, 3, 5, 6)}
    old = old_file()
    want = session(old).run(None, x)
    onnx.save(old, tmp_path / "old.onnx")
    report = portable.convert_file(tmp_path / "old.onnx", tmp_path / "new.onnx")
    assert report == {
        "nodes": [{"node": "pool", "name": "mmcv::MMCVCornerPool", "given": True, "why": ""}], "opset_before": 11, "opset": 16,
    }  # fmt: skip
    new = onnx.load(tmp_path / "new.onnx")
    assert new.ir_version == 8
    assert_same(run_alone(new, x), want)
    again = portable.convert_file(tmp_path / "new.onnx", tmp_path / "new.onnx", inlined=True)
    assert again["nodes"][0]["why"] == "the file has a function of its own"
    assert_same(run_alone(onnx.load(tmp_path / "new.onnx"), x), want)
    assert {p.name for p in tmp_path.iterdir()} == {"old.onnx", "new.onnx"}


def test_only_some() -> None:
    proto = several("mmcv::MMCVCornerPool", {"x": f(1, 1, 3, 3)}, [{"mode": 0}], 4)
    assert portable.add_functions(proto, ["mmcv::grid_sampler"]) == []
    assert not proto.functions
    assert [r.given for r in portable.add_functions(proto, ["mmcv::MMCVCornerPool"])] == [True]


def test_nodes_in_branches_have_functions() -> None:
    inner = helper.make_node("MMCVCornerPool", ["x"], ["inner"], "inner", domain="mmcv", mode=3)
    branches = [
        helper.make_graph([node], "b", [], [helper.make_tensor_value_info("inner", TensorProto.FLOAT, [None] * 4)])
        for node in (inner, helper.make_node("Neg", ["x"], ["inner"], "neg"))
    ]
    choice = helper.make_node("If", ["c"], ["y"], "choice", then_branch=branches[0], else_branch=branches[1])
    infos = [
        helper.make_tensor_value_info(n, t, s)
        for n, t, s in (("x", 1, [None] * 4), ("c", TensorProto.BOOL, []), ("y", 1, [None] * 4))
    ]
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("mmcv", 1)]
    proto = helper.make_model(
        helper.make_graph([choice], "g", infos[:2], infos[2:]), opset_imports=opsets, ir_version=8
    )
    feeds = {"x": f(1, 2, 3, 4), "c": np.array(True)}
    want = session(proto).run(None, feeds)
    assert [r.node for r in portable.add_functions(proto)] == ["inner"]
    assert_same(run_alone(proto, feeds), want)


def test_large_tensors_stay_where_they_are(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "a", tmp_path / "b"
    folder.mkdir()
    elsewhere.mkdir()
    proto = old_file(OPSET)
    proto.graph.node.remove(proto.graph.node[1])
    proto.graph.node[1].input[0] = "a"
    proto.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 3
    x = {"x": f(2, 3, 5, 6)}
    want = session(proto).run(None, x)
    onnx.save(proto, folder / "old.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    before = (folder / "weights.bin").read_bytes()
    for target in (folder / "new.onnx", elsewhere / "new.onnx"):
        portable.convert_file(folder / "old.onnx", target)
        assert (target.parent / "weights.bin").read_bytes() == before
        assert onnx.load(target, load_external_data=False).graph.initializer[0].data_location == TensorProto.EXTERNAL
        assert_same(run_alone(onnx.load(target), x), want)
    with pytest.raises(ValueError, match="is there already"):
        portable.convert_file(folder / "old.onnx", elsewhere / "newer.onnx")
    assert not (elsewhere / "newer.onnx").exists()


def test_tensorrt_gets_no_functions_of_polyops_nodes() -> None:
    proto = several("mmcv::MMCVCornerPool", {"x": f(1, 1, 3, 3)}, [{"mode": 0}], 4)
    portable.add_functions(proto)
    proto.functions.append(helper.make_function("own", "F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], []))
    assert [f.name for f in preprocess_onnx(proto).functions] == ["F"]
    assert len(proto.functions) == 2


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_export(exporter: str, tmp_path: Path) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
            return polyop.corner_pool(polyop.grid_sample(x, grid), "top")

    inputs = (torch.rand(1, 2, 5, 6), torch.rand(1, 3, 4, 2))
    path = tmp_path / "net.onnx"
    report = polyop.export(Net(), inputs, path, exporter=exporter, portable=True, verbose=False)
    assert report.nodes["mmcv::grid_sampler"] == 1
    feeds = dict(zip(("x", "grid"), (t.numpy() for t in inputs), strict=True))
    assert_same(run_alone(onnx.load(path), feeds), [Net()(*inputs).numpy()])

    class Rotated(torch.nn.Module):
        def forward(self, b: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
            return polyop.nms_rotated(b, s, 0.5)

    with pytest.raises(polyop.ExportError, match=r"cannot be made portable: .*rotated boxes"):
        polyop.export(
            Rotated(), (torch.rand(4, 5), torch.rand(4)), path, exporter=exporter, portable=True, verbose=False
        )


# ---- the program ---------------------------------------------------------------------------------------------


@pytest.fixture
def polyop_program(program: str, tmp_path: Path) -> Iterator:
    import os
    import subprocess
    import sys

    def run(*words: object) -> tuple[int, str, str]:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        command = [program, *map(str, words)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, "PATH": path}
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_the_program(polyop_program, tmp_path: Path) -> None:
    onnx.save(old_file(), tmp_path / "old.onnx")
    code, out, err = polyop_program("portable", "old.onnx", "-o", "new.onnx")
    assert code == 0, err
    assert "mmcv::MMCVCornerPool  1      yes" in out
    assert "opset 11 became 16" in out
    code, out, _ = polyop_program("portable", "old.onnx", "-o", "plain.onnx", "--inline", "--json")
    assert json.loads(out)["nodes"][0]["given"]
    for reference in ("functions", "onnx=old.onnx", "onnx=plain.onnx"):
        code, out, err = polyop_program("verify", "new.onnx", "--shape", "x=2x3x5x6", "--reference", reference)
        assert code == 0, err
        assert "equal: all of 1 tensor(s)" in out
    code, out, _ = polyop_program("inspect", "new.onnx", "--json", "--html", "new.html")
    (needed,) = json.loads(out)["operators"]
    assert needed["function"]
    assert needed["provider"].endswith("or its function")
    page = (tmp_path / "new.html").read_text()
    assert '<details id="function-mmcv-MMCVCornerPool">' in page
    assert "#function-mmcv-MMCVCornerPool" in page
    assert "Scan" in page


def test_the_program_says_what_is_wrong(polyop_program, tmp_path: Path) -> None:
    onnx.save(several("mmdeploy::NMSRotated", {"b": f(5, 5), "s": f(5)}, [{}], 1), tmp_path / "rotated.onnx")
    code, out, _ = polyop_program("portable", "rotated.onnx", "-o", "new.onnx")
    assert code == 4
    assert "No standard operator intersects rotated boxes" in out
    assert (tmp_path / "new.onnx").is_file()
    code, _, err = polyop_program("portable", "rotated.onnx", "-o", "new.onnx", "--only", "mmdeploy::NMSRotatd")
    assert (code, "did you mean 'mmdeploy::NMSRotated'?" in err) == (2, True), err
    code, _, err = polyop_program("portable", "rotated.onnx", "-o", "no_such_folder/new.onnx")
    assert (code, "no_such_folder" in err) == (1, True), err
    code, _, err = polyop_program("verify", "rotated.onnx", "--reference", "onnx=no_such.onnx")
    assert (code, "no_such.onnx" in err) == (3, True), err
    code, out, _ = polyop_program("ops", "nms_rotated")
    assert "No function in portable files" in out
    assert "nms_rotated" in polyop_program("ops")[1].splitlines()[-1]
