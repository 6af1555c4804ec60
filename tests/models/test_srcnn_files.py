# SPDX-License-Identifier: Apache-2.0
"""The metadata of SRCNN's files, and a photo enlarged by the program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import images
import model as srcnn_model
import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from tests.support.processes import ROOT, environment
from tests.support.single_node import session

SRCNN = ROOT / "models" / "srcnn"

FORMS = ("srcnn", "srcnn2", "srcnn3")
SCALES = (2.0, 2.5, 3.0)
MAX_BYTES = 300 * 1024


@pytest.fixture(scope="module")
def layers() -> srcnn_model.Layers:
    """The trained convolutions."""
    return srcnn_model.load_weights()


@pytest.fixture(scope="module")
def protos() -> dict[str, onnx.ModelProto]:
    """The files of the repository."""
    return {form: onnx.load(SRCNN / f"{form}.onnx") for form in FORMS}


def image(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).random(shape, np.float32)


def expected(layers: srcnn_model.Layers, x: np.ndarray, scale: float) -> np.ndarray:
    """Enlarges with PyTorch's bicubic interpolation."""
    with torch.no_grad():
        return layers(F.interpolate(torch.from_numpy(x), scale_factor=scale, mode="bicubic")).numpy()


def factor(vertical: float, horizontal: float) -> np.ndarray:
    return np.array([1, 1, vertical, horizontal], np.float32)


# ---- weights ---------------------------------------------------------------------------------------


def test_the_weights_are_small_plain_arrays_of_srcnn(layers: srcnn_model.Layers) -> None:
    assert srcnn_model.WEIGHTS.stat().st_size <= MAX_BYTES
    with np.load(srcnn_model.WEIGHTS, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype == np.float32 and np.isfinite(arrays[name]).all() for name in arrays.files)
    convolutions = [m for m in layers.modules() if isinstance(m, torch.nn.Conv2d)]
    assert [c.kernel_size for c in convolutions] == [(9, 9), (1, 1), (5, 5)]
    assert [c.out_channels for c in convolutions] == [64, 32, 3]


# ---- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_the_file_is_valid_and_describes_how_images_become_tensors(
    protos: dict[str, onnx.ModelProto], form: str
) -> None:
    proto = protos[form]
    onnx.checker.check_model(proto)
    assert (SRCNN / f"{form}.onnx").stat().st_size <= MAX_BYTES
    assert [value.name for value in proto.graph.input] == (["input"] if form == "srcnn" else ["input", "factor"])
    assert [value.name for value in proto.graph.output] == ["output"]
    notes = {entry.key: json.loads(entry.value) for entry in proto.metadata_props}
    for tensor in ("input", "output"):
        assert notes[f"polyop.image.{tensor}"] == {"layout": "NCHW", "range": [0, 1], "color": "RGB"}


def test_each_form_enlarges_with_its_own_node(protos: dict[str, onnx.ModelProto]) -> None:
    (fixed,), (resize,), (custom,) = (
        [node for node in protos[form].graph.node if "Resize" in node.op_type] for form in FORMS
    )
    assert (fixed.domain, fixed.op_type) == (resize.domain, resize.op_type) == ("", "Resize")
    assert "factor" not in fixed.input
    assert resize.input[2] == "factor"
    assert (custom.domain, custom.op_type) == ("Just_A_Scope_Name", "DynamicTRTResize")
    assert list(custom.input) == ["input", "factor"]


def test_the_scales_may_differ_by_direction(layers: srcnn_model.Layers, protos: dict[str, onnx.ModelProto]) -> None:
    x = image((2, 3, 17, 23))
    (got,) = session(protos["srcnn3"]).run(None, {"input": x, "factor": factor(2.5, 3)})
    with torch.no_grad():
        want = layers(F.interpolate(torch.from_numpy(x), scale_factor=(2.5, 3.0), mode="bicubic")).numpy()
    assert got.shape == (2, 3, 42, 69)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("runtime", "scale"), [*(("onnxruntime", scale) for scale in SCALES), ("openvino", 2.5)])
def test_the_program_enlarges_a_photo_as_pytorch_does(
    program: str, layers: srcnn_model.Layers, tmp_path: Path, runtime: str, scale: float
) -> None:
    small = images.reduce(images.load(images.HELD_OUT), scale)[..., :51, :67]
    Image.fromarray((small[0] * 255).round().astype(np.uint8).transpose(1, 2, 0)).save(tmp_path / "small.png")
    command = [program, "run", SRCNN / "srcnn3.onnx", "-i", "input=small.png", "-o", "output=large.png"]
    command += ["--set", f"factor=1,1,{scale:g},{scale:g}", "--runtime", runtime]
    result = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    got = np.asarray(Image.open(tmp_path / "large.png")).astype(np.float32)
    want = expected(layers, small, scale)[0].transpose(1, 2, 0).clip(0, 1) * 255
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= 0.51  # half a rounding step, and float error
