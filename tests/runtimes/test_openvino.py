# SPDX-License-Identifier: Apache-2.0
"""Every node of the catalogue in OpenVINO, compared with ONNX Runtime: known and unknown shapes, ONNX and OpenVINO
files.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
import onnxruntime
import openvino as ov
import pytest

import polyop.openvino
import polyop.portable
from polyop.optimizing import optimize
from tests.support import single_node
from tests.support.exported_nodes import NODES, Node
from tests.support.portable_calls import CALLS, dynamic_model
from tests.support.processes import ROOT, environment

F32, I64 = np.float32, np.int64
EXACT = {
    "INFERENCE_PRECISION_HINT": "f32"
}  # by default OpenVINO computes other nodes in bf16 where the CPU supports it


@pytest.fixture(scope="module")
def core() -> ov.Core:
    return polyop.openvino.core()


def model(node: Node, dynamic: bool = False) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    inputs = {f"i{i}": array for i, array in enumerate(node.inputs)}
    outputs = [f"o{i}" for i in range(len(node.outputs))]
    shapes = {n: [None] * a.ndim for n, a in inputs.items() if a is not None} if dynamic else None
    proto = single_node.model(node.name, inputs, outputs, node.attributes, shapes)
    return proto, {n: a for n, a in inputs.items() if a is not None}


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
            fits = (w >= -(2**31)) & (w < 2**31)  # the plugin truncates larger integers
            assert np.array_equal(g[fits], w[fits])
        else:
            np.testing.assert_allclose(g.astype(w.dtype), w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dynamic", [False, True], ids=["known shapes", "unknown shapes"])
@pytest.mark.parametrize("node", CALLS, ids=lambda node: node.name)
def test_every_node(core: ov.Core, node: Node, dynamic: bool) -> None:
    proto, feeds = model(node, dynamic)
    same(infer(core, proto, feeds), single_node.session(proto).run(None, feeds))


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
def test_openvino_files(core: ov.Core, node: Node, tmp_path: Path) -> None:
    proto, feeds = model(node, dynamic=True)
    ov.save_model(core.read_model(proto.SerializeToString()), tmp_path / "m.xml", compress_to_fp16=False)
    same(infer(core, tmp_path / "m.xml", feeds), single_node.session(proto).run(None, feeds))


@pytest.mark.parametrize("aligned", [0, 1])
def test_equals_openvinos_multi_level_pooling(core: ov.Core, aligned: int) -> None:
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
    proto, feeds = model(node)
    want = infer(ov.Core(), proto, feeds)  # without polyop
    same(infer(core, proto, feeds), want)
    same(single_node.session(proto).run(None, feeds), want)


def test_equals_openvinos_deformable_convolution(core: ov.Core) -> None:
    """Samples stay inside the image: outside of it MMCV's samples fade out, and OpenVINO's do not."""
    rng = np.random.default_rng(5)
    x, weight = rng.random((2, 4, 12, 10), F32), rng.random((6, 2, 3, 3), F32)
    offset = rng.random((2, 36, 6, 8), F32) * 0.9
    x[:, :, 0] = x[:, :, -1] = x[:, :, :, 0] = x[:, :, :, -1] = 0
    attributes = {"strides": [2, 1], "pads": [0, 0, 1, 0], "dilations": [1, 1], "group": 2, "deformable_groups": 2}
    node = Node("org.openvinotoolkit::DeformableConv2D", [x, offset, weight], [(F32, (2, 6, 6, 8))], attributes)
    proto, feeds = model(node)
    want = infer(ov.Core(), proto, feeds)  # without polyop
    same(infer(core, proto, feeds), want)
    same(single_node.session(proto).run(None, feeds), want)


def test_omitted_inputs(core: ov.Core) -> None:
    """Omits an input in the middle."""
    points = np.random.default_rng(1).random((30, 3), F32)
    node = Node("custom::torch_cluster_grid", [points, np.full(3, 0.25, F32), None, np.ones(3, F32)], [(I64, (30,))])
    proto, feeds = model(node)
    same(infer(core, proto, feeds), single_node.session(proto).run(None, feeds))


def test_data_dependent_sizes_reach_other_nodes(core: ov.Core) -> None:
    """NMS's i64 output selects boxes in OpenVINO's own Gather."""
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
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    same(infer(core, proto, feeds), single_node.session(proto).run(None, feeds))


def test_infinite_attributes_survive_openvino_files(core: ov.Core, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    boxes, scores = rng.random((1, 30, 4), F32), rng.random((1, 2, 30), F32)
    attributes = {"score_threshold": -np.inf, "iou_threshold": 0.1, "max_output_boxes_per_class": 9}
    node = Node("mmcv::NonMaxSuppression", [boxes, scores], [(np.int32, (18, 3))], attributes)
    proto, feeds = model(node)
    want = single_node.session(proto).run(None, feeds)
    assert (want[0] >= 0).any()
    ov.save_model(core.read_model(proto.SerializeToString()), tmp_path / "m.xml")
    same(infer(core, tmp_path / "m.xml", feeds), want)


def test_cached_model(core: ov.Core, tmp_path: Path) -> None:
    proto, feeds = model(next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign"))
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    want = single_node.session(proto).run(None, feeds)
    for _ in range(2):  # the second time from the cache
        same(infer(core, tmp_path / "m.onnx", feeds, CACHE_DIR=str(tmp_path / "cache")), want)
    assert any((tmp_path / "cache").iterdir())


@pytest.mark.parametrize("device", ["AUTO", "AUTO:CPU", "HETERO:CPU"])
def test_other_device_names_of_the_cpu(core: ov.Core, device: str) -> None:
    proto, feeds = model(next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign"), dynamic=True)
    same(infer(core, proto, feeds, device), single_node.session(proto).run(None, feeds))


def test_extents_change_between_runs(core: ov.Core) -> None:
    """Includes extents of 0, both of inputs and of data-dependent outputs."""
    rng = np.random.default_rng(6)
    node = Node(
        "mmcv::SoftNonMaxSuppression",
        [rng.random((3, 4), F32), rng.random(3, F32)],
        [(F32, None), (I64, None)],
        {"iou_threshold": 0.3, "sigma": 0.5, "min_score": 0.01, "method": 1, "offset": 0},
    )
    proto, _ = model(node, dynamic=True)
    compiled = core.compile_model(core.read_model(proto.SerializeToString()), "CPU", EXACT)
    session = single_node.session(proto)
    for count in (30, 1, 0, 50, 0, 7):
        corner = rng.random((count, 2), F32) * 9
        feeds = {"i0": np.concatenate([corner, corner + 4], 1), "i1": rng.random(count, F32)}
        results = compiled(feeds)
        same([np.array(results[output]) for output in compiled.outputs], session.run(None, feeds))


def test_unknown_ranks(core: ov.Core) -> None:
    """The model can be read, but OpenVINO's plugin needs the ranks to compile it."""
    node = next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign")
    inputs = {f"i{i}": array for i, array in enumerate(node.inputs)}
    proto = single_node.model(node.name, inputs, ["o0"], node.attributes, dict.fromkeys(inputs))
    read = core.read_model(proto.SerializeToString())
    with pytest.raises(RuntimeError, match="dynamic rank"):
        core.compile_model(read, "CPU", EXACT)
    read.reshape({name: [-1] * array.ndim for name, array in inputs.items()})
    want = single_node.session(model(node)[0]).run(None, inputs)
    same([core.compile_model(read, "CPU", EXACT)(inputs)[0]], want)


@pytest.mark.parametrize(
    "config", [{"NUM_STREAMS": 4}, {"PERFORMANCE_HINT": "THROUGHPUT"}, {"INFERENCE_NUM_THREADS": 1}], ids=str
)
def test_concurrent_requests(core: ov.Core, config: dict[str, int]) -> None:
    proto, feeds = model(next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign"), dynamic=True)
    (want,) = single_node.session(proto).run(None, feeds)
    compiled = core.compile_model(core.read_model(proto.SerializeToString()), "CPU", {**EXACT, **config})
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
    halves = single_node.model(
        "mmcv::grid_sampler",
        {k: v.astype(np.float16) for k, v in feeds.items()},
        ["y"],
        {"interpolation_mode": 0, "padding_mode": 0, "align_corners": 1},
    )
    given = {k: v.astype(np.float16) for k, v in feeds.items()}
    (want,) = single_node.session(halves).run(None, given)
    for hint in ("f32", "f16"):
        (got,) = infer(core, halves, given, INFERENCE_PRECISION_HINT=hint)
        np.testing.assert_allclose(got.astype(F32), want.astype(F32), atol=4e-3)


def test_bf16(core: ov.Core) -> None:
    """A model whose node is of type bf16, and an f32 model in which OpenVINO may compute in bf16."""
    _, feeds = model(next(n for n in NODES if n.name == "mmcv::grid_sampler"))
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
        bf16 (float[N, C, H, W] i0, float[N, OH, OW, D] i1) => (float[N, C, OH, OW] y) {
            x = Cast<to = 16>(i0)
            grid = Cast<to = 16>(i1)
            sampled = mmcv.grid_sampler<interpolation_mode = 0, padding_mode = 0, align_corners = 1>(x, grid)
            y = Cast<to = 1>(sampled)
        }""")
    wide = single_node.model(
        "mmcv::grid_sampler", feeds, ["y"], {"interpolation_mode": 0, "padding_mode": 0, "align_corners": 1}
    )
    (want,) = single_node.session(proto).run(None, feeds)
    for hint in ("f32", "bf16"):
        (got,) = infer(core, proto, feeds, INFERENCE_PRECISION_HINT=hint)
        np.testing.assert_allclose(got, want, atol=0.05)
    (want,) = single_node.session(wide).run(None, feeds)
    np.testing.assert_allclose(infer(core, wide, feeds, INFERENCE_PRECISION_HINT="bf16")[0], want, atol=0.05)


def test_weights_in_half_precision(core: ov.Core, tmp_path: Path) -> None:
    """openvino.save_model compresses weights by default."""
    node = next(n for n in NODES if n.name == "mmcv::MMCVModulatedDeformConv2d" and len(n.inputs) == 5)
    proto, feeds = model(node)
    want = single_node.session(proto).run(None, feeds)
    for name in ("i3", "i4"):  # weight and bias
        proto.graph.initializer.append(onnx.numpy_helper.from_array(feeds.pop(name), name))
        proto.graph.input.remove(next(i for i in proto.graph.input if i.name == name))
    ov.save_model(core.read_model(proto.SerializeToString()), tmp_path / "m.xml")
    assert (tmp_path / "m.bin").stat().st_size < 2.5 * sum(a.size for a in node.inputs[3:])
    (got,) = infer(core, tmp_path / "m.xml", feeds)
    np.testing.assert_allclose(got, want[0], rtol=2e-3, atol=2e-3)


def test_portable_files_run_without_polyop() -> None:
    """Such files can run on devices other than the CPU."""
    proto, feeds = dynamic_model(next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign"))
    want = single_node.session(proto).run(None, feeds)
    assert all(record.given for record in polyop.portable.add_functions(proto))
    same(infer(ov.Core(), onnx.inliner.inline_local_functions(proto), feeds), want)


@pytest.mark.parametrize("dynamic", [False, True], ids=["when it is read", "when it runs"])
def test_errors_name_the_node_and_the_tensor(core: ov.Core, dynamic: bool) -> None:
    rng = np.random.default_rng(4)
    node = Node(
        "mmcv::MMCVRoiAlign",
        [rng.random((1, 2, 5, 5), F32), rng.random((3, 4), F32)],
        [(F32, (3, 2, 1, 1))],
        {"output_height": 1, "output_width": 1},
    )
    proto, feeds = model(node, dynamic)
    with pytest.raises(
        RuntimeError,
        match=r"mmcv::MMCVRoiAlign \(node 'node'\): 'rois': expected dimension 1 to be 5, got 4",
    ):
        infer(core, proto, feeds)


def test_errors_with_one_thread(core: ov.Core, program: str, tmp_path: Path) -> None:
    """A synchronous run would lose the error, as it loses OpenVINO's own, so the program runs asynchronously."""
    inputs = [np.zeros((1, 2, 5, 5), F32), np.array([[7, 0, 0, 4, 4]], F32)]
    proto, feeds = model(Node("mmcv::MMCVRoiAlign", inputs, [(F32, None)], {"output_height": 1, "output_width": 1}))
    compiled = core.compile_model(core.read_model(proto.SerializeToString()), "CPU", {"INFERENCE_NUM_THREADS": 1})
    request = compiled.create_infer_request()
    request.start_async(feeds)
    with pytest.raises(RuntimeError, match=r"expected a batch index in \[0, 1\), got 7"):
        request.wait()
    onnx.save(proto, tmp_path / "model.onnx")
    np.savez(tmp_path / "inputs.npz", **feeds)
    done = subprocess.run(
        [program, "run", "model.onnx", "-i", "inputs.npz", "--runtime", "openvino", "--threads", "1"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "expected a batch index in [0, 1), got 7" in done.stderr


def test_wrong_attributes_and_values(core: ov.Core) -> None:
    rng = np.random.default_rng(5)
    inputs = [rng.random((1, 2, 5, 5), F32), np.array([[7, 0, 0, 4, 4]], F32)]
    proto, feeds = model(Node("mmcv::MMCVRoiAlign", inputs, [(F32, None)], {"output_height": -1, "output_width": 1}))
    with pytest.raises(RuntimeError, match=r"attribute 'output_height': expected .*, got -1"):
        infer(core, proto, feeds)
    proto, feeds = model(Node("mmcv::MMCVRoiAlign", inputs, [(F32, None)], {"output_height": 1, "output_width": 1}))
    with pytest.raises(RuntimeError, match=r"'rois'"):
        infer(core, proto, feeds)


def test_missing_and_old_openvino(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ov, "__version__", "2025.4.1-1-x")
    with pytest.raises(ImportError, match=r"2026\.0 or newer, got 2025\.4\.1"):
        polyop.openvino.core()
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ImportError, match="pip install openvino"):
        polyop.openvino.core()


ELSEWHERE = """
import numpy as np, polyop.openvino
from tests.support import single_node
a = np.float32([1, 2])
model = polyop.openvino.core().read_model(single_node.model("custom::my_add", {"a": a, "b": a}).SerializeToString())
print(polyop.openvino.core().compile_model(model, "CPU")({"a": a, "b": a})[0].tolist())
"""


def test_libraries_of_packages_load_without_polyops_own(tmp_path: Path) -> None:
    """As with a build without OpenVINO. The package is polyop's own library under another name."""
    own, package = tmp_path / "own", tmp_path / "package"
    own.mkdir()
    package.mkdir()
    (own / "libpolyop_onnxruntime.so").symlink_to(polyop.get_onnxruntime_op_path())
    variables = environment(POLYOP_LIBRARY_DIR=str(own))
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], env=variables, capture_output=True, text=True, check=False)
    assert f"polyop's OpenVINO library is missing: {own}/libpolyop_openvino.so. Wheels for Linux have it" in done.stderr
    (package / "libmy_ops_openvino.so").symlink_to(polyop.openvino.get_openvino_op_path())
    variables = environment(POLYOP_LIBRARY_DIR=str(own), POLYOP_OPERATORS=str(package))
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], env=variables, capture_output=True, text=True, check=False)
    assert done.stdout == "[3.0, 6.0]\n", done.stderr


def test_oldest_release() -> None:
    """The same library works with the oldest OpenVINO that polyop supports."""
    (folder,) = (ROOT / ".deps").glob("openvino-2026.0.*")
    code = """
import numpy as np, openvino, polyop.openvino
from tests.support import single_node
from tests.support.exported_nodes import NODES
assert openvino.__version__.startswith("2026.0."), openvino.__version__
core, checked = polyop.openvino.core(), 0
for node in NODES:
    inputs = {f"i{i}": a for i, a in enumerate(node.inputs)}
    proto = single_node.model(node.name, inputs, [f"o{i}" for i in range(len(node.outputs))], node.attributes)
    feeds = {n: a for n, a in inputs.items() if a is not None}
    compiled = core.compile_model(core.read_model(proto.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    got = list(compiled(feeds).values())
    for g, w in zip(got, single_node.session(proto).run(None, feeds), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5)
    checked += 1
print(checked)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment(folder)
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) == len(NODES)


PAGE = ROOT / "docs" / "openvino.md"


@pytest.mark.usefixtures("library")
def test_documentation_page(program: str, tmp_path: Path) -> None:
    """Runs the page's Python and its commands, with the python3 of PATH."""
    proto, feeds = model(next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign"))
    onnx.save(proto, tmp_path / "model.onnx")
    np.savez(tmp_path / "inputs.npz", **feeds)
    blocks = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (text,) = [text for kind, text in blocks if kind == "python"]
    subprocess.run([sys.executable, "-c", text], cwd=tmp_path, check=True)
    commands = [line for kind, text in blocks if not kind for line in text.replace("\\\n", "").splitlines()]
    assert len(commands) == 6
    for command in commands:
        done = subprocess.run([program, *command.split()[1:]], cwd=tmp_path, env=environment(), capture_output=True,
                              text=True, check=False)  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert "openvino" in done.stdout.lower() or command.startswith("polyop portable"), command


def test_deform_conv_of_onnx(core: ov.Core, tmp_path: Path) -> None:
    """OpenVINO lacks it. `optimize` replaces it by a node with a function, whose body it is."""
    rng = np.random.default_rng(0)
    proto = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["": 19]>
        g (float[1, 4, 9, 10] x, float[6, 4, 3, 3] w, float[1, 18, 9, 10] off, float[1, 9, 9, 10] mask) => (y, z) {
            y = DeformConv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x, w, off)
            z = DeformConv<pads = [1, 1, 1, 1]>(x, w, off, , mask)
        }""")
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in proto.graph.input}
    feeds = {name: rng.standard_normal(shape).astype(F32) for name, shape in shapes.items()}
    want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    same(infer(core, proto, feeds), want)
    onnx.save(proto, tmp_path / "before.onnx")
    optimize(tmp_path / "before.onnx", tmp_path / "fast.onnx", all=True)
    fast = onnx.load(tmp_path / "fast.onnx")
    assert {(n.domain, n.op_type) for n in fast.graph.node} == {("polyop", "DeformConv")}
    assert len(fast.functions) == 1
    same(infer(core, fast, feeds), want)
    same(infer(core, tmp_path / "fast.onnx", feeds), want)


def test_files_with_functions(core: ov.Core) -> None:
    """OpenVINO rejects ONNX functions, except where polyop has the node."""
    proto, feeds = model(next(n for n in NODES if n.name == "mmcv::MMCVRoiAlign"))
    want = single_node.session(proto).run(None, feeds)
    assert all(record.given for record in polyop.portable.add_functions(proto))
    assert len(proto.functions) == 1
    same(infer(core, proto, feeds), want)
