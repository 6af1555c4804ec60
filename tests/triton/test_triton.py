# SPDX-License-Identifier: Apache-2.0
"""`polyop triton` writes what Triton reads: checked with Triton's own protobuf and with a server."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import polyop
from polyop import triton
from polyop.batch import BatchError
from tests.support import processes, single_node
from tests.support.machines import PYTHON, ROOT, SRCNN, child, environment, identity, save

# ---- what is written -----------------------------------------------------------------------------------------------

PARSE = """
import json, sys
from google.protobuf import json_format, text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig
for path in sys.argv[1:]:
    config = text_format.Parse(open(path).read(), ModelConfig())
    print(json.dumps(json_format.MessageToDict(config, preserving_proto_field_name=True)))
"""


def test_triton_reads_the_configuration(tmp_path: Path) -> None:
    """Reads it with the protobuf of Triton's own client."""
    a = np.zeros((2, 3), np.float32)
    add = tmp_path / "add.onnx"
    onnx.save(single_node.model("custom::my_add", {"a": a, "b": a}, ["c"], shapes={"a": ("n", "m"), "b": ("m",)}), add)
    total = save(
        tmp_path / "sum.onnx", [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], {"x": ["n", 4]}, {"y": []}
    )
    engine = tmp_path / "head.engine"
    engine.write_bytes(b"an engine")
    said = {
        "runtime": "TensorRT 10",
        "plugin_libraries": [],
        "inputs": {"x": {"type": "f32", "shape": [-1, 3], "least": [1, 3], "usual": [2, 3], "largest": [4, 3]}},
        "outputs": {"y": {"type": "i64", "shape": [-1]}},
    }
    (tmp_path / "head.engine.json").write_text(json.dumps(said))
    repository = tmp_path / "repository"
    how = {
        "plain": (
            SRCNN / "srcnn.onnx",
            {"at": "/models", "largest_batch": 16, "delay": 500, "instances": 2, "threads": 3},
        ),
        "set": (SRCNN / "srcnn3.onnx", {"sets": ["factor=1,1,2,2"], "backend": "python"}),
        "not_set": (SRCNN / "srcnn3.onnx", {"gpu": True}),
        "two_names": (add, {}),
        "scalar": (total, {}),
        "bytes": (identity(tmp_path / "u8.onnx", ["n", 2], TensorProto.UINT8), {}),
        "engine": (engine, {}),
    }
    written = {name: triton.write_repository(path, repository, name=name, **more) for name, (path, more) in how.items()}
    for one in written.values():
        assert all(Path(file).is_file() for file in one.files)
    lines = child("triton", PARSE, *(repository / name / "config.pbtxt" for name in how)).splitlines()
    configs = {name: json.loads(line) for name, line in zip(how, lines, strict=True)}
    plain = configs["plain"]
    assert (plain["name"], plain["backend"], plain["max_batch_size"]) == ("plain", "onnxruntime", 16)
    assert plain["input"] == [{"name": "input", "data_type": "TYPE_FP32", "dims": ["3", "-1", "-1"]}]
    assert plain["dynamic_batching"] == {"max_queue_delay_microseconds": "500"}
    assert plain["instance_group"] == [{"count": 2, "kind": "KIND_CPU"}]
    assert plain["model_operations"] == {"op_library_filename": ["/models/plain/libpolyop_onnxruntime.so"]}
    assert plain["parameters"] == {"intra_op_thread_count": {"string_value": "3"}}
    assert written["plain"].command == "tritonserver --model-repository=/models"
    assert [one["name"] for one in configs["set"]["input"]] == ["input"]
    assert "model_operations" not in configs["set"]
    assert "max_batch_size" not in configs["not_set"]
    assert configs["not_set"]["input"][1] == {"name": "factor", "data_type": "TYPE_FP32", "dims": ["4"]}
    assert configs["not_set"]["instance_group"][0]["kind"] == "KIND_GPU"
    assert "of 'b'," not in str(written["two_names"].notes)
    assert "max_batch_size" not in configs["two_names"]
    assert configs["scalar"]["output"] == [{"name": "y", "data_type": "TYPE_FP32", "dims": ["1"], "reshape": {}}]
    assert (configs["bytes"]["input"][0]["data_type"], configs["bytes"]["max_batch_size"]) == ("TYPE_UINT8", 8)
    assert (configs["engine"]["backend"], configs["engine"]["max_batch_size"]) == ("tensorrt", 4)
    assert (repository / "engine" / "1" / "model.plan").read_bytes() == b"an engine"


def test_a_model_that_must_not_be_batched(tmp_path: Path) -> None:
    nodes = [helper.make_node("ReduceMax", ["x"], ["m"], keepdims=1), helper.make_node("Sub", ["x", "m"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, {"x": ["n", 3]}, {"y": ["n", 3]})
    written = triton.write_repository(path, tmp_path / "repository")
    assert written.notes == ["requests run one by one: 'y' differs between a batch and single samples"]
    assert "max_batch_size: 0" in (tmp_path / "repository" / "m" / "config.pbtxt").read_text()


def test_repository_is_complete(tmp_path: Path) -> None:
    """Creates a session of the repository's model with the repository's library, as the ONNX Runtime backend does."""
    triton.write_repository(SRCNN / "srcnn3.onnx", tmp_path, sets=["factor=1,1,2,2"])
    (library,) = re.findall(r'op_library_filename: \[ "(.*)" \]', (tmp_path / "srcnn3" / "config.pbtxt").read_text())
    options = ort.SessionOptions()
    options.register_custom_ops_library(library)
    session = ort.InferenceSession(
        str(tmp_path / "srcnn3" / "1" / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    x = np.random.default_rng(0).random((1, 3, 8, 6)).astype(np.float32)
    (got,) = session.run(None, {"input": x})
    factor = np.array([1, 1, 2, 2], np.float32)
    (want,) = polyop.session(SRCNN / "srcnn3.onnx").run(None, {"input": x, "factor": factor})
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"name": "a/b"}, "name: expected a letter"),
        ({"name": ".."}, "name: expected a letter"),
        ({"name": ".hidden"}, "name: expected a letter"),
        ({"name": "a\n"}, "name: expected a letter"),
        ({"backend": "jax"}, "expected onnxruntime or python"),
        ({"sets": ["size=1"]}, "the model has no input 'size'"),
        ({"sets": ["input"]}, "expected NAME=NUMBERS"),
        ({"model": "none.onnx"}, "expected a file, found none"),
        ({"model": "none.engine"}, "reading the engine's inputs failed"),
    ],
)
def test_rejects_wrong_calls(tmp_path: Path, how: dict, message: str) -> None:
    with pytest.raises(BatchError, match=message):
        triton.write_repository(how.pop("model", SRCNN / "srcnn.onnx"), tmp_path, **how)


def test_command(program: str, tmp_path: Path) -> None:
    words = [program, "triton", str(SRCNN / "srcnn.onnx"), "-o", "repository", "--at", "/models"]
    done = subprocess.run(words, cwd=tmp_path, env=processes.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "tritonserver --model-repository=/models" in done.stdout
    assert "tritonserver --model-repository=/models" in (tmp_path / "repository" / "srcnn" / "README.md").read_text()
    done = subprocess.run(
        [*words, "--set", "x=1"], cwd=tmp_path, env=processes.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "its inputs are input: float32" in done.stderr


# ---- a server ------------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Starts NVIDIA's server with its Python backend on a repository of `polyop triton`; returns the address of its
    gRPC service.
    """
    environment("triton")  # checks that it is installed
    folder = tmp_path_factory.mktemp("triton")
    package = ROOT / ".deps" / "triton" / "pytriton" / "tritonserver"
    backend = folder / "backends" / "python"
    shutil.copytree(package / "backends" / "python", backend)
    stub = package / "python_backend_stubs" / f"3.{sys.version_info.minor}" / "triton_python_backend_stub"
    for file in (shutil.copy(stub, backend), shutil.copy(package / "bin" / "tritonserver", folder)):
        Path(file).chmod(0o755)
    triton.write_repository(
        SRCNN / "srcnn3.onnx", folder / "models", sets=["factor=1,1,2,2"], backend="python", threads=1
    )
    nodes = [helper.make_node("Gather", ["table", "x"], ["y"])]
    table = {"table": np.arange(5, dtype=np.int64) * 10}
    gather = save(folder / "gather.onnx", nodes, {"x": ["n", 2]}, {"y": ["n", 2]}, TensorProto.INT64, table)
    triton.write_repository(gather, folder / "models", backend="python", delay=20000)
    http, grpc = free_port(), free_port()
    libraries = [ROOT / ".deps" / "triton" / "nvidia_pytriton.libs", sysconfig.get_config_var("LIBDIR")]
    packages = [PYTHON, sysconfig.get_path("purelib")]
    log = (folder / "log").open("w")
    process = subprocess.Popen(
        [folder / "tritonserver", f"--model-repository={folder}/models", f"--backend-directory={folder}/backends",
         f"--http-port={http}", f"--grpc-port={grpc}", "--http-address=127.0.0.1", "--grpc-address=127.0.0.1",
         "--allow-metrics=false"],
        env=processes.environment(*packages, LD_LIBRARY_PATH=os.pathsep.join(map(str, libraries))),
        stdout=log, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        wait_until(lambda: process.poll() is not None or is_ready(http), 300)
        assert process.poll() is None, (folder / "log").read_text()[-5000:]
        yield f"127.0.0.1:{grpc}"
    finally:
        process.terminate()
        process.wait(60)
        log.close()


def is_ready(port: int) -> bool:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5).status == 200
    except (urllib.error.URLError, OSError):
        return False


def wait_until(done: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, f"no result within {seconds} s"
        time.sleep(0.2)


CLIENTS = """
import sys, threading, time
import numpy as np
import tritonclient.grpc as client
address, file, requests = sys.argv[1], sys.argv[2], int(sys.argv[3])
saved = np.load(file)
images, expected = [saved[f"x{i}"] for i in range(10)], [saved[f"y{i}"] for i in range(10)]
answered, wrong = [0] * 8, []
def work(me):
    server = client.InferenceServerClient(address)
    for i in range(me, requests, 8):
        x = client.InferInput("input", images[i % 10].shape, "FP32")
        x.set_data_from_numpy(images[i % 10])
        got = server.infer("srcnn3", [x], client_timeout=600).as_numpy("output")
        answered[me] += 1
        if got.shape != expected[i % 10].shape or not np.allclose(got, expected[i % 10], atol=1e-5):
            wrong.append(i)
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
start = time.perf_counter()
for t in threads: t.start()
for t in threads: t.join()
seconds = time.perf_counter() - start
(stats,) = client.InferenceServerClient(address).get_inference_statistics("srcnn3").model_stats
print(sum(answered), len(wrong), stats.inference_count, stats.execution_count, seconds)
"""


@pytest.mark.slow
def test_a_thousand_requests_of_eight_clients(server: str, tmp_path: Path) -> None:
    """Inputs have two sizes: results equal the program's, none is lost, and some requests ran in one batch."""
    session = polyop.session(SRCNN / "srcnn3.onnx")
    factor, saved = np.array([1, 1, 2, 2], np.float32), {}
    for i in range(10):
        x = np.random.default_rng(i).random((1, 3, 10, 8 + i % 2)).astype(np.float32)
        saved |= {f"x{i}": x, f"y{i}": session.run(None, {"input": x, "factor": factor})[0]}
    np.savez(tmp_path / "saved.npz", **saved)
    said = child("triton", CLIENTS, server, tmp_path / "saved.npz", 1000).split()
    answered, wrong, inferences, executions = map(int, said[:4])
    assert (answered, wrong, inferences) == (1000, 0, 1000)
    assert executions < inferences
    print(f"1000 requests in {float(said[4]):.1f} s, {executions} runs of the backend")


BAD = """
import sys, threading
import numpy as np
import tritonclient.grpc as client
from tritonclient.utils import InferenceServerException
server = client.InferenceServerClient(sys.argv[1])
def request(model, name, array, kind):
    x = client.InferInput(name, array.shape, kind)
    x.set_data_from_numpy(array)
    try:
        return server.infer(model, [x], client_timeout=600).as_numpy("y").tolist()
    except InferenceServerException as error:
        return error.message()
print(request("srcnn3", "input", np.zeros((1, 4, 8, 8), np.float32), "FP32"))
print(request("srcnn3", "input", np.zeros((1, 3, 8, 8), np.float64), "FP64"))
print(request("srcnn3", "other", np.zeros((1, 3, 8, 8), np.float32), "FP32"))
answers = [None] * 6
def work(i):
    answers[i] = request("gather", "x", np.array([[i % 5, 9 if i == 3 else 1]]), "INT64")
threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
for t in threads: t.start()
for t in threads: t.join()
for answer in answers: print(answer)
print(server.is_server_live())
"""


@pytest.mark.slow
def test_bad_requests_get_errors(server: str) -> None:
    """Requests that were batched with a bad one get their results."""
    lines = child("triton", BAD, server).splitlines()
    assert "Expected [-1,3,-1,-1], got [1,4,8,8]" in lines[0]
    assert "FP64" in lines[1]
    assert "other" in lines[2]
    assert "out of data bounds" in lines[6]
    assert [lines[3 + i] for i in range(6) if i != 3] == [f"[[{i % 5 * 10}, 10]]" for i in range(6) if i != 3]
    assert lines[9] == "True"
