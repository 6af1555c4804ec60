"""SRCNN's weights, its three ONNX forms and their results: PyTorch, ONNX Runtime and the program agree."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from onnx import numpy_helper
from PIL import Image
from single_node import session

SRCNN = Path(__file__).resolve().parent.parent / "models" / "srcnn"
sys.path.insert(0, str(SRCNN))

import export as srcnn_export  # noqa: E402
import model as srcnn_model  # noqa: E402
import pictures  # noqa: E402

FORMS = ("srcnn", "srcnn2", "srcnn3")
SCALES = (2.0, 2.5, 3.0)
SHAPES = ((1, 3, 24, 32), (2, 3, 17, 23), (1, 3, 9, 31))  # the odd extents make floor(extent * 2.5) matter
MAX_BYTES = 300 * 1024


@pytest.fixture(scope="module")
def layers() -> srcnn_model.Layers:
    """The trained convolutions."""
    return srcnn_model.load_weights()


@pytest.fixture(scope="module")
def protos() -> dict[str, onnx.ModelProto]:
    """The files of the repository."""
    return {form: onnx.load(SRCNN / f"{form}.onnx") for form in FORMS}


def picture(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).random(shape, np.float32)


def expected(layers: srcnn_model.Layers, x: np.ndarray, scale: float) -> np.ndarray:
    """The same by PyTorch's own bicubic interpolation."""
    with torch.no_grad():
        return layers(pictures.enlarge(torch.from_numpy(x), scale)).numpy()


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


@pytest.mark.parametrize("scale", SCALES)
def test_srcnn_beats_bicubic_on_the_held_out_picture(layers: srcnn_model.Layers, scale: float) -> None:
    assert pictures.HELD_OUT not in pictures.TRAINING
    original = pictures.load(pictures.HELD_OUT)
    bicubic = pictures.enlarge(pictures.reduce(original, scale), scale)
    with torch.no_grad():
        sharpened = layers(bicubic)
    border = round(scale) + 6
    assert pictures.psnr(sharpened, original, border) > pictures.psnr(bicubic, original, border) + 0.25


# ---- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_the_file_is_valid_and_says_how_pictures_become_tensors(protos: dict[str, onnx.ModelProto], form: str) -> None:
    proto = protos[form]
    onnx.checker.check_model(proto)
    assert (SRCNN / f"{form}.onnx").stat().st_size <= MAX_BYTES
    assert [value.name for value in proto.graph.input] == (["input"] if form == "srcnn" else ["input", "factor"])
    assert [value.name for value in proto.graph.output] == ["output"]
    notes = {entry.key: json.loads(entry.value) for entry in proto.metadata_props}
    for tensor in ("input", "output"):
        assert notes[f"polyop.image.{tensor}"] == {"layout": "NCHW", "range": [0, 1], "color": "RGB"}


def test_each_form_enlarges_by_its_own_node(protos: dict[str, onnx.ModelProto]) -> None:
    (fixed,), (resize,), (custom,) = (
        [node for node in protos[form].graph.node if "Resize" in node.op_type] for form in FORMS
    )
    assert (fixed.domain, fixed.op_type) == (resize.domain, resize.op_type) == ("", "Resize")
    assert "factor" not in fixed.input
    assert resize.input[2] == "factor"
    assert (custom.domain, custom.op_type) == ("Just_A_Scope_Name", "DynamicTRTResize")
    assert list(custom.input) == ["input", "factor"]


def test_exporting_again_gives_the_files_of_the_repository(protos: dict[str, onnx.ModelProto], tmp_path: Path) -> None:
    assert [path.stem for path in srcnn_export.export_all(tmp_path)] == list(FORMS)
    for form, committed in protos.items():
        again = onnx.load(tmp_path / f"{form}.onnx")
        assert parts(again) == parts(committed), form
        weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in again.graph.initializer}
        assert set(weights) == {tensor.name for tensor in committed.graph.initializer}
        for tensor in committed.graph.initializer:
            np.testing.assert_array_equal(weights[tensor.name], numpy_helper.to_array(tensor), err_msg=tensor.name)


def parts(proto: onnx.ModelProto) -> dict[str, object]:
    """All of a model but its initialisers and what names the exporter's version."""
    graph = proto.graph
    return {
        "opsets": sorted((entry.domain, entry.version) for entry in proto.opset_import),
        "notes": sorted((entry.key, entry.value) for entry in proto.metadata_props),
        "values": [value.SerializeToString(deterministic=True) for value in (*graph.input, *graph.output)],
        "nodes": [
            (
                node.domain, node.op_type, tuple(node.input), tuple(node.output),
                sorted(entry.SerializeToString(deterministic=True) for entry in node.attribute),
            )
            for node in graph.node
        ],
    }  # fmt: skip


# ---- results ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_srcnn_equals_pytorch(layers: srcnn_model.Layers, shape: tuple[int, ...]) -> None:
    x = picture(shape)
    (got,) = plain_session("srcnn").run(None, {"input": x})
    np.testing.assert_allclose(got, expected(layers, x, 3.0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", SCALES)
def test_srcnn2_equals_pytorch(layers: srcnn_model.Layers, shape: tuple[int, ...], scale: float) -> None:
    x = picture(shape)
    (got,) = plain_session("srcnn2").run(None, {"input": x, "factor": factor(scale, scale)})
    np.testing.assert_allclose(got, expected(layers, x, scale), rtol=1e-4, atol=1e-5)


def plain_session(form: str) -> ort.InferenceSession:
    """A session without polyop, which two of the forms do not need."""
    return ort.InferenceSession(SRCNN / f"{form}.onnx", providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", SCALES)
def test_srcnn3_equals_pytorch(
    layers: srcnn_model.Layers, protos: dict[str, onnx.ModelProto], shape: tuple[int, ...], scale: float
) -> None:
    x = picture(shape)
    (got,) = session(protos["srcnn3"]).run(None, {"input": x, "factor": factor(scale, scale)})
    np.testing.assert_allclose(got, expected(layers, x, scale), rtol=1e-4, atol=1e-5)


def test_one_session_of_srcnn3_serves_every_scale(
    layers: srcnn_model.Layers, protos: dict[str, onnx.ModelProto]
) -> None:
    srcnn3 = session(protos["srcnn3"], threads=2)
    assert srcnn3.get_outputs()[0].shape[1] == 3
    for shape, scale in zip(SHAPES, SCALES, strict=True):
        x = picture(shape)
        (got,) = srcnn3.run(None, {"input": x, "factor": factor(scale, scale)})
        np.testing.assert_allclose(got, expected(layers, x, scale), rtol=1e-4, atol=1e-5)


def test_the_scales_may_differ_by_direction(layers: srcnn_model.Layers, protos: dict[str, onnx.ModelProto]) -> None:
    x = picture(SHAPES[1])
    (got,) = session(protos["srcnn3"]).run(None, {"input": x, "factor": factor(2.5, 3)})
    with torch.no_grad():
        want = layers(pictures.enlarge(torch.from_numpy(x), (2.5, 3.0))).numpy()
    assert got.shape == (2, 3, 42, 69)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", SCALES)
def test_the_program_enlarges_a_photo_as_pytorch_does(
    program: str, layers: srcnn_model.Layers, tmp_path: Path, scale: float
) -> None:
    small = pictures.reduce(pictures.load(pictures.HELD_OUT), scale)[..., :51, :67]
    Image.fromarray((small[0] * 255).round().byte().permute(1, 2, 0).numpy()).save(tmp_path / "small.png")
    command = [program, "run", SRCNN / "srcnn3.onnx", "-i", "input=small.png", "-o", "output=large.png"]
    command += ["--set", f"factor=1,1,{scale:g},{scale:g}"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    got = np.asarray(Image.open(tmp_path / "large.png")).astype(np.float32)
    want = expected(layers, small.numpy(), scale)[0].transpose(1, 2, 0).clip(0, 1) * 255
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= 0.51  # half a level of rounding, and float error
