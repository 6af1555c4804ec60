# SPDX-License-Identifier: Apache-2.0
"""polyop batch --draw, --sheet, --csv and --names: detections of folders and of videos."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from polyop.attaching import ImageSteps, attach
from tests.support.detectors import F32, cells, write
from tests.support.openmmlab import FOLDER as OPENMMLAB

SIZE = (64, 64)
FRAMES = """
import sys
import numpy as np
from pathlib import Path
from polyop.batch.video import VideoWriter, frames, rate
with VideoWriter(Path(sys.argv[1]), 10) as writer:
    for i in range(4):
        writer.add(np.full((96, 128, 3), (40 * i, 0, 0), np.uint8))
read = [frame.mean((0, 1)) for frame in frames(Path(sys.argv[1]))]
np.testing.assert_allclose(read, [(40 * i, 0, 0) for i in range(4)], atol=6)
assert rate(Path(sys.argv[1])) == 10
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Writes a detector that finds two boxes, and two photos, one in a subfolder."""
    rows = np.zeros((cells(SIZE), 6), F32)
    rows[5], rows[9] = (20, 24, 16, 8, 0, 0.9), (40, 40, 8, 8, 0.6, 0)
    write(tmp_path / "m.onnx", SIZE, {"output0": rows.T[None]}, {"names": "{0: 'cat', 1: 'dog'}", "task": "detect"})
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", image=ImageSteps())
    (tmp_path / "photos" / "more").mkdir(parents=True)
    Image.new("RGB", (128, 128)).save(tmp_path / "photos" / "x.png")
    Image.new("RGB", (300, 150)).save(tmp_path / "photos" / "more" / "y.jpg")
    return tmp_path


@pytest.fixture
def with_opencv(tmp_path: Path) -> dict[str, str]:
    """Returns an environment in which OpenCV is installed."""
    assert (OPENMMLAB / "cv2").is_dir(), f"{OPENMMLAB} is missing: run tools/setup.sh"
    (tmp_path / "site").mkdir()
    for name in ("cv2", "opencv_python_headless.libs"):
        (tmp_path / "site" / name).symlink_to(OPENMMLAB / name)
    return {**os.environ, "PYTHONPATH": str(tmp_path / "site")}


def batch(folder: Path, *words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "polyop", "batch", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


def test_folder(folder: Path) -> None:
    (folder / "photos" / "damaged.png").write_bytes(b"not an image")
    words = ("app.onnx", "-i", "photos", "-o", "found", "--draw", "drawn", "--sheet", "sheet.png", "--csv", "f.csv")
    for _ in range(2):  # the second run draws the results of the first
        done = batch(folder, *words)
        assert (done.returncode, "1 failed" in done.stdout) == (1, True), done.stdout + done.stderr
        with (folder / "f.csv").open() as file:
            table = list(csv.DictReader(file))
        assert [(row["file"], row["name"]) for row in table] == [
            ("photos/more/y.jpg", "dog"),
            ("photos/more/y.jpg", "cat"),
            ("photos/x.png", "dog"),
            ("photos/x.png", "cat"),
        ]
        assert [float(table[2][key]) for key in ("x1", "y1", "x2", "y2")] == [24, 40, 56, 56]
        drawn = np.asarray(Image.open(folder / "drawn" / "x.png"))
        assert drawn[56, 24:56].any(axis=1).all()  # the lower edge of the dog
        assert Image.open(folder / "drawn" / "more" / "y.png").size == (300, 150)
        sheet = np.asarray(Image.open(folder / "sheet.png"))
        assert sheet.shape == (256, 480, 3)
        assert (sheet[:60, :240] == 255).all()  # y.jpg is wide
        assert (sheet[100, 20:40] == 0).all()
        assert not (sheet[242:254, 240:300] == 255).all()  # the name of x.png
        (folder / "drawn" / "x.png").unlink()


def test_names(folder: Path) -> None:
    (folder / "names.txt").write_text("chat\nchien\n")
    done = batch(folder, "app.onnx", "-i", "photos/x.png", "-o", "found", "--csv", "f.csv", "--names", "names.txt")
    assert done.returncode == 0, done.stderr
    assert (folder / "f.csv").read_text().splitlines()[1].startswith("photos/x.png,,1,chien,0.8")


def test_video(folder: Path, with_opencv: dict[str, str]) -> None:
    (folder / "videos").mkdir()
    subprocess.run([sys.executable, "-c", FRAMES, "videos/clip.mp4"], cwd=folder, env=with_opencv, check=True)
    words = ("app.onnx", "-i", "videos", "-o", "found", "--draw", "drawn", "--sheet", "sheet.jpg", "--csv", "f.csv")
    done = batch(folder, *words, environment=with_opencv)
    assert done.returncode == 0, done.stdout + done.stderr
    with tarfile.open(folder / "found" / "clip.tar") as archive:
        assert archive.getnames() == [f"{i:06}.npz" for i in range(4)]
    rows = (folder / "f.csv").read_text().splitlines()[1:]
    assert [row.split(",")[:2] for row in rows] == [["videos/clip.mp4", str(i)] for i in range(4) for _ in range(2)]
    assert {path.name for path in (folder / "drawn").iterdir()} == {"clip.mp4"}
    read = "import sys; from pathlib import Path; from polyop.batch.video import frames; print(*(f.shape for f in frames(Path(sys.argv[1]))))"
    said = subprocess.run(
        [sys.executable, "-c", read, "drawn/clip.mp4"], cwd=folder, env=with_opencv, check=True, capture_output=True
    ).stdout
    assert said.count(b"(96, 128, 3)") == 4
    assert Image.open(folder / "sheet.jpg").size == (240, 256)
    (folder / "videos" / "damaged.mp4").write_bytes(b"no video")
    done = batch(folder, "app.onnx", "-i", "videos", "-o", "found", environment=with_opencv)
    assert done.returncode == 1
    assert "damaged.mp4' is not a readable video" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["app.onnx", "--draw", "d", "--format", "npy"], 2, "--draw: expected --format npz and all outputs"),
        (["app.onnx", "--sheet", "s.gif"], 2, "--sheet: expected a file .png or .jpg or .jpeg, got 's.gif'"),
        (["app.onnx", "--draw", "photos/drawn"], 2, "'photos/drawn' would be an input of the next run"),
        (["m.onnx", "--csv", "f.csv"], 1, "expected an output detection_boxes or segmentation, got none"),
        (["app.onnx", "--csv", "f.csv", "--names", "none.txt"], 3, "none.txt"),
    ],
    ids=str,
)
def test_errors(folder: Path, words: list[str], code: int, said: str) -> None:
    done = batch(folder, *words, "-i", "photos", "-o", "found")
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "found").exists()


def test_a_video_without_opencv(folder: Path) -> None:
    (folder / "clip.mp4").write_bytes(b"no video")
    done = batch(folder, "app.onnx", "-i", "clip.mp4", "-o", "found")
    assert done.returncode == 1
    assert "expected OpenCV for videos, it is not installed" in done.stderr
    assert "pip install opencv-python-headless" in done.stderr
