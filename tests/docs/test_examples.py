# SPDX-License-Identifier: Apache-2.0
"""Every example runs and prints the expected lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

from tests.support.processes import ROOT

EXAMPLES = ROOT / "examples"


def run(name: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name / "main.py", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_has_a_test() -> None:
    """Other files test the examples of training and of the C++ program."""
    files = ("docs/test_examples.py", "docs/test_train_example.py", "packaging/test_sdk.py")
    source = "".join((ROOT / "tests" / name).read_text() for name in files)
    for folder in EXAMPLES.iterdir():
        assert not folder.is_dir() or folder.name == "__pycache__" or f'"{folder.name}"' in source, folder.name


def test_my_add(tmp_path: Path) -> None:
    said = run("my_add", tmp_path / "a new" / "folder")
    assert said.count("equals 2a + b in ONNX Runtime and OpenVINO") == 4
    assert "Mul Add Relu" in said
    assert said.count("custom::my_add Relu") == 3


def test_asinh(tmp_path: Path) -> None:
    assert run("asinh", tmp_path).count("equals PyTorch") == 2


def test_torch_cluster(tmp_path: Path) -> None:
    said = run("torch_cluster", tmp_path)
    assert "custom::torch_cluster_grid(pos, size, start, end) equals PyTorch in ONNX Runtime and OpenVINO" in said
    assert "custom::torch_cluster_grid(pos, size, start) equals PyTorch in ONNX Runtime and OpenVINO" in said


def test_faces(tmp_path: Path) -> None:
    said = run("faces", tmp_path)
    assert "facenet-pytorch: 1 faces" in said
    assert said.count("equals facenet-pytorch") == 2
    assert (tmp_path / "faces.png").stat().st_size > 100_000


def test_text(tmp_path: Path) -> None:
    """The page of scikit-image, and the page rotated by 12 degrees on a larger background."""
    expected = [
        "Region-based segmentation",
        "Let us first determine markers of the coins and the",
        "background. These markers are pixels that we can label",
        "unambiguously as either object or background. Here,",
        "the markers are found at the two extreme parts of the",
        "histogram of grey values:",
    ]
    page = Image.fromarray(np.pad(np.repeat(data.page()[..., None], 3, 2), ((80, 80), (40, 40), (0, 0)), "edge"))
    page.rotate(12, Image.Resampling.BICUBIC, fillcolor=(200, 200, 200)).save(tmp_path / "rotated.png")
    for photo in ([], [tmp_path / "rotated.png"]):
        said = run("text", tmp_path, *photo)
        assert [line[6:] for line in said.splitlines()[:6]] == expected, said
        assert "markers = np.zeros_like(coins)" in said
        assert Image.open(tmp_path / "text.png").size[1] in (191, 351)


@pytest.mark.slow
def test_knn_query(tmp_path: Path) -> None:
    said = run("knn_query", tmp_path)
    assert said.count("custom::knnquery: 20 x 48 neighbours in ONNX Runtime and OpenVINO") == 2
    assert said.count("custom::knnquery: 3600 x 48 neighbours in ONNX Runtime and OpenVINO") == 2
    assert (tmp_path / "knn_clusters.png").stat().st_size > 20_000


@pytest.mark.slow
def test_point_clouds(tmp_path: Path) -> None:
    said = run("point_clouds", tmp_path)
    assert "-> 28 after NMS3D" in said
    assert (tmp_path / "point_clouds.png").stat().st_size > 100_000


@pytest.mark.slow
def test_by_hand(building_folder: Path) -> None:
    said = run("by_hand", building_folder)
    assert said.count("equals NumPy") == 2
    assert said.count("'index'[1]: expected an index in [0, 50), got 50") == 2
    assert "lines of code by polyop" in said
    assert "CUDA kernels: " in said


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_real_models(runtime: str) -> None:
    """Checks that results agree. Times depend on the machine."""
    said = run("real_models", "--size", 160, "--rounds", 0, "--layers", 2, "--runtime", runtime)
    assert said.count("mmcv::MMCVMultiScaleDeformableAttention x") == 2
    assert said.count("yes") == 4
    assert said.count(f"in {runtime}: PyTorch's numbers to") == 2
