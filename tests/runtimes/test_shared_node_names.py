# SPDX-License-Identifier: Apache-2.0
"""One node name may stand for several operators.

The node's attributes select one, in every runtime and in the tools for files.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import polyop
import polyop.openvino
from polyop import portable
from polyop._onnx.catalogue import PLUGIN_DOMAIN, find_node, operators
from polyop.tensorrt import preprocess_onnx
from tests.support.exported_nodes import NODES
from tests.support.older_onnxruntimes import OLD, in_runtime
from tests.support.single_node import model, run, session

F32, I32 = np.float32, np.int32
XYZ = np.random.default_rng(0).random((2, 40, 3), F32)
CLOUDS = {"xyz": XYZ, "centres": np.ascontiguousarray(XYZ[:, ::4])}
MMCV = {"max_radius": 0.3, "sample_num": 5}
PLUGIN = {"radius": 0.3, "nsample": 5}
ERRORS = [
    (("n", "idx"), {**PLUGIN, **MMCV}, "ambiguous node: attribute 'nsample' selects 'grid_ball_query'"),
    (("idx",), {}, "attribute 'max_radius' is missing"),
    (("n", "idx"), {"nsample": 5}, "attribute 'radius' is missing"),
    (("n", "idx"), MMCV, "expected 1 output, got 2: the node's attributes select 'ball_query'"),
    (("idx",), PLUGIN, "expected 2 outputs, got 1: the node's attributes select 'grid_ball_query'"),
]

RNG = np.random.default_rng(1)
VIEW = {
    "depth": RNG.random((2, 4, 3, 2), F32),
    "feat": RNG.random((2, 3, 2, 5), F32),
    **{n: np.array(v, I32) for n, v in {"rd": [0, 5, 9, 30], "rf": [3, 1, 0, 2], "rb": [23, 23, 2, 2]}.items()},
    "starts": np.array([0, 2], I32),
    "lengths": np.array([2, 2], I32),
}
SIZE = {"output_height": 3, "output_width": 4}


def layers(
    depth: np.ndarray, feat: np.ndarray, rd: np.ndarray, rf: np.ndarray, rb: np.ndarray, **_: np.ndarray
) -> np.ndarray:
    """Reference for two layers of 3 x 4. Every rank has the cell of its interval."""
    sums = np.zeros((24, feat.shape[3]))
    for d, p, cell in zip(rd, rf, rb, strict=True):
        sums[cell] += depth.reshape(-1)[d].astype(np.float64) * feat.reshape(-1, feat.shape[3])[p]
    return sums.reshape(1, 2, 3, 4, -1)


def test_both_operators_of_a_name() -> None:
    (ours,) = run("polyop::BallQuery", CLOUDS, ("idx",), **MMCV)
    count, theirs = run("polyop::BallQuery", CLOUDS, ("n", "idx"), **PLUGIN)
    for got, want in zip((count, theirs), run("polyop::GridBallQuery", CLOUDS, ("n", "idx"), **PLUGIN), strict=True):
        np.testing.assert_array_equal(got, want)
    offsets = CLOUDS["centres"].astype(np.float64)[:, :, None] - XYZ[:, None]
    inside = (offsets**2).sum(-1) < np.float64(F32(0.3)) ** 2
    np.testing.assert_array_equal(count, np.minimum(inside.sum(-1), 5))
    np.testing.assert_array_equal(ours[:, :, 0], theirs[:, :, 0])
    few = count < 5
    assert few.any()
    np.testing.assert_array_equal(ours[few][:, 4], ours[few][:, 0])  # mmcv repeats the first


def test_shapes_are_inferred() -> None:
    def shapes(node: str, inputs: Mapping[str, np.ndarray], outputs: tuple[str, ...], **attributes: object) -> list:
        dynamic = {n: [f"{n}{d}" for d in range(a.ndim)] for n, a in inputs.items()}
        dynamic |= {"xyz": ["B", "N", 3], "centres": ["B", "M", 3]}
        session_ = session(model(node, inputs, outputs, attributes, dynamic))
        assert {o.type for o in session_.get_outputs()} <= {"tensor(int32)", "tensor(float)"}
        return [o.shape for o in session_.get_outputs()]

    assert shapes("polyop::BallQuery", CLOUDS, ("idx",), **MMCV) == [["B", "M", 5]]
    assert shapes("polyop::BallQuery", CLOUDS, ("n", "idx"), **PLUGIN) == [["B", "M"], ["B", "M", 5]]
    assert shapes("mmdeploy::bev_pool_v2", VIEW, ("y",), **SIZE) == [[1, 3, 4, "feat3"]]
    assert shapes("mmdeploy::bev_pool_v2", VIEW, ("y",), **SIZE, output_z=2) == [[1, 2, 3, 4, "feat3"]]


def test_view_of_several_layers() -> None:
    want = layers(**VIEW)
    assert np.count_nonzero(want[0, 1])
    (got,) = run("mmdeploy::bev_pool_v2", VIEW, **SIZE, output_z=2)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    tensors = [torch.from_numpy(a) for a in VIEW.values()]
    np.testing.assert_allclose(polyop.bev_pool_v2(*tensors, 3, 4, output_z=2).numpy(), want, rtol=1e-6)
    flat = [*tensors[:4], tensors[4] % 12, *tensors[5:]]
    assert polyop.bev_pool_v2(*flat, 3, 4).shape == (1, 3, 4, 5)


@pytest.mark.parametrize(("outputs", "attributes", "message"), ERRORS)
def test_errors_name_both_operators(outputs: tuple[str, ...], attributes: dict, message: str) -> None:
    with pytest.raises(Exception, match=r"polyop::BallQuery \(node 'node'\)") as error:
        session(model("polyop::BallQuery", CLOUDS, outputs, attributes))
    assert message in str(error.value)


def test_rejects_too_few_layers() -> None:
    with pytest.raises(Exception, match=r"attribute 'output_z': expected .*, got 0"):
        session(model("mmdeploy::bev_pool_v2", VIEW, ("y",), {**SIZE, "output_z": 0}))


def test_every_name_is_a_plugins_name() -> None:
    """In the domain of ONNX Runtime's TensorRT provider, each name gives the results that it has in its own domain.

    mmcv::NonMaxSuppression does not: the name is that of ONNX's operator there.
    """
    compared = set()
    for node in NODES:
        domain, _, op_type = node.name.rpartition("::")
        found = find_node(domain, op_type, node.attributes)
        there = find_node(PLUGIN_DOMAIN, op_type, node.attributes)
        assert found is not None
        assert there is not None
        if there[0] is not found[0]:
            assert node.name == "mmcv::NonMaxSuppression"
            continue
        inputs = {f"in{i}": array for i, array in enumerate(node.inputs)}
        names = [f"out{o}" for o in range(len(node.outputs))]
        expected = run(node.name, inputs, names, **node.attributes)
        for want, got in zip(
            expected, run(f"{PLUGIN_DOMAIN}::{op_type}", inputs, names, **node.attributes), strict=True
        ):
            np.testing.assert_array_equal(got, want)
        compared.add(op_type)
    own = [record for record in operators() if record["package"] == "polyop"]
    assert compared == {n["name"].rpartition("::")[2] for record in own for n in record["nodes"]}


def test_plugins_names_in_openvino_and_the_program(program: str, tmp_path: Path) -> None:
    for outputs, attributes in ((("idx",), MMCV), (("n", "idx"), PLUGIN)):
        proto = model(f"{PLUGIN_DOMAIN}::BallQuery", CLOUDS, outputs, attributes)
        path = tmp_path / "model.onnx"
        onnx.save(proto, path)
        expected = run("polyop::BallQuery", CLOUDS, outputs, **attributes)
        compiled = polyop.openvino.core().compile_model(str(path), "CPU")
        for want, got in zip(expected, compiled(CLOUDS).values(), strict=True):
            np.testing.assert_array_equal(got, want)
        np.savez(tmp_path / "inputs.npz", **CLOUDS)
        command = [program, "run", path, "-i", tmp_path / "inputs.npz", "-o", tmp_path / "out.npz"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        with np.load(tmp_path / "out.npz") as written:
            for name, want in zip(outputs, expected, strict=True):
                np.testing.assert_array_equal(written[name], want)


OLDER = """
from tests.runtimes import test_shared_node_names as names
from tests.support.single_node import model, run, session
names.test_both_operators_of_a_name()
(y,) = run("mmdeploy::bev_pool_v2", names.VIEW, **names.SIZE, output_z=2)
np.testing.assert_allclose(y, names.layers(**names.VIEW), rtol=1e-6)
refused = 0
for outputs, attributes, message in names.ERRORS:
    try:
        session(model("polyop::BallQuery", names.CLOUDS, outputs, attributes))
    except Exception as error:
        assert message in str(error), error
        refused += 1
print(refused)
"""


@pytest.mark.parametrize("folder", OLD, ids=lambda folder: folder.name)
def test_older_onnxruntimes(folder: Path) -> None:
    assert int(in_runtime(folder, OLDER)) == len(ERRORS)


def two_nodes(node: str, inputs: Mapping[str, np.ndarray], *nodes: tuple[tuple[str, ...], dict]) -> onnx.ModelProto:
    """Returns a model with one node of this name per pair of outputs and attributes."""
    proto = model(node, inputs, nodes[0][0], nodes[0][1])
    for i, (outputs, attributes) in enumerate(nodes[1:]):
        names = [f"{o}_{i}" for o in outputs]
        domain, op_type = node.split("::")
        proto.graph.node.append(
            onnx.helper.make_node(op_type, list(inputs), names, f"node{i}", domain=domain, **attributes)
        )
        proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return proto


def test_one_file_with_both_operators(program: str, tmp_path: Path) -> None:
    proto = two_nodes("polyop::BallQuery", CLOUDS, (("idx",), MMCV), (("n", "idx"), PLUGIN))
    got = session(proto).run(None, CLOUDS)
    want = [
        *run("polyop::BallQuery", CLOUDS, ("idx",), **MMCV),
        *run("polyop::BallQuery", CLOUDS, ("n", "idx"), **PLUGIN),
    ]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)
    onnx.save(proto, tmp_path / "both.onnx")
    done = subprocess.run(
        [program, "inspect", tmp_path / "both.onnx", "--json"], capture_output=True, text=True, check=True
    )
    said = {(o["name"], o["operator"], o["count"]) for o in json.loads(done.stdout)["operators"]}
    assert said == {("polyop::BallQuery", "ball_query", 1), ("polyop::BallQuery", "grid_ball_query", 1)}
    done = subprocess.run([program, "inspect", tmp_path / "both.onnx"], capture_output=True, text=True, check=True)
    assert "polyop::BallQuery (grid_ball_query)" in done.stdout


def test_openvino() -> None:
    """Checks which operator is selected; test_openvino.py compares results."""
    core = polyop.openvino.core()
    for outputs, attributes, ranks in ((("idx",), MMCV, [3]), (("n", "idx"), PLUGIN, [2, 3])):
        read = core.read_model(model("polyop::BallQuery", CLOUDS, outputs, attributes).SerializeToString())
        assert [o.get_partial_shape().rank.get_length() for o in read.outputs] == ranks
    for outputs, attributes, message in ERRORS[:3]:
        with pytest.raises(RuntimeError) as error:
            core.read_model(model("polyop::BallQuery", CLOUDS, outputs, attributes).SerializeToString())
        assert message in str(error.value)


def test_one_function_per_name() -> None:
    def records(*sizes: dict) -> list[tuple[bool, str]]:
        proto = two_nodes("mmdeploy::bev_pool_v2", VIEW, *((("y",), size) for size in sizes))
        next(o for o in proto.opset_import if o.domain == "").version = 18
        return [(r.given, r.why) for r in portable.add_functions(proto)]

    two, three = {**SIZE, "output_z": 2}, {**SIZE, "output_z": 3}
    assert records(SIZE, {**SIZE, "output_z": 1}) == [(True, "")] * 2
    assert records(two, three) == [(True, "")] * 2
    why = "expected nodes of one operator, got nodes of bev_pool and bev_pool_volume: a name has one function"
    assert records(SIZE, two) == [(False, why)] * 2


def test_models_for_tensorrt_get_the_outputs_of_the_selected_operator() -> None:
    """A node may omit unused outputs, but a plugin has all of them."""
    for outputs, attributes, count in ((("n",), PLUGIN, 2), (("idx",), MMCV, 1)):
        proto = preprocess_onnx(model("polyop::BallQuery", CLOUDS, outputs, attributes))
        assert len(proto.graph.node[0].output) == count
