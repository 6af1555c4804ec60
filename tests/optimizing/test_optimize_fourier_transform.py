# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: ONNX's DFT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import polyop
from polyop.optimizing import optimize

PATTERN = "Fourier transform"


def model(shape: list[int], axis: int, opset: int, length: int | None = None, **attributes: int) -> onnx.ModelProto:
    constants, inputs = [], ["x"]
    if length is not None:
        constants.append(numpy_helper.from_array(np.int64(length), "length"))
        inputs.append("length")
    if opset >= 20:
        constants.append(numpy_helper.from_array(np.int64(axis), "axis"))
        inputs += [""] * (2 - len(inputs)) + ["axis"]
    else:
        attributes["axis"] = axis
    node = helper.make_node("DFT", inputs, ["y"], **attributes)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(shape))
    graph = helper.make_graph([node], "g", [given], [result], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def spectrum(x: np.ndarray, axis: int, inverse: bool, onesided: bool) -> np.ndarray:
    z = x[..., 0].astype(np.complex128) + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    transform = np.fft.ifft if inverse else np.fft.fft
    z = transform(z, axis=axis)
    if onesided:
        z = np.take(z, np.arange(x.shape[axis] // 2 + 1), axis)
    return np.stack([z.real, z.imag], -1)


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize(
    ("shape", "axis", "attributes"),
    [
        ([2, 256, 1], 1, {"onesided": 1}),
        ([2, 256, 1], 1, {}),
        ([3, 60, 2], 1, {"inverse": 1}),
        ([2, 24, 7, 2], 1, {}),
        ([2, 24, 7, 1], 2, {"onesided": 1}),
    ],
)
def test_transforms(tmp_path: Path, shape: list[int], axis: int, attributes: dict[str, int], opset: int) -> None:
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(model(shape, axis, opset, **attributes), before)
    report = optimize(before, after)
    assert report.replaced[PATTERN] == 1, str(report)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    y = ort.InferenceSession(after, options).run(None, {"x": x})[0]
    expected = spectrum(x, axis, bool(attributes.get("inverse")), bool(attributes.get("onesided")))
    np.testing.assert_allclose(y, expected, atol=1e-4)


@pytest.mark.parametrize("length", [400, 16_000])
def test_inexact_transforms(tmp_path: Path, length: int) -> None:
    """ONNX Runtime's result for 16,000 elements differs by about 2 from the right one, which a fix restores."""
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(model([1, length, 1], 1, 17, onesided=1), before)
    report = optimize(before, after, all=True)
    assert report.replaced[PATTERN] == 0
    assert "ONNX Runtime's result differs from the standard; --allow-fix replaces it" in str(report)
    report = optimize(before, after, all=True, allow_fix=True)
    assert report.replaced[PATTERN] == 1
    assert "yes: ONNX Runtime's result differs by" in str(report)
    x = np.random.default_rng(0).standard_normal((1, length, 1)).astype(np.float32)
    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    y = ort.InferenceSession(after, options).run(None, {"x": x})[0]
    expected = spectrum(x, 1, False, True)
    assert np.abs(y - expected).max() < 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize(("length", "replaced"), [(256, 1), (512, 0)], ids=["that of the input", "another one"])
def test_length(tmp_path: Path, length: int, replaced: int) -> None:
    before = tmp_path / "before.onnx"
    onnx.save(model([2, 256, 1], 1, 17, length), before)
    assert optimize(before, tmp_path / "after.onnx").replaced[PATTERN] == replaced
