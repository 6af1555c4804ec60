# SPDX-License-Identifier: Apache-2.0
"""External data behind links, as in Hugging Face's cache, where a model and its data are links to a folder of blobs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyop._onnx.files import ModelFileError, copy_external_files, external_files, read_model
from polyop.attaching import attach
from tests.support import detectors
from tests.support.detectors import cells, random_boxes

X = np.ones((1, 64), np.float32)


def write(folder: Path, location: str = "m.onnx_data") -> Path:
    """Writes a product with a matrix of ones in external data."""
    folder.mkdir(parents=True)
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 64]) for name in "xy"]
    ones = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", value[:1], value[1:], [ones])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location=location, size_threshold=100)
    return folder / "m.onnx"


def link(file: Path, tmp_path: Path) -> Path:
    """Moves a model and its data to a cache. Returns the snapshot's folder."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "0123" / "onnx"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for source, blob in ((file, "aaaa"), (file.with_name("m.onnx_data"), "bbbb")):
        source.rename(blobs / blob)
        (snapshot / source.name).symlink_to(Path("../../../blobs") / blob)
    return snapshot


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", X)
    return link(write(tmp_path / "written"), tmp_path)


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("inspect {m}", ""),
        ("run {m} -i {x} -o {out}/y.npy", ""),
        ("verify {m} -i {x} --layers", ""),
        ("optimize {m} -o {out}/m.onnx", "m.onnx"),
        ("optimize {m} -o {hub}/fast.onnx", ""),
        ("portable {m} -o {out}/m.onnx", "m.onnx"),
        ("convert {m} -o {out}/m.xml --to openvino", ""),
        ("run {m} -i {x} --runtime openvino", ""),
        ("batch {m} -i {x} -o {out}/b", ""),
        ("triton {m} -o {out}/t", "t/m/1/model.onnx"),
    ],
)
def test_commands_accept_it(words: str, written: str, hub: Path, tmp_path: Path, program: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    filled = words.format(m=hub / "m.onnx", x=tmp_path / "x.npy", out=out, hub=hub)
    done = subprocess.run([program, *filled.split()], capture_output=True, text=True, check=False, timeout=300)
    alone = "write to another folder" in done.stderr  # where nothing is replaced, the file would need the links
    assert done.returncode == 0 or (alone and "fast" in words), done.stdout + done.stderr
    assert sorted(os.listdir(tmp_path / "blobs")) == ["aaaa", "bbbb"]
    if written:
        (y,) = onnxruntime.InferenceSession(out / written).run(None, {"x": X})
        assert (y == 64).all()


def test_attach_accepts_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([random_boxes(rng, cells((64, 64)), (64, 64)), rng.random((cells((64, 64)), 2))], 1)
    (tmp_path / "written").mkdir()
    file = detectors.write(tmp_path / "written" / "m.onnx", (64, 64), {"output0": rows.T[None].astype(np.float32)})
    attach(file, tmp_path / "inside.onnx")
    onnx.save(onnx.load(file), file, save_as_external_data=True, location="m.onnx_data", size_threshold=100)
    hub = link(file, tmp_path)
    with pytest.raises(ModelFileError, match="is a link out of") as error:
        attach(hub / "m.onnx", hub / "app.onnx")
    assert "write to another folder" in error.value.hint
    output = tmp_path / "out" / "app.onnx"
    attach(hub / "m.onnx", output)
    assert sorted(os.listdir(tmp_path / "blobs")) == ["aaaa", "bbbb"]
    feeds = {"images": np.zeros((1, 3, 64, 64), np.float32)}
    results = (onnxruntime.InferenceSession(f).run(None, feeds) for f in (tmp_path / "inside.onnx", output))
    for expected, got in zip(*results, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_the_folder_is_not_left(hub: Path, tmp_path: Path, program: str) -> None:
    """Neither by the location nor by a link to a file that is next to nothing of the model."""
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(64 * 64 * 4))
    linked = write(tmp_path / "linked")
    linked.with_name("m.onnx_data").unlink()
    linked.with_name("m.onnx_data").symlink_to(secret)
    named = write(tmp_path / "named")
    model = onnx.load(named, load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        entry.value = "../secret" if entry.key == "location" else entry.value
    named.write_bytes(model.SerializeToString())
    for path in (linked, named):
        with pytest.raises(ModelFileError, match="is outside the model's folder"):
            external_files(read_model(path), path)
        for words in (("inspect",), ("run", "-i", str(tmp_path / "x.npy")), ("portable", "-o", "out.onnx")):
            command = [program, words[0], str(path), *words[1:]]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert (done.returncode, "is outside the model's folder" in done.stdout + done.stderr) == (3, True), command


def test_no_code_is_copied(tmp_path: Path) -> None:
    """A file json.py in the folder of results would run with the user's next script."""
    (tmp_path / "out").mkdir()
    for name in ("json.py", ".bashrc", "lib.so"):
        path = write(tmp_path / name.strip("."), name)
        with pytest.raises(ModelFileError, match="expected the name of a file of data, got that of code"):
            copy_external_files(read_model(path), path, tmp_path / "out")
    assert os.listdir(tmp_path / "out") == []
