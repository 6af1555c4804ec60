# SPDX-License-Identifier: Apache-2.0
"""Engines in int8: scales from samples, around polyop's plugins, and `polyop convert --int8 --calibration FOLDER`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

import polyop
from polyop.tensorrt import ModelError
from polyop.tensorrt.int8 import to_int8
from tests.support.processes import environment
from tests.support.tensorrt_rtx import HAS_PLUGINS, NO_ENGINE, RUNTIME, build_all

RNG = np.random.default_rng(0)


def network() -> onnx.ModelProto:
    """A convolution, RoIAlign and a matrix product."""
    weights = {
        "w": RNG.standard_normal((16, 3, 3, 3), np.float32) / 5,
        "head": RNG.standard_normal((144, 10), np.float32) / 12,
        "flat": np.array([0, -1]),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node(
            "MMCVRoiAlign", ["r", "rois"], ["p"], name="pool", domain="mmcv", output_height=3, output_width=3,
            spatial_scale=1.0, sampling_ratio=2,
        ),
        helper.make_node("Reshape", ["p", "flat"], ["q"], name="reshape"),
        helper.make_node("MatMul", ["q", "head"], ["y"], name="fc"),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", 1, (1, 3, 16, 16)), helper.make_tensor_value_info("rois", 1, (4, 5))],
        [helper.make_tensor_value_info("y", 1, (4, 10))],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mmcv", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def sample() -> dict[str, np.ndarray]:
    corners = np.sort(RNG.uniform(0, 15, (4, 2, 2)), 1).reshape(4, 4)
    return {
        "x": RNG.standard_normal((1, 3, 16, 16), np.float32),
        "rois": np.concatenate([np.zeros((4, 1)), corners], 1).astype(np.float32),
    }


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    return ort.InferenceSession(model.SerializeToString(), options).run(None, feeds)[0]


def test_the_quantized_model_is_close_to_the_model() -> None:
    model = network()
    quantized = to_int8(model, [sample() for _ in range(8)])
    scales = {t.name: numpy_helper.to_array(t) for t in quantized.graph.initializer if t.name.endswith("_scale")}
    zeros = [numpy_helper.to_array(t) for t in quantized.graph.initializer if t.name.endswith("_zero_point")]
    assert scales["w_scale"].shape == (16,)  # of each channel
    assert all(not z.any() for z in zeros)  # TensorRT has symmetric scales only
    feeds = sample()
    want, got = run(model, feeds), run(quantized, feeds)
    assert 0 < np.abs(got - want).max() < 0.05 * np.abs(want).max()


def test_samples_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ModelError, match="calibrating for int8 failed"):
        to_int8(network(), [{"x": np.zeros((1, 3, 16, 16), np.float32)}])


def test_engines(not_run: Callable[[str], None]) -> None:
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    case = {"model": network().SerializeToString(), "calibration": [sample() for _ in range(2)]}
    for answer in build_all([{**case}, {**case, "fp16_mode": True}, {**case, "builder_optimization_level": 1}]):
        assert "error" not in answer, answer["error"]
        types = [layer["type"] for layer in answer["layers"]]
        assert types.count("PLUGIN_V3") == 1
        assert types.count("QUANTIZE") >= 3


def test_command(program: str, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    onnx.save(network(), tmp_path / "m.onnx")
    (tmp_path / "samples").mkdir()

    def convert(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [program, "convert", "m.onnx", "-o", "m.engine", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment(RUNTIME), capture_output=True, text=True, check=False, timeout=300
        )

    for arguments, message in (
        (["--int8"], "--int8 and --calibration FOLDER: expected both"),
        (["--calibration", "samples"], "--int8 and --calibration FOLDER: expected both"),
        (["--int8", "--calibration", "nowhere"], "--calibration: expected a folder, got 'nowhere'"),
        (["--builder-optimization-level", "6"], "--builder-optimization-level: '6' is not an integer"),
    ):
        done = convert(*arguments)
        assert done.returncode == 2
        assert message in done.stderr
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    done = convert("--int8", "--calibration", "samples")
    assert (done.returncode, "files, got none" in done.stderr) == (2, True), done.stderr
    for i in range(3):
        np.savez(tmp_path / "samples" / f"{i}.npz", **sample())
    done = convert("--int8", "--calibration", "samples", "--builder-optimization-level", "1")
    assert done.returncode == 0, done.stderr
    assert '"precision": "int8"' in (tmp_path / "m.engine.json").read_text()
    np.savez(tmp_path / "samples" / "3.npz", x=sample()["x"])
    done = convert("--int8", "--calibration", "samples")
    assert done.returncode == 2
    assert "expected values of all inputs, got none of 'rois'" in done.stderr
