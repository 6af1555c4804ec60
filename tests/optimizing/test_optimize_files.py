# SPDX-License-Identifier: Apache-2.0
"""polyop optimize and files: damaged, malicious and large ones, and the cache of polyop.session."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import polyop
from polyop.optimizing import OptimizeError, files, optimize
from tests.support.small_models import matmul, sampling

Change = Callable[[onnx.ModelProto], None]


def reroute(path: Path, key: str, value: str) -> None:
    """Changes the location that the file records for its tensor."""
    model = onnx.load(path, load_external_data=False)
    (entry,) = [e for e in model.graph.initializer[0].external_data if e.key == key]
    entry.value = value
    path.write_bytes(model.SerializeToString())


DAMAGED = {
    "empty": b"",
    "text": b"this is no model",
    "half": None,
    "no graph": onnx.ModelProto(ir_version=8).SerializeToString(),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_files(kind: str, tmp_path: Path) -> None:
    path = matmul(tmp_path / "m.onnx")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if DAMAGED[kind] is None else DAMAGED[kind])
    with pytest.raises(OptimizeError, match=r"m.onnx is not an ONNX model, or damaged: "):
        optimize(path, tmp_path / "out.onnx")
    assert os.listdir(tmp_path) == ["m.onnx"]


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(OptimizeError, match=r"none.onnx does not exist"):
        optimize(tmp_path / "none.onnx", tmp_path / "out.onnx")
    model = matmul(tmp_path / "m.onnx")
    optimize(model, tmp_path / "new" / "out.onnx")
    assert (tmp_path / "new" / "out.onnx").is_file()
    with pytest.raises(OptimizeError, match=r"m.onnx"):
        optimize(model, tmp_path / "m.onnx" / "out.onnx")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("location", "../secret.data", "external data '../secret.data' is outside the model's folder"),
        ("location", "none.data", "external data 'none.data' is missing in .*models"),
        ("location", "/etc/hostname", "external data '/etc/hostname' is outside the model's folder"),
        (
            "length",
            str(1 << 60),
            r"the data of tensor 'weight' has the wrong length: expected 256 bytes for \[8, 8\] of FLOAT, got 1152921504606846976",
        ),
        (
            "length",
            "16",
            r"the data of tensor 'weight' has the wrong length: expected 256 bytes for \[8, 8\] of FLOAT, got 16",
        ),
        (
            "offset",
            "1000",
            "the data of tensor 'weight' is incomplete: expected bytes 1000 to 1256 in .*m.onnx.data, got 256",
        ),
    ],
    ids=["escapes", "missing", "absolute", "too long", "too short", "behind the end"],
)
def test_malicious_external_data(key: str, value: str, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "secret.data").write_bytes(bytes(256))
    path = matmul(folder / "m.onnx", external=True)
    reroute(path, key, value)
    with pytest.raises(OptimizeError, match=f"m.onnx: {said}"):
        optimize(path, folder / "out.onnx")
    assert sorted(os.listdir(folder)) == ["m.onnx", "m.onnx.data"]


def test_models_that_do_not_run(tmp_path: Path) -> None:
    path = matmul(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.node[0].op_type = "NoSuchOperator"
    onnx.save(model, path)
    with pytest.raises(OptimizeError, match=r"ONNX Runtime cannot run .*m.onnx: .*NoSuchOperator"):
        optimize(path)
    with pytest.raises(OptimizeError, match=r"the model has no input 'z'; it has x"):
        optimize(matmul(path), shapes={"z": [1, 2]})
    with pytest.raises(OptimizeError, match=r"rejects all inputs that were tried: .*Got: 3 Expected: 8"):
        optimize(path, inputs={"x": np.zeros((2, 3), np.float32)})


def test_rejects_inputs_of_absurd_sizes(tmp_path: Path) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1 << 40]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    with pytest.raises(OptimizeError, match=r"input 'x': expected at most .* got shape \[1099511627776\]"):
        optimize(path)


@pytest.mark.parametrize("target", ["m.onnx", "other.onnx", "folder/other.onnx"])
def test_external_data_of_a_changed_model(target: str, tmp_path: Path) -> None:
    """The data stays external. The result may overwrite the file, and does not need the original."""
    (tmp_path / "folder").mkdir()
    path, out = sampling(tmp_path / "m.onnx"), tmp_path / target
    x = {"x": np.random.default_rng(1).random((1, 4, 20, 30), np.float32)}
    want = polyop.session(path).run(None, x)[0]
    assert optimize(path, out).replaced == {"GridSample": 1}
    assert out.with_name(f"{out.name}.data").stat().st_size == 40 * 50 * 2 * 4
    if out != path:
        path.unlink()
        (tmp_path / "m.onnx.data").unlink()
    np.testing.assert_allclose(polyop.session(out).run(None, x)[0], want, atol=1e-5)


def test_external_data_is_copied(tmp_path: Path) -> None:
    """Copying a file copies its tensors, too."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    path = matmul(tmp_path / "a" / "m.onnx", external=True)
    optimize(path, tmp_path / "b" / "out.onnx")
    x = {"x": np.ones((1, 8), np.float32)}
    want, got = (polyop.session(p).run(None, x)[0] for p in (path, tmp_path / "b" / "out.onnx"))
    np.testing.assert_array_equal(got, want)


def sampled_product(path: Path, side: int = 42) -> Path:
    """Writes an image that is computed by 200 MB of weights, and sampled: a small part of the file is replaced."""
    rng = np.random.default_rng(0)
    size = 4 * side * side
    tensors = {
        "weight": rng.standard_normal((size, size), np.float32),
        "grid": rng.uniform(-1, 1, (1, 60, 60, 2)).astype(np.float32),
        "shape": np.array([1, 4, side, side]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["product"]),
        helper.make_node("Reshape", ["product", "shape"], ["image"]),
        helper.make_node("GridSample", ["image", "grid"], ["y"], name="sampling"),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [1, size]), ("y", None)))
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(t, n) for n, t in tensors.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8), path)
    return path


def long_chain(path: Path) -> Path:
    """Writes a chain of 60 tensors of 16 MB, of which two at a time are needed."""
    names = ["x", *(f"t{i}" for i in range(59)), "y"]
    nodes = [helper.make_node("Neg", [a], [b]) for a, b in itertools.pairwise(names)]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4 << 20]) for name in ("x", "y"))
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(
    ("make", "more"),
    [(lambda path: matmul(path, size=12_400), 0), (sampled_product, 0), (long_chain, 9 * (16 << 20))],
    ids=["a copy of 600 MB", "a change in 200 MB", "large tensors in between"],
)
def test_large_models_need_little_memory(make: Callable[[Path], Path], more: int, tmp_path: Path) -> None:
    """Takes less than 150 MB for the process and twice the file.

    `more`: the inputs and outputs of two runs, and the memory to run the model.
    """
    path, out = make(tmp_path / "m.onnx"), tmp_path / "out.onnx"
    program = f"import polyop; polyop.optimize({str(path)!r}, {str(out)!r}, threads=1); print(open('/proc/self/status').read())"
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", said)[1]) << 10
    size = path.stat().st_size
    assert peak > size
    assert peak < 2 * size + (150 << 20) + more, f"{peak >> 20} MB for a file of {size >> 20} MB"
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "out.onnx"]


def test_a_large_file_keeps_its_weights(tmp_path: Path) -> None:
    """Weights that were stored in the file are stored in the new one, and are equal."""
    path, out = sampled_product(tmp_path / "m.onnx", side=25), tmp_path / "out.onnx"
    assert path.stat().st_size > files._KEEP_IN_MEMORY
    assert optimize(path, out, threads=1).replaced == {"GridSample": 1}
    before, after = ({t.name: numpy_helper.to_array(t) for t in onnx.load(p).graph.initializer} for p in (path, out))
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)
    x = {"x": np.random.default_rng(1).standard_normal((1, 2_500), np.float32)}
    want, got = (polyop.session(p).run(None, x)[0] for p in (path, out))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-2)


def test_session_caches_the_optimised_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = matmul(tmp_path / "m.onnx")
    x = {"x": np.ones((1, 8), np.float32)}
    want = polyop.session(path).run(None, x)[0]
    np.testing.assert_array_equal(polyop.session(path, optimize=True).run(None, x)[0], want)
    (kept,) = tmp_path.glob("m.polyop-*.onnx")
    monkeypatch.setattr("polyop.optimizing.optimize", None)  # the second time it is not called
    np.testing.assert_array_equal(polyop.session(path, optimize=True).run(None, x)[0], want)
    monkeypatch.undo()
    model = onnx.load(path)
    model.producer_name = "another"
    onnx.save(model, path)
    polyop.session(path, optimize=True)
    assert len(set(tmp_path.glob("m.polyop-*.onnx")) - {kept}) == 1


def external(path: Path, factor: float) -> Path:
    """Writes y = x * factor [2000], whose data is in weights.bin."""
    path.parent.mkdir()
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2000]) for name in "xy"]
    weights = numpy_helper.from_array(np.full(2000, factor, np.float32), "w")
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"])], "g", infos[:1], infos[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def test_session_does_not_mix_up_data_of_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models in folders that are not writable."""
    paths = [external(tmp_path / str(factor) / "m.onnx", factor) for factor in (2, 3)]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("os.access", lambda path, mode: False)
    x = {"x": np.ones(2000, np.float32)}
    results = [polyop.session(paths[i], optimize=True).run(None, x)[0][0] for i in (0, 1, 0, 1)]
    assert results == [2, 3, 2, 3]
    assert len(list((tmp_path / "cache").rglob("weights.bin"))) == 2
    assert sorted(file.name for file in (tmp_path / "2").iterdir()) == ["m.onnx", "weights.bin"]


def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    """A copy of the data is kept; another model's is not overwritten, nor the data that the model itself reads."""
    path, other = (external(tmp_path / str(factor) / "m.onnx", factor) for factor in (2, 3))
    before = (other.parent / "weights.bin").read_bytes()
    with pytest.raises(OptimizeError, match=r"weights.bin already exists with other data"):
        optimize(path, other.parent / "n.onnx")
    assert (other.parent / "weights.bin").read_bytes() == before
    assert not (other.parent / "n.onnx").exists()
    for _ in range(2):
        (tmp_path / "new").mkdir(exist_ok=True)
        optimize(path, tmp_path / "new" / "n.onnx")
    (path.parent / "weights.bin").rename(path.parent / "out.onnx.data")
    reroute(path, "location", "out.onnx.data")
    source = files.Source(path)
    with pytest.raises(OptimizeError, match=r"out.onnx.data has the data of"):
        files.save(source.load(), path.parent / "out.onnx", source, lambda *_: None)


def test_session_of_a_model_that_cannot_be_optimised(tmp_path: Path) -> None:
    """The rank of its input is unknown."""
    path = matmul(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(model, path)
    with pytest.warns(UserWarning, match=r"m.onnx runs without optimization: input 'x': expected a known rank"):
        session = polyop.session(path, optimize=True)
    assert session.run(None, {"x": np.ones((2, 8), np.float32)})[0].shape == (2, 8)


def test_accelerated_session(tmp_path: Path) -> None:
    """The file does not change: polyop's GridSample overrides ONNX Runtime's, and errors name it."""
    x, grid = (helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("x", "grid"))
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], name="sampling")
    graph = helper.make_graph([node], "g", [x, grid], [onnx.ValueInfoProto(name="y")])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8), path)
    rng = np.random.default_rng(0)
    feeds = {"x": rng.random((1, 3, 5, 7), np.float32), "grid": rng.random((1, 4, 6, 2), np.float32)}
    want, got = (polyop.session(path, accelerate=fast).run(None, feeds)[0] for fast in (False, True))
    np.testing.assert_allclose(got, want, atol=1e-6)
    wrong = {**feeds, "grid": feeds["grid"][..., :1]}
    with pytest.raises(Exception, match="polyop::GridSample"):
        polyop.session(path, accelerate=True).run(None, wrong)
