"""`polyop.batch` on one machine: results are those of each file alone, whole or not there, and done once."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
from machines import SRCNN, identity, photos, save
from onnx import TensorProto, helper
from PIL import Image

import polyop
from polyop import batch
from polyop._whole_files import sweep
from polyop.batch import folder
from polyop.batch.interface import open_model
from polyop.batch.runner import Runner


def results(output: Path) -> dict[str, dict[str, np.ndarray]]:
    return {str(p.relative_to(output).with_suffix("")): dict(np.load(p)) for p in sorted(output.rglob("*.npz"))}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 of one size, 3 of another."""
    made = tmp_path_factory.mktemp("pictures")
    photos(made, 30, width=12, height=10)
    photos(made / "others", 3, width=11, height=10)
    return made


# ---- results -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 0])
def test_results_are_those_of_each_alone(pictures: Path, tmp_path: Path, size: int) -> None:
    """In batches, too, with shapes mixed; in the folders of the pictures."""
    report = batch.run(SRCNN / "srcnn.onnx", [f"{pictures}/**/*.png"], tmp_path / "out", batch=size)
    got = results(tmp_path / "out")
    assert (report.samples, report.failed) == (33, [])
    assert report.largest_batch == size if size else 1 < report.largest_batch <= 8
    session = polyop.session(SRCNN / "srcnn.onnx")
    files = sorted(pictures.rglob("*.png"))
    assert list(got) == [str(path.relative_to(pictures).with_suffix("")) for path in files]
    for path, arrays in zip(files, got.values(), strict=True):
        x = (np.asarray(Image.open(path)) / 255).astype(np.float32).transpose(2, 0, 1)[None]
        (want,) = session.run(None, {"input": x})
        np.testing.assert_allclose(arrays["output"], want, atol=1e-5)


def test_a_first_dimension_that_does_not_count_samples(pictures: Path, tmp_path: Path) -> None:
    """The model's mean is over all that it gets: found out, and every picture is run alone."""
    nodes = [helper.make_node("ReduceMean", ["x"], ["mean"], keepdims=1), helper.make_node("Sub", ["x", "mean"], ["y"])]
    model = save(tmp_path / "m.onnx", nodes, {"x": ["n", 3, "h", "w"]}, {"y": ["n", 3, "h", "w"]})
    report = batch.run(model, [str(pictures)], tmp_path / "out")
    assert "'y' is another in a batch than alone" in report.note
    for arrays in results(tmp_path / "out").values():
        assert abs(arrays["y"].mean()) < 1e-5


def test_samples_that_the_model_refuses_take_no_others_along(tmp_path: Path) -> None:
    """A Gather whose index is out of range."""
    nodes = [helper.make_node("Gather", ["table", "x"], ["y"])]
    table = {"table": np.arange(5, dtype=np.int64) * 10}
    model = open_model(save(tmp_path / "m.onnx", nodes, {"x": ["n", 2]}, {"y": ["n", 2]}, TensorProto.INT64, table))
    runner = Runner(model, {}, ("y",), 4)
    samples = [{"x": np.array([[i % 5, 9 if i == 6 else 1]])} for i in range(12)]
    answers = runner.run(samples)
    assert isinstance(answers[6], Exception)
    assert [a["y"].tolist() for i, a in enumerate(answers) if i != 6] == [
        [[i % 5 * 10, 10]] for i in range(12) if i != 6
    ]


def test_arrays_constants_and_points(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((5, 4)).astype(np.float32)
    for name in ("in", "points"):
        (tmp_path / name).mkdir()
    np.save(tmp_path / "in" / "a.npy", x.astype(np.float64))
    np.savez(tmp_path / "in" / "b.npz", x=x[:2], other=np.ones(3))
    (tmp_path / "in" / "c.bin").write_bytes(x[:3].tobytes())
    np.save(tmp_path / "shift.npy", np.full(4, 2, np.float32))
    model = save(tmp_path / "m.onnx", [helper.make_node("Add", ["x", "shift"], ["y"])],
                 {"x": ["n", 4], "shift": [4]}, {"y": ["n", 4]})  # fmt: skip
    given = {"one": {"inputs": [f"x={tmp_path}/in", f"shift={tmp_path}/shift.npy"]},
             "two": {"inputs": [f"x={tmp_path}/in"], "sets": ["shift=2,2,2,2"]},
             "three": {"inputs": [f"x={tmp_path}/in"], "constants": {"shift": [2, 2, 2, 2]}}}  # fmt: skip
    for name, how in given.items():
        report = batch.run(model, output=tmp_path / name, **how)
        assert not report.failed, report.failed
        got = results(tmp_path / name)
        for key, rows in {"a": 5, "b": 2, "c": 3}.items():
            np.testing.assert_array_equal(got[key]["y"], x[:rows] + 2)


def test_shards(pictures: Path, tmp_path: Path) -> None:
    """WebDataset: in the shard's order; labels are left alone, a damaged picture leaves its place empty."""
    files = sorted(pictures.rglob("*.png"))[:20]
    with tarfile.open(tmp_path / "shard.tar", "w") as tar:
        for i, path in enumerate(files):
            data = path.read_bytes() if i != 7 else b"\x89PNG damaged"
            for name, content in ((f"s/{i:03}.png", data), (f"s/{i:03}.cls", b"5")):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    report = batch.run(SRCNN / "srcnn.onnx", [str(tmp_path / "shard.tar")], tmp_path / "out", format="npy", batch=3)
    assert [what for what, _ in report.failed] == [f"{tmp_path}/shard.tar: s/007"]
    alone = batch.run(SRCNN / "srcnn.onnx", list(map(str, files)), tmp_path / "alone", format="npy")
    assert alone.samples == 20
    with tarfile.open(tmp_path / "out" / "shard.tar") as tar:
        assert tar.getnames() == [f"s/{i:03}.npy" for i in range(20) if i != 7]
        for name in tar.getnames():
            got = np.load(io.BytesIO(tar.extractfile(name).read()))
            np.testing.assert_allclose(
                got, np.load(tmp_path / "alone" / f"{files[int(name[2:5])].stem}.npy"), atol=1e-5
            )
    (tmp_path / "shard.tar").write_bytes((tmp_path / "shard.tar").read_bytes()[:9000])
    report = batch.run(SRCNN / "srcnn.onnx", [str(tmp_path / "shard.tar")], tmp_path / "damaged", format="npy")
    assert "not a readable tar file" in report.failed[0][1]
    assert not list((tmp_path / "damaged").glob("*.tar"))


# ---- failures and interruption -------------------------------------------------------------------------------------


def test_damaged_files_are_reported_and_left_out(tmp_path: Path) -> None:
    files = photos(tmp_path / "in", 12)
    files[3].write_bytes(files[3].read_bytes()[:200])
    files[8].write_bytes(b"no picture")
    model = identity(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    report = batch.run(model, [str(tmp_path / "in")], tmp_path / "out")
    assert report.samples == 10
    assert dict(report.failed).keys() == {str(files[3]), str(files[8])}
    assert "neither PNG nor JPEG" in dict(report.failed)[str(files[8])]
    assert len(results(tmp_path / "out")) == 10
    with pytest.raises(batch.BatchError, match=r"00003\.png.*not a readable picture"):
        batch.run(model, [str(tmp_path / "in")], tmp_path / "strict", strict=True, batch=1)


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    files = photos(tmp_path / "in", 12)
    model = identity(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    first = batch.run(model, [f"{tmp_path}/in/000/*.png"], tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.npz")}
    again = batch.run(model, [f"{tmp_path}/in/000/*.png"], tmp_path / "out")
    assert (first.samples, again.samples, again.done_before) == (10, 0, 10)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.npz")}
    later = time.time() + 5
    os.utime(files[4], (later, later))
    assert batch.run(model, [f"{tmp_path}/in/000/*.png"], tmp_path / "out").samples == 1
    with pytest.raises(batch.BatchError, match="results of another model or of other options"):
        batch.run(model, [str(tmp_path / "in")], tmp_path / "out", color="BGR")


KILLED = """
import os, signal, sys
from polyop import batch
model, inputs, output = sys.argv[1:]
def step(phase, done, steps):
    if done >= 25:
        os.kill(os.getpid(), signal.SIGKILL)
batch.run(model, [inputs], output, progress=step, batch=4)
"""


def test_killed_in_the_middle(tmp_path: Path) -> None:
    """What is there is whole; the second run does the rest, and cleans up."""
    photos(tmp_path / "in", 60)
    model = identity(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    words = [sys.executable, "-c", KILLED, str(model), str(tmp_path / "in"), str(tmp_path / "out")]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    left = results(tmp_path / "out")
    assert 25 <= len(left) < 60
    assert all(arrays["y"].shape == (1, 3, 20, 24) for arrays in left.values())
    partial = tmp_path / "out" / f".x.npz.partial-{os.uname().nodename}-999999999"
    partial.touch()
    (tmp_path / "out" / ".y.npz.partial-elsewhere-1").touch()
    report = batch.run(model, [str(tmp_path / "in")], tmp_path / "out")
    assert (report.samples, report.done_before) == (60 - len(left), len(left))
    assert len(results(tmp_path / "out")) == 60
    assert not partial.exists()
    sweep(tmp_path / "out", everywhere=True)
    assert sorted(p.name for p in (tmp_path / "out").iterdir() if p.is_file()) == [folder.NAME]


# ---- bad calls -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"inputs": ["nothing/*.png"]}, "there is no such file"),
        ({"inputs": ["other={in}/a.png"]}, "the model has no input 'other'"),
        ({"inputs": ["{in}/note.txt"]}, "of an unknown kind"),
        ({"inputs": []}, "there is no input"),
        ({"inputs": ["{in}/a.png"], "format": "gif"}, "not 'gif'"),
        ({"inputs": ["{in}/a.png"], "outputs": ["z"]}, "the model has no output 'z'"),
        ({"inputs": ["{in}/a.png"], "layout": "CHW"}, "neither NCHW nor NHWC"),
        ({"inputs": ["{in}/a.png"], "range": (1, 1)}, "no pair of two values"),
        ({"inputs": ["{in}/a.png"], "sets": ["x=1"]}, "1 numbers came"),
        ({"inputs": ["{in}/a.png"], "sets": ["1,2"]}, "NAME= is missing"),
        ({"inputs": ["{in}/a.png"], "constants": {"x": np.full((1, 3, 2, 2), "a")}}, "elements of type"),
        ({"inputs": ["x={in}/*.png", "x2={in}/*.png"]}, "run through already"),
        ({"inputs": ["{in}/a.png", "{in}/a.jpg"]}, "would have one result"),
    ],
)  # fmt: skip
def test_bad_calls(tmp_path: Path, how: dict, message: str) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.png", "a.jpg"):
        Image.new("RGB", (4, 4)).save(tmp_path / "in" / name)
    (tmp_path / "in" / "note.txt").touch()
    how["inputs"] = [text.replace("{in}", str(tmp_path / "in")) for text in how["inputs"]]
    with pytest.raises(batch.BatchError, match=message):
        batch.run(identity(tmp_path / "m.onnx", ["n", 3, "h", "w"]), output=tmp_path / "out", **how)


def test_a_model_that_wants_more_than_files_give(tmp_path: Path) -> None:
    photos(tmp_path / "in", 1)
    with pytest.raises(batch.BatchError, match=r"no value for factor: float32\[4\]"):
        batch.run(SRCNN / "srcnn3.onnx", [f"input={tmp_path}/in"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "no.onnx").write_bytes(b"no model")
    with pytest.raises(batch.BatchError, match="does not load"):
        batch.run(tmp_path / "no.onnx", [f"{tmp_path}/in"], tmp_path / "out")


def test_results_do_not_overwrite_inputs(tmp_path: Path) -> None:
    photos(tmp_path / "in", 1)
    with pytest.raises(batch.BatchError, match="overwritten by its result"):
        batch.run(SRCNN / "srcnn.onnx", [f"{tmp_path}/in"], tmp_path / "in", format="png")
