# SPDX-License-Identifier: Apache-2.0
"""`polyop convert --timing-cache FILE` and `onnx2trt(timing_cache=...)`.

A fake replaces TensorRT's module in most tests, because TensorRT itself needs a GPU, and TensorRT-RTX does not read the
cache that it writes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from polyop import tensorrt as polyop_tensorrt
from tests.support.processes import environment
from tests.support.tensorrt_rtx import RUNTIME, convert

# What `onnx2trt` uses of TensorRT. The engine is what the cache had before the build, which adds a measurement to it.
MODULE = """
import os

__version__ = "10.0"
float32, float16, int32, int64, bool, int8, bfloat16, uint8 = range(8)


class ILogger:
    Severity = type("Severity", (), {"ERROR": 1, "INTERNAL_ERROR": 0, "WARNING": 2})

    def __init__(self):
        pass


class NetworkDefinitionCreationFlag:
    STRONGLY_TYPED = 1


class Tensor:
    name, dtype, shape = "x", float32, (2,)


class Network:
    num_layers, num_inputs, num_outputs = 0, 1, 1

    def get_input(self, index):
        return Tensor

    get_output = get_input


class Cache:
    def __init__(self, data):
        self.data = data

    def serialize(self):
        return memoryview(self.data)


class Config:
    cache = None

    def add_optimization_profile(self, profile):
        pass

    def create_timing_cache(self, data):
        return None if data == b"damaged" else Cache(data)

    def set_timing_cache(self, cache, ignore_mismatch):
        assert not ignore_mismatch
        self.cache = cache


class Profile:
    def set_shape(self, *shapes):
        pass


class Builder:
    def __init__(self, logger):
        pass

    def create_network(self, flags):
        return Network()

    def create_builder_config(self):
        return Config()

    create_optimization_profile = Profile

    def build_serialized_network(self, network, config):
        open(os.environ.get("BUILT", os.devnull), "w").close()
        if config.cache is None:
            return b"no cache"
        before = config.cache.data
        config.cache.data = before + b"measured;"
        return None if "FAIL" in os.environ else b"after " + before


class OnnxParser:
    def __init__(self, network, logger):
        pass

    def parse(self, data):
        return True


class Registry:
    all_creators = ()

    def load_library(self, path):
        return object()


def get_plugin_registry():
    return Registry()
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", infos[:1], infos[1:])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def fake_convert(model: Path, cache: Path | str, **variables: str) -> subprocess.CompletedProcess[str]:
    (model.parent / "fake_tensorrt.py").write_text(MODULE)
    command = [
        sys.executable,
        "-m",
        "polyop",
        "convert",
        model.name,
        "-o",
        "model.engine",
        "--timing-cache",
        str(cache),
    ]
    return subprocess.run(
        command,
        cwd=model.parent,
        env=environment(model.parent, POLYOP_TENSORRT="fake_tensorrt", **variables),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_file_is_read_and_written(model: Path) -> None:
    cache, engine = model.parent / "new" / "folder" / "times.cache", model.parent / "model.engine"
    for before in ("", "measured;", "measured;measured;"):
        done = fake_convert(model, cache)
        assert done.returncode == 0, done.stderr
        assert engine.read_bytes() == f"after {before}".encode()
        assert cache.read_text() == f"{before}measured;"
    assert os.listdir(cache.parent) == ["times.cache"]  # no incomplete file is left


def test_a_cache_that_tensorrt_refuses_stays(model: Path) -> None:
    cache = model.parent / "times.cache"
    cache.write_text("damaged")
    done = fake_convert(model, cache)
    assert done.returncode == 0, done.stderr
    assert (model.parent / "model.engine").read_bytes() == b"no cache"
    assert cache.read_text() == "damaged"


def test_a_failed_build_leaves_the_cache(model: Path) -> None:
    cache = model.parent / "times.cache"
    cache.write_text("measured;")
    done = fake_convert(model, cache, FAIL="1")
    assert (done.returncode, "building the engine failed" in done.stderr) == (1, True), done.stderr
    assert cache.read_text() == "measured;"
    assert not (model.parent / "model.engine").exists()


@pytest.mark.parametrize(
    ("cache", "code", "said"),
    [
        ("model.onnx", 2, "--timing-cache model.onnx: expected another file than the model and the engine"),
        ("model.engine", 2, "--timing-cache model.engine: expected another file than the model and the engine"),
        ("folder/../model.onnx", 2, "expected another file than the model"),
        ("folder", 3, "'folder': Is a directory"),
        ("model.onnx/times.cache", 3, "'model.onnx/times.cache': Not a directory"),
    ],
)
def test_errors_before_the_build(cache: str, code: int, said: str, model: Path) -> None:
    (model.parent / "folder").mkdir()
    before = model.read_bytes()
    done = fake_convert(model, cache, BUILT=str(model.parent / "built"))
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert model.read_bytes() == before
    assert not (model.parent / "built").exists()
    assert not (model.parent / "model.engine").exists()


@pytest.mark.parametrize("option", [["--timing-cache", "times.cache"], ["--builder-optimization-level", "0"]])
def test_openvino_has_no_such_option(option: list[str], model: Path) -> None:
    command = [sys.executable, "-m", "polyop", "convert", model.name, "-o", "m.xml", "--to", "openvino", *option]
    done = subprocess.run(command, cwd=model.parent, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--timing-cache and --layers are options of TensorRT" in done.stderr
    assert os.listdir(model.parent) == ["model.onnx"]


def test_the_function(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runtimes without such caches, as the attribute `create_timing_cache` tells, build without one."""
    (model.parent / "fake_without_cache.py").write_text(MODULE.replace("create_timing_cache", "_create"))
    monkeypatch.syspath_prepend(str(model.parent))
    monkeypatch.setenv("POLYOP_TENSORRT", "fake_without_cache")
    monkeypatch.setattr(polyop_tensorrt, "_state", {})
    engine = polyop_tensorrt.onnx2trt(model, timing_cache=model.parent / "times.cache")
    assert engine.data == b"no cache"
    assert not (model.parent / "times.cache").exists()


def test_tensorrt_rtx(program: str, model: Path, not_run: Callable[[str], None]) -> None:
    if not (RUNTIME / "tensorrt_rtx_libs").is_dir():
        not_run("no engine was built: TensorRT-RTX is not installed")
        return
    cache = model.parent / "times.cache"
    for _ in range(2):
        convert(program, model, "--timing-cache", str(cache))
        assert cache.stat().st_size > 0
    cache.write_bytes(b"no cache of TensorRT")  # is replaced, with a warning
    convert(program, model, "--timing-cache", str(cache))
    assert cache.read_bytes() != b"no cache of TensorRT"
