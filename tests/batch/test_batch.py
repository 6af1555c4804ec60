# SPDX-License-Identifier: Apache-2.0
"""`polyop.batch` on one machine: results equal those of single files, are written atomically, and are computed once."""

from __future__ import annotations

import errno
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
from onnx import TensorProto, helper
from PIL import Image

import polyop
from polyop import batch
from polyop._onnx.atomic_file import AtomicFile, remove_stale, write_atomically
from polyop.batch.images import read
from polyop.batch.interface import open_model
from polyop.batch.memory import Memory
from polyop.batch.runner import Runner
from polyop.batch.sources import RECORD
from polyop.batch.writing import Shard, TarWriter
from polyop.triton import trial
from tests.support.machines import SRCNN, identity, photos, save


def results(output: Path) -> dict[str, dict[str, np.ndarray]]:
    return {str(p.relative_to(output).with_suffix("")): dict(np.load(p)) for p in sorted(output.rglob("*.npz"))}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 images of one size, 3 of another."""
    image_folder = tmp_path_factory.mktemp("images")
    photos(image_folder, 30, width=12, height=10)
    photos(image_folder / "others", 3, width=11, height=10)
    return image_folder


# ---- results -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 0])
def test_results_equal_those_of_single_files(images: Path, tmp_path: Path, size: int) -> None:
    """Also in batches, with mixed shapes; in the folders of the images."""
    report = batch.run(SRCNN / "srcnn.onnx", [f"{images}/**/*.png"], tmp_path / "out", batch=size)
    got = results(tmp_path / "out")
    assert (report.samples, report.failed) == (33, [])
    assert report.largest_batch == size if size else 1 < report.largest_batch <= 8
    session = polyop.session(SRCNN / "srcnn.onnx")
    files = sorted(images.rglob("*.png"))
    assert list(got) == [str(path.relative_to(images).with_suffix("")) for path in files]
    for path, arrays in zip(files, got.values(), strict=True):
        x = (np.asarray(Image.open(path)) / 255).astype(np.float32).transpose(2, 0, 1)[None]
        (want,) = session.run(None, {"input": x})
        np.testing.assert_allclose(arrays["output"], want, atol=1e-5)


def test_a_first_dimension_that_is_not_a_batch(images: Path, tmp_path: Path) -> None:
    """The model's mean is over its whole input: this is detected, and every image is run alone."""
    nodes = [helper.make_node("ReduceMean", ["x"], ["mean"], keepdims=1), helper.make_node("Sub", ["x", "mean"], ["y"])]
    model = save(tmp_path / "m.onnx", nodes, {"x": ["n", 3, "h", "w"]}, {"y": ["n", 3, "h", "w"]})
    report = batch.run(model, [str(images)], tmp_path / "out")
    assert "'y' differs between a batch and single samples" in report.note
    for arrays in results(tmp_path / "out").values():
        assert abs(arrays["y"].mean()) < 1e-5


def detector(path: Path, rows: str | None) -> Path:
    """Writes a model whose outputs are the positive elements of x [n, 4] and their number, which is not x's."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["is_positive"]),
        helper.make_node("NonZero", ["is_positive"], ["at"]),
        helper.make_node("Transpose", ["at"], ["indices"]),
        helper.make_node("GatherND", ["x", "indices"], ["y"]),
    ]
    return save(path, nodes, {"x": ["n", 4]}, {"y": [rows]}, constants={"zero": np.zeros((), np.float32)})


@pytest.mark.parametrize("rows", ["detections", None])
def test_outputs_of_other_lengths_are_not_joined(rows: str | None, tmp_path: Path) -> None:
    """The first samples have one detection each, and later ones as many together as there are samples."""
    model = open_model(detector(tmp_path / "m.onnx", rows))
    counts = [1, 1, 0, 2, 2, 0, 1, 1]
    samples = [{"x": np.array([[i + 1] * count + [-1] * (4 - count)], np.float32)} for i, count in enumerate(counts)]
    runner = Runner(model, {}, ("y",), 2)
    answers = [answer for at in range(0, 8, 2) for answer in runner.run(samples[at : at + 2])]
    assert [a["y"].tolist() for a in answers] == [[i + 1] * count for i, count in enumerate(counts)]
    assert runner.note.startswith("one sample at a time: expected one name for the first dimensions of 'x' and 'y'")
    joined, why = trial.batches(model)
    assert not joined
    assert "expected one name" in why


def test_inputs_that_are_not_parallel_are_not_joined(tmp_path: Path) -> None:
    """The rows of two inputs have other names; a constant has the samples' rows."""
    nodes = [helper.make_node("Add", ["x", "shift"], ["y"])]
    other = open_model(save(tmp_path / "a.onnx", nodes, {"x": ["n", 4], "shift": ["m", 4]}, {"y": ["n", 4]}))
    same = open_model(save(tmp_path / "b.onnx", nodes, {"x": ["n", 4], "shift": ["n", 4]}, {"y": ["n", 4]}))
    shift = np.ones((1, 4), np.float32)
    assert "'x' and 'shift'" in Runner(other, {}, ("y",), 4).note
    assert Runner(same, {}, ("y",), 4).batch == 4
    assert "the constant 'shift'" in Runner(same, {"shift": shift}, ("y",), 4).note


def test_samples_that_the_model_refuses_do_not_affect_others(tmp_path: Path) -> None:
    """The model is a Gather with an index out of range."""
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
    model = save(
        tmp_path / "m.onnx",
        [helper.make_node("Add", ["x", "shift"], ["y"])],
        {"x": ["n", 4], "shift": [4]},
        {"y": ["n", 4]},
    )
    given = {
        "one": {"inputs": [f"x={tmp_path}/in", f"shift={tmp_path}/shift.npy"]},
        "two": {"inputs": [f"x={tmp_path}/in"], "sets": ["shift=2,2,2,2"]},
        "three": {"inputs": [f"x={tmp_path}/in"], "constants": {"shift": [2, 2, 2, 2]}},
    }
    for name, how in given.items():
        report = batch.run(model, output=tmp_path / name, **how)
        assert not report.failed, report.failed
        got = results(tmp_path / name)
        for key, rows in {"a": 5, "b": 2, "c": 3}.items():
            np.testing.assert_array_equal(got[key]["y"], x[:rows] + 2)


def test_shards(images: Path, tmp_path: Path) -> None:
    """WebDataset: results have the shard's order; labels are ignored, and a damaged image is skipped."""
    files = sorted(images.rglob("*.png"))[:20]
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


def test_damaged_files_are_reported_and_skipped(tmp_path: Path) -> None:
    files = photos(tmp_path / "in", 12)
    files[3].write_bytes(files[3].read_bytes()[:200])
    files[8].write_bytes(b"no image")
    model = identity(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    report = batch.run(model, [str(tmp_path / "in")], tmp_path / "out")
    assert report.samples == 10
    assert dict(report.failed).keys() == {str(files[3]), str(files[8])}
    assert "expected PNG, JPEG" in dict(report.failed)[str(files[8])]
    assert len(results(tmp_path / "out")) == 10
    with pytest.raises(batch.BatchError, match=r"0000[38]\.png.*not a readable image"):
        batch.run(model, [str(tmp_path / "in")], tmp_path / "strict", strict=True, batch=1)


def test_existing_results_are_not_computed_again(tmp_path: Path) -> None:
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


def test_killed_during_a_run(tmp_path: Path) -> None:
    """Existing results are complete; the second run computes the rest and removes temporary files."""
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
    remove_stale(tmp_path / "out", everywhere=True)
    assert sorted(p.name for p in (tmp_path / "out").iterdir() if p.is_file()) == [RECORD]


# ---- bad calls -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"inputs": ["nothing/*.png"]}, "expected files, found none"),
        ({"inputs": ["other={in}/a.png"]}, "the model has no input 'other'"),
        ({"inputs": ["{in}/note.txt"]}, "got another kind of file"),
        ({"inputs": []}, "expected at least one input"),
        ({"inputs": ["{in}/a.png"], "format": "gif"}, "got 'gif'"),
        ({"inputs": ["{in}/a.png"], "outputs": ["z"]}, "the model has no output 'z'"),
        ({"inputs": ["{in}/a.png"], "layout": "CHW"}, "expected NCHW or NHWC"),
        ({"inputs": ["{in}/a.png"], "range": (1, 1)}, "expected two different finite values"),
        ({"inputs": ["{in}/a.png"], "sets": ["x=1"]}, "got 1 numbers"),
        ({"inputs": ["{in}/a.png"], "sets": ["1,2"]}, "expected NAME=NUMBERS"),
        ({"inputs": ["{in}/a.png"], "constants": {"x": np.full((1, 3, 2, 2), "a")}}, "elements of type"),
        ({"inputs": ["x={in}/*.png", "x2={in}/*.png"]}, "expected files of one input"),
        ({"inputs": ["{in}/a.png", "{in}/a.jpg"]}, "have the same result"),
    ],
)
def test_rejects_wrong_calls(tmp_path: Path, how: dict, message: str) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.png", "a.jpg"):
        Image.new("RGB", (4, 4)).save(tmp_path / "in" / name)
    (tmp_path / "in" / "note.txt").touch()
    how["inputs"] = [text.replace("{in}", str(tmp_path / "in")) for text in how["inputs"]]
    with pytest.raises(batch.BatchError, match=message):
        batch.run(identity(tmp_path / "m.onnx", ["n", 3, "h", "w"]), output=tmp_path / "out", **how)


def test_a_model_with_more_inputs_than_files_provide(tmp_path: Path) -> None:
    photos(tmp_path / "in", 1)
    with pytest.raises(batch.BatchError, match=r"no value for factor: float32\[4\]"):
        batch.run(SRCNN / "srcnn3.onnx", [f"input={tmp_path}/in"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "no.onnx").write_bytes(b"no model")
    with pytest.raises(batch.BatchError, match="does not load"):
        batch.run(tmp_path / "no.onnx", [f"{tmp_path}/in"], tmp_path / "out")


@pytest.mark.parametrize("inputs", ["in", "in/**/*", "in/*/*.np*"])
@pytest.mark.parametrize("format", ["npz", "npy"])
def test_results_below_the_inputs_are_not_inputs(tmp_path: Path, inputs: str, format: str) -> None:
    for i in range(3):
        (tmp_path / "in" / "a").mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / "in" / "a" / f"{i}.npy", np.full((1, 2), i, np.float32))
    model = identity(tmp_path / "m.onnx", ["n", 2])
    if inputs == "in/**/*":
        inputs = "in/**/*.np*"
    for done in (0, 3):
        report = batch.run(model, [f"{tmp_path}/{inputs}"], tmp_path / "in" / "out", format=format)
        assert (report.files, report.done_before, report.failed) == (3, done, [])
    if inputs == "in":
        with pytest.raises(batch.BatchError, match=r"results of a batch in '.*/in/out'"):
            batch.run(model, [f"{tmp_path}/in"], tmp_path / "other")
        batch.run(model, [f"{tmp_path}/in/a"], tmp_path / "other")  # the folder itself may have been one of results
        report = batch.run(model, [f"{tmp_path}/other"], tmp_path / "third", outputs=["y"])
        assert report.files == 3


def test_results_next_to_the_inputs(tmp_path: Path) -> None:
    """They are refused where the next run would find them."""
    photos(tmp_path / "in", 2)
    folder = tmp_path / "in" / "000"
    model = identity(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    for inputs in ("in", "in/000", "in/**/*", "in/000/*"):
        with pytest.raises(batch.BatchError, match="an input of the next run"):
            batch.run(model, [f"{tmp_path}/{inputs}"], tmp_path / "in" if inputs[:4] in ("in", "in/*") else folder)
    for done in (0, 2):
        assert batch.run(model, [f"{folder}/*.png"], folder).done_before == done


@pytest.mark.parametrize("name", ["a[1]", "a=1", "x=a", "a*", "[a]"])
def test_names_with_signs_of_patterns(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    (tmp_path / name).mkdir()
    np.save(tmp_path / name / f"{name}.npy", array)
    np.save(tmp_path / f"{name}.npy", array)
    np.save(tmp_path / "a1.npy", array + 1)
    model = identity(tmp_path / "m.onnx", ["n", 2])
    inputs = {"one": f"{name}.npy", "folder": name, "pattern": f"{name}/*.npy", "named": f"x={name}/{name}.npy"}
    for output, pattern in inputs.items():
        assert batch.run(model, [pattern], output, format="npy").files == 1
        np.testing.assert_array_equal(np.load(tmp_path / output / f"{name}.npy"), array)


def test_folders_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos(tmp_path / "in", 2)
    model = identity(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    (tmp_path / "file").touch()
    for output in ("/proc/x", tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(batch.BatchError, match="results cannot be written to"):
            batch.run(model, [f"{tmp_path}/in"], output)

    def write(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("polyop.batch.loop.write_atomically", write)
    with pytest.raises(batch.BatchError, match="No space left on device"):
        batch.run(model, [f"{tmp_path}/in"], tmp_path / "full")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_shard_whose_results_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    model = identity(tmp_path / "m.onnx", ["n", 2])
    np.save(tmp_path / "a.npy", np.ones((1, 2), np.float32))
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(tmp_path / "a.npy", "a.npy")

    def add(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("polyop.batch.loop.TarWriter.add", add)
    with pytest.raises(batch.BatchError, match=os.strerror(number)):
        batch.run(model, [f"{tmp_path}/a.tar"], tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [RECORD]


def test_the_process_keeps_its_settings() -> None:
    """The import of polyop's modules changes no settings of other packages."""
    code = """
import logging, numpy as np
from PIL import Image, ImageFile

def settings():
    return Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, np.geterr(), logging.root.level

before = settings()
from polyop import batch, optimizing, portable, triton
import polyop.batch.images, polyop.batch.loop
assert settings() == before
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_image_beyond_the_limit_of_pillow(tmp_path: Path) -> None:
    side = 14000  # more than twice MAX_IMAGE_PIXELS, with which Pillow raises
    Image.new("1", (side, side)).save(tmp_path / "a.png")
    assert read((tmp_path / "a.png").read_bytes(), "a.png", Memory(1 << 30)).shape == (side, side, 3)
    Image.new("1", (20000, 20000)).save(tmp_path / "b.png")
    with pytest.raises(batch.SampleError, match="at most 268435456 pixels, got 20000x20000"):
        read((tmp_path / "b.png").read_bytes(), "b.png")


def test_results_do_not_overwrite_inputs(tmp_path: Path) -> None:
    photos(tmp_path / "in", 1)
    with pytest.raises(batch.BatchError, match="overwritten by its result"):
        batch.run(SRCNN / "srcnn.onnx", [f"{tmp_path}/in"], tmp_path / "in", format="png")


@pytest.mark.parametrize("character", ["x", "ä"])
def test_names_as_long_as_file_systems_allow(tmp_path: Path, character: str) -> None:
    """Also where letters have two bytes; the incomplete files have other names, but are as stale as any."""
    model = identity(tmp_path / "m.onnx", ["n", 2])
    (tmp_path / "in").mkdir()
    names = [f"{digit}{character * (250 // len(character.encode()))}"[:250] for digit in "12"]
    for name in names:
        np.save(tmp_path / "in" / f"{name}.npy", np.ones((1, 2), np.float32))
    report = batch.run(model, [str(tmp_path / "in")], tmp_path / "out")
    assert (report.samples, report.failed) == (2, [])
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*(f"{name}.npz" for name in names), RECORD}


# ---- memory, and other batches --------------------------------------------------------------------------------------


def test_results_that_wait_count_in_the_limit(tmp_path: Path) -> None:
    """A shard's results wait for earlier ones, and files' results for an encoder."""
    shard = Shard(AtomicFile(tmp_path / "a.tar"), TarWriter(tmp_path / "a.tar", "npy"))
    assert (shard.put(1, "b", b"12345", 5), shard.put(2, "c", None, 0), shard.held) == (0, 0, 5)
    assert (shard.put(0, "a", b"123", 3), shard.held) == (8, 0)
    model = identity(tmp_path / "m.onnx", ["n", 1000])
    for i in range(8):
        np.save(tmp_path / f"{i}.npy", np.full((1, 1000), i, np.float32))
    report = batch.run(model, [f"{tmp_path}/*.npy"], tmp_path / "out", memory=10_000)
    assert (report.samples, report.failed) == (8, [])


def test_one_batch_for_a_folder(tmp_path: Path) -> None:
    """A second one, of any job, is refused until the first has ended; the lock leaves no file."""
    model = identity(tmp_path / "m.onnx", ["n", 4])
    np.save(tmp_path / "a.npy", np.zeros((1, 4), np.float32))
    arguments = (model, [str(tmp_path / "a.npy")], tmp_path / "out")
    messages = []

    def second(*_: object) -> None:
        if not messages:
            with pytest.raises(batch.BatchError, match="another batch is running into it") as caught:
                batch.run(*arguments)
            messages.append(str(caught.value))

    assert batch.run(*arguments, progress=second).samples == 1
    assert len(messages) == 1
    assert sorted(os.listdir(tmp_path / "out")) == ["a.npz", RECORD]
    assert batch.run(*arguments).done_before == 1


def test_results_are_on_the_disk_before_they_have_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []
    monkeypatch.setattr(os, "fsync", lambda file: order.append("sync"))
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda *names: (order.append("rename"), replace(*names)))
    write_atomically(tmp_path / "a", b"content")
    assert order == ["sync", "rename"]
