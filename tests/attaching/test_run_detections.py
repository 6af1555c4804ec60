# SPDX-License-Identifier: Apache-2.0
"""polyop run --draw, --csv and --names: detections of a file with an attached head."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

from polyop.attaching import ImageSteps, attach
from polyop.attaching.drawing import Detection, draw
from tests.support.detectors import F32, cells, write

SIZE = (64, 64)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Writes a detector that finds two boxes, and a black photo of twice its size."""
    rows = np.zeros((cells(SIZE), 6), F32)
    rows[5], rows[9] = (20, 24, 16, 8, 0, 0.9), (40, 40, 8, 8, 0.6, 0)
    metadata = {"names": "{0: 'cat', 1: 'dog'}", "task": "detect"}
    write(tmp_path / "m.onnx", SIZE, {"output0": rows.T[None]}, metadata)
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", image=ImageSteps())
    Image.new("RGB", (128, 128)).save(tmp_path / "photo.png")
    return tmp_path / "app.onnx"


def run(program: str, app: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [program, "run", app.name, "-i", "photo=photo.png", *words]
    return subprocess.run(command, cwd=app.parent, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_table_drawing_and_csv(program: str, app: Path, runtime: str) -> None:
    done = run(program, app, "--draw", "out/found.png", "--csv", "found.csv", "--runtime", runtime)
    assert done.returncode == 0, done.stderr
    assert [
        line.split() for line in done.stdout.splitlines() if line.startswith("  dog") or line.startswith("  cat")
    ] == [
        ["dog", "0.900", "24.0,", "40.0,", "56.0,", "56.0"],
        ["cat", "0.600", "72.0,", "72.0,", "88.0,", "88.0"],
    ]
    with (app.parent / "found.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [(row["name"], float(row["x1"]), float(row["y2"])) for row in table] == [("dog", 24, 56), ("cat", 72, 88)]
    pixels = np.asarray(Image.open(app.parent / "out" / "found.png"))
    assert pixels.shape == (128, 128, 3)
    assert pixels[56, 24:56].any(axis=1).all()  # the lower edge of the dog
    assert not pixels[100:].any()


def names_found(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return [found["name"] for found in json.loads(done.stdout)["detections"]]


def test_a_file_of_openvinos_keeps_the_names(program: str, app: Path) -> None:
    command = [sys.executable, "-m", "polyop", "convert", "app.onnx", "-o", "app.xml", "--runtime", "openvino"]
    subprocess.run(command, cwd=app.parent, check=True, capture_output=True)
    assert names_found(run(program, app.with_suffix(".xml"), "--draw", "found.png", "--json")) == ["dog", "cat"]
    assert np.asarray(Image.open(app.parent / "found.png"))[56, 24:56].any(axis=1).all()


ENGINES_IN_ONNXRUNTIME = """
import polyop, polyop.tensorrt, torch
torch.cuda.is_available = lambda: True
torch.Tensor.cuda = lambda self: self
class TRTWrapper:
    def __init__(self, engine):
        self.session = polyop.session(engine.replace(".engine", ".onnx"))
    def __call__(self, feeds):
        names = [output.name for output in self.session.get_outputs()]
        outputs = self.session.run(names, {name: tensor.numpy() for name, tensor in feeds.items()})
        return dict(zip(names, map(torch.from_numpy, outputs)))
polyop.tensorrt.TRTWrapper = TRTWrapper
"""


@pytest.fixture
def engine(app: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An engine of the application, as `polyop convert` describes it; ONNX Runtime computes its outputs."""
    model = onnx.load(app)
    types = {"photo": "u8", "num_detections": "i32", "detection_classes": "i32"}
    description = {
        what: {
            v.name: {"type": types.get(v.name, "f32"), "shape": [-1] * len(v.type.tensor_type.shape.dim)} for v in given
        }
        for what, given in (("inputs", model.graph.input), ("outputs", model.graph.output))
    }
    description |= {"runtime": "tensorrt", "metadata": {entry.key: entry.value for entry in model.metadata_props}}
    app.with_suffix(".engine").write_bytes(b"an engine")
    app.with_name("app.engine.json").write_text(json.dumps(description))
    (app.parent / "site").mkdir()
    (app.parent / "site" / "sitecustomize.py").write_text(ENGINES_IN_ONNXRUNTIME)
    monkeypatch.setenv("PYTHONPATH", str(app.parent / "site"))
    return app.with_suffix(".engine")


def test_an_engine_keeps_the_names(program: str, engine: Path) -> None:
    assert names_found(run(program, engine, "--draw", "found.png", "--json")) == ["dog", "cat"]
    assert np.asarray(Image.open(engine.parent / "found.png"))[56, 24:56].any(axis=1).all()


def test_an_engine_is_timed_without_the_start_of_python(program: str, app: Path, engine: Path) -> None:
    """Which takes seconds, because of PyTorch. The engine's results are compared with the ONNX file's."""
    words = ["--shape", "photo=1x128x128x3", "--repeat", "3", "--seconds", "0.01", "--threads", "2", "--json"]
    command = [program, "bench", app.name, "--against", engine.name, *words]
    done = subprocess.run(command, cwd=app.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    file, timed = json.loads(done.stdout)["runs"]
    assert (file["model"], file["threads"]) == ("app.onnx", 2)
    assert (timed["model"], timed["runtime"], timed["threads"]) == ("app.engine", "tensorrt", 0)
    assert timed["count"] >= 3
    assert 0 < timed["min_seconds"] < 0.5
    done = subprocess.run([program, "bench", engine.name, "--layers"], cwd=app.parent, capture_output=True, text=True)
    assert done.returncode == 2
    assert "trtexec --loadEngine=app.engine --dumpProfile" in done.stderr


@pytest.mark.parametrize(
    ("mode", "extents"), [("L", (128, 128)), ("RGBA", (128, 128)), ("RGB", (1, 1)), ("RGB", (3, 700))]
)
def test_photos_of_other_kinds(program: str, app: Path, mode: str, extents: tuple[int, int]) -> None:
    Image.new(mode, extents).save(app.parent / "photo.png")
    done = run(program, app, "--draw", "found.png", "--json")
    assert done.returncode == 0, done.stderr
    assert Image.open(app.parent / "found.png").size == extents
    for found in json.loads(done.stdout)["detections"]:
        x1, y1, x2, y2 = found["box"]
        assert 0 <= x1 <= x2 <= extents[0]
        assert 0 <= y1 <= y2 <= extents[1]


def test_json_and_names(program: str, app: Path) -> None:
    (app.parent / "names.txt").write_text("chat\nchien\n")
    done = run(program, app, "--names", "names.txt", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["detections"]
    assert [(d["class"], d["name"], d["box"]) for d in found] == [
        (1, "chien", [24, 40, 56, 56]),
        (0, "chat", [72, 72, 88, 88]),
    ]


def test_several_photos(program: str, app: Path) -> None:
    Image.new("RGB", (64, 64)).save(app.parent / "small.png")
    words = ["photo.png", "small.png", "--draw", "drawn", "--csv", "found.csv"]
    command = [program, "run", "app.onnx", *words]
    done = subprocess.run(command, cwd=app.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.endswith(".png")] == ["photo.png", "small.png"]
    with (app.parent / "found.csv").open() as file:
        found = [(row["file"], row["name"], float(row["x1"])) for row in csv.DictReader(file)]
    assert found == [
        ("photo.png", "dog", 24),
        ("photo.png", "cat", 72),
        ("small.png", "dog", 12),
        ("small.png", "cat", 36),
    ]
    assert [Image.open(app.parent / "drawn" / name).size for name in words[:2]] == [(128, 128), (64, 64)]
    done = subprocess.run(
        [*command[:5], "--draw", "one.png"], cwd=app.parent, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "--draw: expected a folder" in done.stderr) == (2, True)


def test_errors(program: str, app: Path) -> None:
    for words, code, said in (
        (["--draw", "found.gif"], 2, "--draw: 'found.gif' is of an unknown kind"),
        (["--names", "none.txt"], 3, "'none.txt': No such file"),
    ):
        done = run(program, app, *words)
        assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    words = [program, "run", "m.onnx", "-i", "images=zeros", "--draw", "x.png"]
    done = subprocess.run(words, cwd=app.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "expected an input of pixels u8[1, H, W, 3], got none" in done.stderr
    assert not (app.parent / "x.png").exists()


def test_masks_points_and_rotated_boxes() -> None:
    """A mask and its box are coloured, and a point that is not visible is not drawn."""
    mask = np.zeros((60, 80), np.uint8)
    mask[20:30, 20:40] = 1
    points = np.array([[60, 20, 1], [60, 40, 0]], F32)
    found = Detection(0, "a", 0.5, np.array([20, 20, 40, 30], F32), points, mask)
    pixels = draw(np.zeros((60, 80, 3), np.uint8), [found])
    assert pixels[25, 30].any()
    assert pixels[20, 60].any()
    assert not pixels[40, 60].any()
    rotated = Detection(0, "a", 0.5, np.array([40, 30, 20, 4, np.pi / 2], F32))
    corners = {(round(x), round(y)) for x, y in rotated.outline()}
    assert corners == {(38, 20), (38, 40), (42, 20), (42, 40)}
