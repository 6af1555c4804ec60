"""Every node of the catalogue in OpenVINO, against ONNX Runtime: shapes known and unknown, from ONNX files and its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
import openvino as ov
import pytest
import single_node
from portable_calls import CALLS, dynamic_model
from test_exported_nodes import NODES, Node

import polyop.openvino
import polyop.portable

F32, I64 = np.float32, np.int64
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}  # the default rounds other nodes to bf16 where the machine can


@pytest.fixture(scope="module")
def core() -> ov.Core:
    return polyop.openvino.core()


def model(node: Node, dynamic: bool = False) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    inputs = {f"i{i}": array for i, array in enumerate(node.inputs)}
    outputs = [f"o{i}" for i in range(len(node.outputs))]
    shapes = {n: [None] * a.ndim for n, a in inputs.items() if a is not None} if dynamic else None
    made = single_node.model(node.name, inputs, outputs, node.attributes, shapes)
    return made, {n: a for n, a in inputs.items() if a is not None}


def infer(
    core: ov.Core,
    source: onnx.ModelProto | Path,
    feeds: Mapping[str, np.ndarray],
    device: str = "CPU",
    **config: object,
) -> list:
    read = core.read_model(source if isinstance(source, Path) else source.SerializeToString())
    compiled = core.compile_model(read, device, {**EXACT, **config})
    results = compiled(dict(feeds))
    return [np.array(results[output]) for output in compiled.outputs]


def same(got: list[np.ndarray], want: list[np.ndarray]) -> None:
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        if w.dtype.kind != "f":
            fits = (w >= -(2**31)) & (w < 2**31)  # larger ones the plugin loses
            assert np.array_equal(g[fits], w[fits])
        else:
            np.testing.assert_allclose(g.astype(w.dtype), w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dynamic", [False, True], ids=["known shapes", "unknown shapes"])
@pytest.mark.parametrize("node", CALLS, ids=lambda node: node.name)
def test_every_node(core: ov.Core, node: Node, dynamic: bool) -> None:
    made, feeds = model(node, dynamic)
    same(infer(core, made, feeds), single_node.session(made).run(None, feeds))


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
def test_openvinos_own_files(core: ov.Core, node: Node, tmp_path: Path) -> None:
    made, feeds = model(node, dynamic=True)
    ov.save_model(core.read_model(made.SerializeToString()), tmp_path / "m.xml", compress_to_fp16=False)
    same(infer(core, tmp_path / "m.xml", feeds), single_node.session(made).run(None, feeds))


@pytest.mark.parametrize("aligned", [0, 1])
def test_openvinos_own_multi_level_pooling(core: ov.Core, aligned: int) -> None:
    rng = np.random.default_rng(4)
    corner, size = rng.random((60, 2), F32) * 300 - 20, rng.random((60, 2), F32) * 400 + 4
    feats = [rng.random((1, 5, 256 // s, 320 // s), F32) for s in (4, 8, 16)]
    attributes = {"output_size": 4, "pyramid_scales": [4, 8, 16], "sampling_ratio": 2, "aligned": aligned}
    rois = np.concatenate([corner, corner + size], 1)
    node = Node(
        "org.openvinotoolkit::ExperimentalDetectronROIFeatureExtractor",
        [rois, *feats],
        [(F32, (60, 5, 4, 4))],
        attributes,
    )
    made, feeds = model(node)
    want = infer(ov.Core(), made, feeds)  # without polyop
    same(infer(core, made, feeds), want)
    same(single_node.session(made).run(None, feeds), want)


def test_openvinos_own_deformable_convolution(core: ov.Core) -> None:
    """Where its samples do not leave the picture: there mmcv's fade out, and OpenVINO's do not."""
    rng = np.random.default_rng(5)
    x, weight = rng.random((2, 4, 12, 10), F32), rng.random((6, 2, 3, 3), F32)
    offset = rng.random((2, 36, 6, 8), F32) * 0.9
    x[:, :, 0] = x[:, :, -1] = x[:, :, :, 0] = x[:, :, :, -1] = 0
    attributes = {"strides": [2, 1], "pads": [0, 0, 1, 0], "dilations": [1, 1], "group": 2, "deformable_groups": 2}
    node = Node("org.openvinotoolkit::DeformableConv2D", [x, offset, weight], [(F32, (2, 6, 6, 8))], attributes)
    made, feeds = model(node)
    want = infer(ov.Core(), made, feeds)  # without polyop
    same(infer(core, made, feeds), want)
    same(single_node.session(made).run(None, feeds), want)


def test_inputs_that_are_left_out(core: ov.Core) -> None:
    """One in the middle."""
    points = np.random.default_rng(1).random((30, 3), F32)
    node = Node("custom::torch_cluster_grid", [points, np.full(3, 0.25, F32), None, np.ones(3, F32)], [(I64, (30,))])
    made, feeds = model(node)
    same(infer(core, made, feeds), single_node.session(made).run(None, feeds))


def test_sizes_that_the_kernel_finds_reach_other_nodes(core: ov.Core) -> None:
    """NMS's i64 rows choose boxes in OpenVINO's own Gather."""
    rng = np.random.default_rng(2)
    corner = rng.random((40, 2), F32) * 20
    feeds = {"boxes": np.concatenate([corner, corner + 8], 1), "scores": rng.random(40, F32)}
    helper = onnx.helper
    nodes = [
        helper.make_node(
            "NonMaxSuppression", ["boxes", "scores"], ["kept"], domain="mmcv", iou_threshold=0.3, offset=0
        ),
        helper.make_node("Gather", ["boxes", "kept"], ["best"], axis=0),
        helper.make_node("Mul", ["kept", "two"], ["twice"]),
    ]
    infos = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, a.shape) for n, a in feeds.items()]
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name=o) for o in ("best", "kept", "twice")],
                              [onnx.numpy_helper.from_array(np.array(2, I64), "two")])  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mmcv", 1)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    same(infer(core, made, feeds), single_node.session(made).run(None, feeds))


def test_infinite_attributes_survive_openvinos_files(core: ov.Core, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    boxes, scores = rng.random((1, 30, 4), F32), rng.random((1, 2, 30), F32)
    attributes = {"score_threshold": -np.inf, "iou_threshold": 0.1, "max_output_boxes_per_class": 9}
    node = Node("mmcv::NonMaxSuppression", [boxes, scores], [(np.int32, (18, 3))], attributes)
    made, feeds = model(node)
    want = single_node.session(made).run(None, feeds)
    assert (want[0] >= 0).any()
    ov.save_model(core.read_model(made.SerializeToString()), tmp_path / "m.xml")
    same(infer(core, tmp_path / "m.xml", feeds), want)


def test_a_cached_model(core: ov.Core, tmp_path: Path) -> None:
    made, feeds = model(next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign"))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    want = single_node.session(made).run(None, feeds)
    for _ in range(2):  # the second is read from the cache
        same(infer(core, tmp_path / "m.onnx", feeds, CACHE_DIR=str(tmp_path / "cache")), want)
    assert any((tmp_path / "cache").iterdir())


@pytest.mark.parametrize("device", ["AUTO", "AUTO:CPU", "HETERO:CPU"])
def test_other_ways_to_the_cpu(core: ov.Core, device: str) -> None:
    made, feeds = model(next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign"), dynamic=True)
    same(infer(core, made, feeds, device), single_node.session(made).run(None, feeds))


def test_extents_change_from_run_to_run(core: ov.Core) -> None:
    """Among them none at all, of what is known when it runs and of what the kernel finds."""
    rng = np.random.default_rng(6)
    node = Node("mmcv::SoftNonMaxSuppression", [rng.random((3, 4), F32), rng.random(3, F32)], [(F32, None), (I64, None)],
                {"iou_threshold": 0.3, "sigma": 0.5, "min_score": 0.01, "method": 1, "offset": 0})  # fmt: skip
    made, _ = model(node, dynamic=True)
    compiled = core.compile_model(core.read_model(made.SerializeToString()), "CPU", EXACT)
    session = single_node.session(made)
    for count in (30, 1, 0, 50, 0, 7):
        corner = rng.random((count, 2), F32) * 9
        feeds = {"i0": np.concatenate([corner, corner + 4], 1), "i1": rng.random(count, F32)}
        results = compiled(feeds)
        same([np.array(results[output]) for output in compiled.outputs], session.run(None, feeds))


def test_unknown_ranks(core: ov.Core) -> None:
    """The model is read; OpenVINO's plugin wants the ranks before it compiles."""
    node = next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign")
    inputs = {f"i{i}": array for i, array in enumerate(node.inputs)}
    made = single_node.model(node.name, inputs, ["o0"], node.attributes, dict.fromkeys(inputs))
    read = core.read_model(made.SerializeToString())
    with pytest.raises(RuntimeError, match="dynamic rank"):
        core.compile_model(read, "CPU", EXACT)
    read.reshape({name: [-1] * array.ndim for name, array in inputs.items()})
    want = single_node.session(model(node)[0]).run(None, inputs)
    same([core.compile_model(read, "CPU", EXACT)(inputs)[0]], want)


@pytest.mark.parametrize(
    "config", [{"NUM_STREAMS": 4}, {"PERFORMANCE_HINT": "THROUGHPUT"}, {"INFERENCE_NUM_THREADS": 1}], ids=str
)
def test_requests_at_the_same_time(core: ov.Core, config: dict[str, int]) -> None:
    made, feeds = model(next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign"), dynamic=True)
    (want,) = single_node.session(made).run(None, feeds)
    compiled = core.compile_model(core.read_model(made.SerializeToString()), "CPU", {**EXACT, **config})
    queue = ov.AsyncInferQueue(compiled, 8)
    results: list[np.ndarray] = []
    queue.set_callback(lambda request, _: results.append(request.get_output_tensor().data.copy()))
    for _ in range(64):
        queue.start_async(feeds)
    queue.wait_all()
    assert len(results) == 64
    for result in results:
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5)


def test_half_precision(core: ov.Core) -> None:
    _, feeds = model(next(n for n in NODES if n.name == "mmcv::grid_sampler"))
    halves = single_node.model("mmcv::grid_sampler", {k: v.astype(np.float16) for k, v in feeds.items()}, ["y"],
                               {"interpolation_mode": 0, "padding_mode": 0, "align_corners": 1})  # fmt: skip
    given = {k: v.astype(np.float16) for k, v in feeds.items()}
    (want,) = single_node.session(halves).run(None, given)
    for hint in ("f32", "f16"):
        (got,) = infer(core, halves, given, INFERENCE_PRECISION_HINT=hint)
        np.testing.assert_allclose(got.astype(F32), want.astype(F32), atol=4e-3)


def test_bf16(core: ov.Core) -> None:
    """A model whose node is of bf16, and one of f32 in which OpenVINO may compute in bf16."""
    _, feeds = model(next(n for n in NODES if n.name == "mmcv::grid_sampler"))
    made = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
        bf16 (float[N, C, H, W] i0, float[N, OH, OW, D] i1) => (float[N, C, OH, OW] y) {
            x = Cast<to = 16>(i0)
            grid = Cast<to = 16>(i1)
            sampled = mmcv.grid_sampler<interpolation_mode = 0, padding_mode = 0, align_corners = 1>(x, grid)
            y = Cast<to = 1>(sampled)
        }""")
    wide = single_node.model("mmcv::grid_sampler", feeds, ["y"],
                             {"interpolation_mode": 0, "padding_mode": 0, "align_corners": 1})  # fmt: skip
    (want,) = single_node.session(made).run(None, feeds)
    for hint in ("f32", "bf16"):
        (got,) = infer(core, made, feeds, INFERENCE_PRECISION_HINT=hint)
        np.testing.assert_allclose(got, want, atol=0.05)
    (want,) = single_node.session(wide).run(None, feeds)
    np.testing.assert_allclose(infer(core, wide, feeds, INFERENCE_PRECISION_HINT="bf16")[0], want, atol=0.05)


def test_weights_in_half_precision(core: ov.Core, tmp_path: Path) -> None:
    """As openvino.save_model compresses them of its own accord."""
    node = next(n for n in NODES if n.name == "mmcv::MMCVModulatedDeformConv2d" and len(n.inputs) == 5)
    made, feeds = model(node)
    want = single_node.session(made).run(None, feeds)
    for name in ("i3", "i4"):  # weight and bias
        made.graph.initializer.append(onnx.numpy_helper.from_array(feeds.pop(name), name))
        made.graph.input.remove(next(i for i in made.graph.input if i.name == name))
    ov.save_model(core.read_model(made.SerializeToString()), tmp_path / "m.xml")
    assert (tmp_path / "m.bin").stat().st_size < 2.5 * sum(a.size for a in node.inputs[3:])
    (got,) = infer(core, tmp_path / "m.xml", feeds)
    np.testing.assert_allclose(got, want[0], rtol=2e-3, atol=2e-3)


def test_portable_files_run_without_polyop() -> None:
    """What other devices than the CPU can take."""
    made, feeds = dynamic_model(next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign"))
    want = single_node.session(made).run(None, feeds)
    assert all(record.given for record in polyop.portable.add_functions(made))
    same(infer(ov.Core(), onnx.inliner.inline_local_functions(made), feeds), want)


@pytest.mark.parametrize("dynamic", [False, True], ids=["when it is read", "when it runs"])
def test_errors_name_the_node_and_the_tensor(core: ov.Core, dynamic: bool) -> None:
    rng = np.random.default_rng(4)
    node = Node("mmcv::MMCVRoiAlign", [rng.random((1, 2, 5, 5), F32), rng.random((3, 4), F32)], [(F32, (3, 2, 1, 1))],
                {"output_height": 1, "output_width": 1})  # fmt: skip
    made, feeds = model(node, dynamic)
    with pytest.raises(
        RuntimeError, match=r"mmcv::MMCVRoiAlign \(node 'node'\): 'rois' has shape \[3, 4\], wanted \[R, 5\]"
    ):
        infer(core, made, feeds)


def test_errors_of_one_thread(core: ov.Core, program: str, tmp_path: Path) -> None:
    """A synchronous run would lose them (OpenVINO's own, too): the program has others."""
    inputs = [np.zeros((1, 2, 5, 5), F32), np.array([[7, 0, 0, 4, 4]], F32)]
    made, feeds = model(Node("mmcv::MMCVRoiAlign", inputs, [(F32, None)], {"output_height": 1, "output_width": 1}))
    compiled = core.compile_model(core.read_model(made.SerializeToString()), "CPU", {"INFERENCE_NUM_THREADS": 1})
    request = compiled.create_infer_request()
    request.start_async(feeds)
    with pytest.raises(RuntimeError, match="is 7, wanted a batch index"):
        request.wait()
    onnx.save(made, tmp_path / "model.onnx")
    np.savez(tmp_path / "inputs.npz", **feeds)
    done = subprocess.run(
        [program, "run", "model.onnx", "-i", "inputs.npz", "--runtime", "openvino", "--threads", "1"], cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "is 7, wanted a batch index" in done.stderr


def test_wrong_attributes_and_values(core: ov.Core) -> None:
    rng = np.random.default_rng(5)
    inputs = [rng.random((1, 2, 5, 5), F32), np.array([[7, 0, 0, 4, 4]], F32)]
    made, feeds = model(Node("mmcv::MMCVRoiAlign", inputs, [(F32, None)], {"output_height": -1, "output_width": 1}))
    with pytest.raises(RuntimeError, match=r"attribute 'output_height' is -1"):
        infer(core, made, feeds)
    made, feeds = model(Node("mmcv::MMCVRoiAlign", inputs, [(F32, None)], {"output_height": 1, "output_width": 1}))
    with pytest.raises(RuntimeError, match=r"'rois'"):
        infer(core, made, feeds)


def test_no_openvino_and_old_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ov, "__version__", "2025.4.1-1-x")
    with pytest.raises(ImportError, match=r"2026\.0 or newer, not 2025\.4\.1"):
        polyop.openvino.core()
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ImportError, match="pip install openvino"):
        polyop.openvino.core()


def test_the_oldest_release() -> None:
    """The same library beside the oldest OpenVINO that polyop is for."""
    (folder,) = (Path(__file__).resolve().parent.parent / ".deps").glob("openvino-2026.0.*")
    code = f"""
import sys
sys.path[:0] = [{str(folder)!r}, {str(Path(__file__).parent)!r}]
import numpy as np, openvino, polyop.openvino, single_node
from test_exported_nodes import NODES
assert openvino.__version__.startswith("2026.0."), openvino.__version__
core, checked = polyop.openvino.core(), 0
for node in NODES:
    inputs = {{f"i{{i}}": a for i, a in enumerate(node.inputs)}}
    made = single_node.model(node.name, inputs, [f"o{{i}}" for i in range(len(node.outputs))], node.attributes)
    feeds = {{n: a for n, a in inputs.items() if a is not None}}
    compiled = core.compile_model(core.read_model(made.SerializeToString()), "CPU", {{"INFERENCE_PRECISION_HINT": "f32"}})
    got = list(compiled(feeds).values())
    for g, w in zip(got, single_node.session(made).run(None, feeds), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5)
    checked += 1
print(checked)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) == len(NODES)


PAGE = Path(__file__).resolve().parent.parent / "docs" / "openvino.md"


@pytest.mark.usefixtures("library")
def test_the_page(program: str, tmp_path: Path) -> None:
    """Its Python and its commands, with the PATH's python3."""
    made, feeds = model(next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign"))
    onnx.save(made, tmp_path / "model.onnx")
    np.savez(tmp_path / "inputs.npz", **feeds)
    blocks = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (text,) = [text for kind, text in blocks if kind == "python"]
    subprocess.run([sys.executable, "-c", text], cwd=tmp_path, check=True)
    commands = [line for kind, text in blocks if not kind for line in text.splitlines()]
    assert len(commands) == 6
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in commands:
        done = subprocess.run([program, *command.split()[1:]], cwd=tmp_path, env=environment, capture_output=True,
                              text=True, check=False)  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert "openvino" in done.stdout.lower() or command.startswith("polyop portable"), command


def test_files_with_functions(core: ov.Core) -> None:
    """OpenVINO refuses functions of its own accord, but not where polyop has the node."""
    made, feeds = model(next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign"))
    want = single_node.session(made).run(None, feeds)
    assert all(record.given for record in polyop.portable.add_functions(made))
    assert len(made.functions) == 1
    same(infer(core, made, feeds), want)
