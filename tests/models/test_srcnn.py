# SPDX-License-Identifier: Apache-2.0
"""SRCNN's three ONNX forms, compared with PyTorch at run-time scales and with a fresh export, in ONNX Runtime and
OpenVINO.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F
from export import export_all
from images import HELD_OUT, SCALES, enlarge, load, psnr, reduce
from model import FixedScale, OnnxResize, RunTimeScale, load_weights

import polyop
import polyop.openvino
from tests.support.processes import ROOT

FOLDER = ROOT / "models" / "srcnn"


def run(name: str, **feeds: np.ndarray) -> np.ndarray:
    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    return ort.InferenceSession(str(FOLDER / name), options).run(None, feeds)[0]


@pytest.mark.parametrize("name", ["srcnn2.onnx", "srcnn3.onnx"])
@pytest.mark.parametrize("scale", [2.0, 2.5, 3.0])
@pytest.mark.parametrize("shape", [(1, 3, 20, 30), (2, 3, 17, 11)])
def test_run_time_scales_equal_pytorch(name: str, scale: float, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).random(shape).astype(np.float32)
    factor = np.array([1, 1, scale, scale], np.float32)
    with torch.no_grad():
        want = RunTimeScale(load_weights(), OnnxResize)(torch.from_numpy(x), torch.from_numpy(factor))
    np.testing.assert_allclose(run(name, input=x, factor=factor), want, rtol=1e-4, atol=1e-5)


def test_the_fixed_scale_equals_pytorch() -> None:
    x = np.random.default_rng(1).random((1, 3, 20, 30)).astype(np.float32)
    with torch.no_grad():
        want = FixedScale(load_weights(), 3.0)(torch.from_numpy(x))
    np.testing.assert_allclose(run("srcnn.onnx", input=x), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["srcnn.onnx", "srcnn2.onnx", "srcnn3.onnx"])
def test_openvino_gives_the_same_result(name: str) -> None:
    feeds = {"input": np.random.default_rng(2).random((2, 3, 20, 30)).astype(np.float32)}
    if name != "srcnn.onnx":
        feeds["factor"] = np.array([1, 1, 2.5, 2.5], np.float32)
    model = polyop.openvino.core().compile_model(FOLDER / name, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    np.testing.assert_allclose(model(feeds)["output"], run(name, **feeds), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", SCALES)
def test_images_are_reduced_and_enlarged_as_by_pytorch(scale: float) -> None:
    original = load(HELD_OUT)
    size = [round(extent / scale) for extent in original.shape[-2:]]
    small = F.interpolate(torch.from_numpy(original), size=size, mode="bicubic", antialias=True)
    # Sums in another order may round to another value in a few cases.
    differs = np.abs(reduce(original, scale) * 255 - small.clamp(0, 1).mul(255).round().numpy()) > 0.5
    assert differs.mean() < 1e-4
    large = F.interpolate(small, scale_factor=scale, mode="bicubic")
    np.testing.assert_allclose(enlarge(small.numpy(), scale), large, atol=1e-5)


@pytest.mark.parametrize("scale", SCALES)
def test_beats_bicubic_on_an_unseen_photo(scale: float) -> None:
    original = load(HELD_OUT)
    small = reduce(original, scale)
    factor = np.array([1, 1, scale, scale], np.float32)
    sharpened = run("srcnn3.onnx", input=small, factor=factor)
    border = round(scale) + 6
    assert psnr(sharpened, original, border) > psnr(enlarge(small, scale), original, border) + 0.2


def test_committed_files_equal_a_new_export(tmp_path: Path) -> None:
    for path in export_all(tmp_path):
        fresh, kept = onnx.load(path), onnx.load(FOLDER / path.name)
        assert [n.op_type for n in fresh.graph.node] == [n.op_type for n in kept.graph.node]
        assert [o.domain for o in fresh.opset_import] == [o.domain for o in kept.opset_import]
        for a, b in zip(fresh.graph.initializer, kept.graph.initializer, strict=True):
            np.testing.assert_array_equal(onnx.numpy_helper.to_array(a), onnx.numpy_helper.to_array(b))
