# SPDX-License-Identifier: Apache-2.0
"""The program's `polyop batch`: images as in `polyop run`, Parquet, and its output."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto
from PIL import Image

from tests.support.machines import SRCNN, child, identity, photos
from tests.support.processes import environment

OK, FAILED, USAGE, BAD_FILE, NOT_PROVIDED = range(5)


@pytest.fixture
def polyop(program: str, tmp_path: Path):
    """Runs the program in a temporary folder with this Python; returns (exit code, stdout, stderr)."""

    def run(*words: object) -> tuple[int, str, str]:
        done = subprocess.run([program, *map(str, words)], cwd=tmp_path, env=environment(), capture_output=True, text=True,
                              check=False, timeout=300)  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    return run


def kinds_of_images(folder: Path) -> None:
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (9, 14, 4), np.uint8)
    folder.mkdir()
    Image.fromarray(noise[..., :3]).save(folder / "colour.png")
    Image.fromarray(noise).save(folder / "transparent.png")
    Image.fromarray(noise[..., 0]).save(folder / "gray.png")
    Image.fromarray(noise[..., :3]).quantize(20).save(folder / "palette.png")
    smooth = Image.fromarray(noise[..., :3]).resize((48, 32))
    smooth.save(folder / "baseline.jpg", quality=90)
    smooth.save(folder / "coarse.jpeg", quality=60, subsampling=2, progressive=True)
    smooth.convert("L").save(folder / "gray.jpg.JPG")


@pytest.mark.parametrize("how", ["float", "uint8", "bgr", "gray", "nhwc"])
def test_images_give_the_results_of_polyop_run(polyop, tmp_path: Path, how: str) -> None:
    shape = {"gray": ["n", 1, "h", "w"], "nhwc": ["n", "h", "w", 3]}.get(how, ["n", 3, "h", "w"])
    options = {"bgr": ["--color", "BGR", "--range", "-1,1"], "gray": ["--range", "0,255"]}.get(how, [])
    identity(tmp_path / "m.onnx", shape, TensorProto.UINT8 if how == "uint8" else TensorProto.FLOAT)
    kinds_of_images(tmp_path / "in")
    code, _, err = polyop("batch", "m.onnx", "-i", "in", "-o", "out", *options)
    assert code == OK, err
    files = sorted((tmp_path / "in").iterdir())
    assert len(files) == 7
    for file in files if how == "float" else files[:3]:
        assert polyop("run", "m.onnx", "-i", f"x={file}", "-o", "want.npz", *options)[0] == OK
        got, want = np.load(tmp_path / "out" / f"{file.stem}.npz")["y"], np.load(tmp_path / "want.npz")["y"]
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(got, want, err_msg=file.name)


def test_results_as_images(polyop, tmp_path: Path) -> None:
    (file,) = photos(tmp_path / "in", 1)
    words = ["--set", "factor=1,1,2,2", "--threads", 1]
    code, out, err = polyop(
        "batch", SRCNN / "srcnn3.onnx", "-i", "input=in/**/*.png", "-o", "out", "--format", "png", *words
    )
    assert code == OK, err
    assert "1 run in" in out
    assert polyop("run", SRCNN / "srcnn3.onnx", "-i", f"input={file}", "-o", "output=want.png", *words)[0] == OK
    got, want = (np.asarray(Image.open(tmp_path / p)).astype(int) for p in ("out/000/00000.png", "want.png"))
    assert got.shape == (40, 48, 3)
    assert np.abs(got - want).max() <= 1


def test_messages(polyop, tmp_path: Path) -> None:
    model = identity(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    files = photos(tmp_path / "in", 3)
    files[1].write_bytes(b"none")
    code, out, err = polyop("batch", model, "-i", "in", "-o", "out", "--json")
    assert code == FAILED, err
    report = json.loads(out)
    assert (report["files"], report["samples"], len(report["failed"])) == (3, 2, 1)
    code, out, _ = polyop("batch", model, "-i", "in", "-o", "out")
    assert code == FAILED
    assert "2 of 3 files were done before" in out
    assert "expected PNG, JPEG" in out
    code, _, err = polyop("batch", model, "-i", "in", "-o", "strict", "--strict")
    assert code == FAILED
    assert "without --strict it is reported" in err
    code, _, err = polyop("batch", model, "-i", "no/*.png", "-o", "out2")
    assert code == BAD_FILE
    assert "quote patterns" in err
    assert polyop("batch", model, "-i", "in", "-o", "out", "--range", "1")[0] == USAGE
    assert polyop("batch", model, "-i", "in", "-o", "out", "--workers", "2")[0] == USAGE
    assert polyop("batch", "none.onnx", "-i", "in", "-o", "out")[0] == BAD_FILE


PARQUET = """
import io, sys
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from PIL import Image
from polyop import batch
folder, model, points = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
rng = np.random.default_rng(0)
pixels = rng.integers(0, 256, (150, 6, 5, 3), np.uint8)
def png(p):
    buffer = io.BytesIO()
    Image.fromarray(p).save(buffer, "PNG")
    return buffer.getvalue()
rows = [{"bytes": png(p), "path": None} for p in pixels]
rows[70]["bytes"] = b"damaged"
pq.write_table(pa.table({"image": rows, "label": list(range(150))}), folder / "images.parquet")
arrays = rng.random((40, 3, 4)).astype(np.float32)
pq.write_table(pa.table({"x": pa.array(arrays.tolist(), pa.list_(pa.list_(pa.float32())))}), folder / "nested.parquet")
pq.write_table(pa.table({"x": pa.array([a.ravel() for a in arrays]), "x.shape": [[3, 4]] * 40}), folder / "flat.parquet")

report = batch.run(model, [str(folder / "images.parquet")], folder / "out", batch=7)
assert [what.split(": ")[1] for what, _ in report.failed] == ["70"], report.failed
table = pq.read_table(folder / "out" / "images.parquet").to_pylist()
assert [row["row"] for row in table] == [i for i in range(150) if i != 70]
for row in table:
    assert row["y.shape"] == [1, 3, 6, 5]
    got = np.array(row["y"], np.float32).reshape(3, 6, 5)
    np.testing.assert_array_equal(got, (pixels[row["row"]] / 255).astype(np.float32).transpose(2, 0, 1))
for name in ("nested", "flat"):
    report = batch.run(points, [str(folder / f"{name}.parquet")], folder / "points")
    assert not report.failed, report.failed
    got = pq.read_table(folder / "points" / f"{name}.parquet").column("y").to_pylist()
    np.testing.assert_array_equal(np.array(got, np.float32).reshape(arrays.shape), arrays)
(folder / "bad.parquet").write_bytes(b"PAR1 nothing")
report = batch.run(points, [str(folder / "bad.parquet")], folder / "bad")
assert "not a readable Parquet file" in report.failed[0][1], report.failed
print("rows", len(table))
"""


def test_parquet(tmp_path: Path) -> None:
    """Images as data sets store them, nested lists, and flat lists with shapes, as results are stored."""
    images, points = identity(tmp_path / "p.onnx", ["n", 3, "h", "w"]), identity(tmp_path / "x.onnx", ["n", 4])
    assert child("ray", PARQUET, tmp_path, images, points).split() == ["rows", "149"]
