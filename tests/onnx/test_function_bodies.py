# SPDX-License-Identifier: Apache-2.0
"""Model-local functions in the newest and in older ONNX Runtimes, compared with the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from polyop import portable
from tests.support.exported_nodes import Node, boxes, f, rois
from tests.support.older_onnxruntimes import OLD, in_runtime
from tests.support.portable_calls import (
    F32,
    NEWER,
    OLDER,
    WITH_BODIES,
    assert_same,
    dynamic_model,
    name_of,
    operator_of,
    pool,
    run_alone,
    several,
)
from tests.support.single_node import session


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of the portable files of calls."""
    return tmp_path_factory.mktemp("portable")


def write(files: Path, i: int) -> None:
    """Writes the portable file of a call, with its inputs and the results of polyop's kernel, unless it exists."""
    if (files / f"{i}.npz").exists():
        return
    proto, feeds = dynamic_model(WITH_BODIES[i])
    want = session(proto).run(None, feeds)
    assert [r.why for r in portable.add_functions(proto)] == [""]
    onnx.save(proto, files / f"{i}.onnx")
    np.savez(files / f"{i}.npz", **feeds, **{f"want{o}": w for o, w in enumerate(want)})


def saved(files: Path, i: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray], list[np.ndarray]]:
    write(files, i)
    arrays = dict(np.load(files / f"{i}.npz"))
    feeds = {name: a for name, a in arrays.items() if name.startswith("in")}
    return onnx.load(files / f"{i}.onnx"), feeds, [arrays[f"want{o}"] for o in range(len(arrays) - len(feeds))]


@pytest.mark.parametrize("i", range(len(WITH_BODIES)), ids=lambda i: name_of(WITH_BODIES[i]))
def test_function_equals_the_kernel(i: int, files: Path) -> None:
    proto, feeds, want = saved(files, i)
    onnx.checker.check_model(proto)
    assert_same(run_alone(proto, feeds), want)
    assert_same(session(proto).run(None, feeds), want, 0)  # polyop's kernel takes precedence over the function
    plain = portable.inline(proto)
    onnx.checker.check_model(plain)
    assert [o.domain for o in plain.opset_import] == [""]
    assert not plain.functions
    assert_same(run_alone(plain, feeds), want)


@pytest.mark.parametrize("folder", OLD, ids=lambda folder: folder.name)
def test_functions_in_older_onnxruntimes(folder: Path, files: Path) -> None:
    for i in range(len(WITH_BODIES)):
        write(files, i)
    supported = [node for node in WITH_BODIES if node.name.split("::")[1] not in NEWER]
    assert int(in_runtime(folder, f"FOLDER = {str(files)!r}\n" + OLDER)) == len(supported) >= 0.95 * len(WITH_BODIES)


HALF = [
    n
    for n in WITH_BODIES
    if operator_of(n)["half"]
    and not any(a is not None and np.isnan(a).any() for a in n.inputs if a is not None and a.dtype == F32)
]


@pytest.mark.parametrize("node", HALF[::4], ids=name_of)
def test_half_precision(node: Node) -> None:
    proto, feeds = dynamic_model(node, half=True)
    want = session(proto).run(None, feeds)
    assert portable.add_functions(proto)[0].given
    assert_same(run_alone(proto, feeds), want, 2e-3)


# ---- several nodes of a name ---------------------------------------------------------------------------------


def check_several(proto: onnx.ModelProto, feeds: Mapping[str, np.ndarray], tmp_path: Path) -> None:
    want = session(proto).run(None, feeds)
    assert all(r.given for r in portable.add_functions(proto))
    assert len(proto.functions) == 1
    assert_same(run_alone(proto, feeds), want)
    assert_same(run_alone(portable.inline(proto), feeds), want)
    onnx.save(proto, tmp_path / "several.onnx")
    np.savez(tmp_path / "several.npz", **feeds, **{f"want{o}": w for o, w in enumerate(want)})
    assert in_runtime(OLD[0], f"FOLDER = {str(tmp_path)!r}\n" + OLDER).strip() == "1"


def test_numbers_that_differ_are_attribute_references(tmp_path: Path) -> None:
    """Each level of a pyramid has its own scale: one body, no branches."""
    for mode in ("avg", "max"):
        levels = [{**pool, "mode": mode, "sampling_ratio": 2, "spatial_scale": scale} for scale in (0.25, 0.5, 1.0)]
        proto = several("mmcv::MMCVRoiAlign", {"x": f(2, 3, 9, 9), "rois": rois(6)}, levels, 4)
        check_several(proto, {"x": f(2, 3, 9, 9), "rois": rois(6)}, tmp_path)
        assert not any(node.op_type == "If" for node in proto.functions[0].node)


def test_a_number_that_only_some_nodes_have(tmp_path: Path) -> None:
    x = {"x": f(2, 3, 4), "scale": f(3), "B": f(3)}
    proto = several("mmcv::MMCVInstanceNormalization", x, [{"epsilon": 0.1}, {}], 3)
    check_several(proto, x, tmp_path)


def test_strings_and_integers_that_differ_become_branches(tmp_path: Path) -> None:
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


def test_strings_that_differ(tmp_path: Path) -> None:
    x = {"x": f(1, 2, 9, 9), "rois": rois(4, 1)}
    ways = [{**pool, "mode": mode, "sampling_ratio": 2} for mode in ("avg", "max")]
    (record, _) = portable.add_functions(several("mmcv::MMCVRoiAlign", x, ways, 4))
    assert not record.given
    assert (
        record.why
        == "nodes have different values of the string attribute 'mode'; comparing strings needs opset 19, got 18"
    )
    check_several(several("mmcv::MMCVRoiAlign", x, ways, 4, opset=19), x, tmp_path)


@pytest.mark.parametrize("shape", [(1, 2, 0, 3), (1, 2, 3, 0), (0, 2, 3, 4)])
def test_corner_pool_of_empty_images(shape: tuple[int, ...]) -> None:
    """A Scan of no steps ends the process in ONNX Runtime."""
    for mode in range(4):
        proto = several("mmcv::MMCVCornerPool", {"x": f(1, 2, 3, 4)}, [{"mode": mode}], 4)
        portable.add_functions(proto)
        for info in (*proto.graph.input, *proto.graph.output):
            info.type.tensor_type.ClearField("shape")
        (result, *_) = run_alone(proto, {"x": np.zeros(shape, np.float32)})
        assert result.shape == shape


def test_nodes_that_one_function_cannot_serve() -> None:
    x, offset, mask, weight = f(1, 2, 6, 6), f(1, 18, 6, 6), f(1, 9, 6, 6), f(2, 2, 3, 3)
    proto = several(
        "mmcv::MMCVModulatedDeformConv2d",
        {"x": x, "o": offset, "m": mask, "w": weight, "b": f(2)},
        [{"padding": [1, 1]}] * 2,
        4,
    )
    del proto.graph.node[1].input[4:]
    assert {r.why for r in portable.add_functions(proto)} == {
        "expected the same inputs on all nodes, got nodes that omit different ones"
    }
    proto = several("mmcv::NonMaxSuppression", {"b": boxes(5), "s": f(5)}, [{}], 1)
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    assert "input 0: expected a known rank" in portable.add_functions(proto)[0].why
    proto = several("mmdeploy::NMSRotated", {"b": f(5, 5), "s": f(5)}, [{}], 1)
    (record,) = portable.add_functions(proto)
    assert (record.node, record.name, record.given) == ("node0", "mmdeploy::NMSRotated", False)
    assert "No standard operator intersects rotated boxes" in record.why
    assert not proto.functions


# ---- nodes that mirror ONNX's own ----------------------------------------------------------------------------

MIRRORS = {
    "RoiAlign": (
        {"x": f(2, 3, 8, 9), "b": boxes(3), "i": np.array([0, 1, 1])},
        [{"output_height": 2, "spatial_scale": 0.5}, {"mode": "max"}],
    ),
    "GridSample": ({"x": f(2, 3, 8, 9), "g": f(2, 4, 5, 2)}, [{}, {"padding_mode": "border", "align_corners": 1}]),
    "InstanceNormalization": ({"x": f(2, 3, 8, 9), "s": f(3), "b": f(3)}, [{}, {"epsilon": 0.5}]),
    "NonMaxSuppression": ({"b": boxes(1, 9), "s": f(1, 2, 9), "max_boxes": np.array(4)}, [{}, {"center_point_box": 1}]),
}


@pytest.mark.parametrize("name", MIRRORS)
def test_aliases_pass_their_attributes_on(name: str) -> None:
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
