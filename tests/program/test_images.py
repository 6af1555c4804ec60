# SPDX-License-Identifier: Apache-2.0
"""`run` reads every kind of image as `batch` does, and scales and normalises it in the same way."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image

from polyop.batch import images
from polyop.batch.interface import Model, Tensor
from polyop.batch.reading import Reader


@pytest.fixture
def identity(tmp_path: Path) -> Path:
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3, "H", "W"]) for n in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def write_all_kinds(folder: Path) -> list[Path]:
    """Writes an image in every kind that is read."""
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (18, 27, 3), np.uint8)
    rgb = Image.fromarray(pixels)
    exif = Image.Exif()
    exif[0x0112] = 6
    for name in ("a.png", "a.jpg", "a.bmp", "a.webp", "a.tif"):
        rgb.save(folder / name)
    rgb.save(folder / "rotated.jpg", exif=exif)
    rgb.save(folder / "rotated.png", exif=exif)
    rgb.convert("CMYK").save(folder / "cmyk.jpg")
    rgb.convert("L").save(folder / "gray.png")
    rgb.convert("L").save(folder / "gray.jpg")
    rgb.convert("P").save(folder / "palette.png")
    rgb.convert("RGBA").save(folder / "alpha.png")
    Image.fromarray(pixels[..., 0].astype(np.uint16) * 257).save(folder / "deep.png")
    return sorted(folder.iterdir())


def run(program: str, model: Path, image: Path, *options: object) -> np.ndarray:
    output = model.with_suffix(".npy")
    command = [program, "run", model, "-i", image, "-o", output, *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.load(output)


def test_run_reads_what_batch_reads(program: str, identity: Path, tmp_path: Path) -> None:
    for path in write_all_kinds(tmp_path / "in"):
        pixels = images.read(path.read_bytes(), path.name)
        got = run(program, identity, path, "--range", "0,255")
        np.testing.assert_array_equal(got[0].transpose(1, 2, 0), pixels, err_msg=path.name)
        assert pixels.shape == ((27, 18, 3) if path.stem == "rotated" else (18, 27, 3))


@pytest.mark.parametrize(
    ("options", "given"),
    [
        (["--resize", "33x20"], {"resize": (33, 20)}),
        (["--resize", "5x7"], {"resize": (5, 7)}),
        (["--letterbox", "40x40"], {"letterbox": (40, 40)}),
        (["--letterbox", "7x50"], {"letterbox": (7, 50)}),
        (
            ["--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225"],
            {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)},
        ),
        (["--std", "0.5", "--color", "BGR"], {"std": (0.5,), "color": "BGR"}),
    ],
)
def test_options_give_what_python_gives(
    program: str, identity: Path, tmp_path: Path, options: list[str], given: dict[str, Any]
) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (18, 27, 3), np.uint8)).save(path)
    tensor = Tensor("x", np.dtype(np.float32), (1, 3, "H", "W"))
    reader = Reader(Model(None, {"x": tensor}, {}, {}), "x", [], images.ImageOptions(**given))
    expected = reader.of_file(path.read_bytes(), "a.png")
    np.testing.assert_array_equal(run(program, identity, path, *options), expected["x"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--resize", "model"], "--resize model: input 'x' is f32[1, 3, H, W], which has no size"),
        (["--resize", "0x4"], "--resize: expected HEIGHTxWIDTH or model, got '0x4'"),
        (["--resize", "4x4", "--letterbox", "4x4"], "--letterbox"),
        (["--mean", "1,2"], "--mean: expected a number, or 3 for the channels, got '1,2'"),
        (["--std", "0"], "--std: expected numbers other than 0, got '0'"),
    ],
)
def test_wrong_options(program: str, identity: Path, tmp_path: Path, options: list[str], said: str) -> None:
    Image.new("RGB", (3, 2)).save(tmp_path / "a.png")
    command = [program, "run", str(identity), "-i", str(tmp_path / "a.png"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_photo_of_another_size_and_results_that_are_no_images(program: str, tmp_path: Path) -> None:
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 48])]
    values += [helper.make_tensor_value_info("boxes", TensorProto.FLOAT, None)]
    nodes = [helper.make_node("ReduceMean", ["x"], ["rows"], axes=[1], keepdims=0)]
    nodes += [helper.make_node("ReduceMean", ["rows"], ["boxes"], axes=[2], keepdims=1)]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    Image.new("RGB", (20, 30), (9, 9, 9)).save(tmp_path / "a.png")
    command = [program, "run", str(path), "-i", str(tmp_path / "a.png")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "hint: --resize model scales it" in done.stderr
    for option in ("--resize", "--letterbox"):
        done = subprocess.run([*command, option, "model"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    target = tmp_path / "boxes.png"
    command += ["--resize", "model", "-o", f"boxes={target}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "output 'boxes': expected one image, got shape [1, 32, 1]" in done.stderr
    assert not target.exists()
