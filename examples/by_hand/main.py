# SPDX-License-Identifier: Apache-2.0
"""One operator, with ONNX Runtime's C++ API (by_hand.cc) and with polyop (ops/scaled_gather/).

Builds both for the CPU and, if nvcc is installed, for CUDA on the session's stream. Runs both on the CPU, with valid
and invalid input, and counts their lines of code.

python examples/by_hand/main.py [FOLDER]     builds in FOLDER
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HEADERS = ROOT / ".deps" / "onnxruntime" / "include"


def command(*words: object) -> None:
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def find_nvcc() -> str | None:
    return shutil.which("nvcc", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"]))


def build_by_hand(folder: Path) -> Path:
    """Builds the library, with the CUDA kernel if nvcc is installed. It links CUDA's runtime statically, so it also
    loads without a GPU."""
    library = folder / "libby_hand.so"
    sources, options = [HERE / "by_hand.cc"], ["-std=c++20", "-shared", f"-I{HEADERS}", "-o", library]
    if nvcc := find_nvcc():
        flags = ["-arch=all-major", "-O2", "-DBY_HAND_CUDA", "-Xcompiler", "-fPIC", "-cudart", "static"]
        command(nvcc, *flags, *options, *sources, HERE / "by_hand_cuda.cu")
    else:
        command("c++", "-O2", "-fPIC", *options, *sources)
    return library


def build_by_polyop(folder: Path) -> Path:
    installed = Path(sys.executable).parent / "cmake"
    cmake = installed if installed.exists() else "cmake"
    nvcc = find_nvcc()
    cuda = ["-DPOLYOP_CUDA=ON", f"-DCMAKE_CUDA_COMPILER={nvcc}", "-DCMAKE_CUDA_ARCHITECTURES=75-real"] if nvcc else []
    command(
        cmake, "-S", ROOT, "-B", folder / "build", "-G", "Ninja", f"-DPOLYOP_EXTRA_OPS_DIRS={HERE / 'ops'}",
        "-DPOLYOP_OPS=my_add", "-DPOLYOP_BUILD_CLI=OFF", "-DPOLYOP_BUILD_TESTS=OFF",
        f"-DPython3_EXECUTABLE={sys.executable}", *cuda,
    )  # fmt: skip
    command(cmake, "--build", folder / "build", "--target", "polyop_onnxruntime")
    (library,) = (folder / "build").rglob("libpolyop_onnxruntime.so")
    return library


def session(library: Path, domain: str, scaled: bool) -> ort.InferenceSession:
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "C"]),
        helper.make_tensor_value_info("index", TensorProto.INT64, ["K"]),
        helper.make_tensor_value_info("scale", TensorProto.FLOAT, ["K"]),
    ][: 3 if scaled else 2]
    node = helper.make_node("ScaledGather", [i.name for i in inputs], ["y"], domain=domain)
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["K", "C"])])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.register_custom_ops_library(str(library))
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def lines(*files: Path) -> int:
    """Counts the lines of code, without empty lines and comments."""
    return sum(
        bool(line.strip()) and not line.strip().startswith("//") for f in files for line in f.read_text().splitlines()
    )


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ways = {"by_hand": build_by_hand(folder), "by_polyop": build_by_polyop(folder)}
    rng = np.random.default_rng(0)
    x, index, scale = rng.random((50, 7), np.float32), rng.integers(0, 50, 20), rng.random(20, np.float32)
    for domain, library in ways.items():
        (plain,) = session(library, domain, False).run(None, {"x": x, "index": index})
        np.testing.assert_array_equal(plain, x[index])
        (scaled,) = session(library, domain, True).run(None, {"x": x, "index": index, "scale": scale})
        np.testing.assert_allclose(scaled, x[index] * scale[:, None], rtol=1e-6)
        try:
            session(library, domain, False).run(None, {"x": x, "index": np.array([3, 50])})
        except Exception as error:  # ONNX Runtime's own types are not public
            message = str(error).split("ScaledGather", 1)[-1].strip()
        else:
            raise SystemExit(f"{domain}: expected an error for an index out of range")
        print(f"{domain:10} equals NumPy, with and without scales; invalid input: …{message[-60:]}")
    ops = HERE / "ops" / "scaled_gather"
    hand = lines(HERE / "by_hand.cc", HERE / "by_hand_cuda.cu")
    polyop = lines(*(ops / f"scaled_gather{end}" for end in (".h", "_cpu.cc", "_cuda.cu")))
    print(
        f"CUDA kernels: {'compiled; they need a GPU to run' if find_nvcc() else 'not compiled, because nvcc was not found'}"
    )
    print(f"lines of code by hand:   {hand:3}, for ONNX Runtime, CPU and CUDA, float32, one thread")
    print(
        f"lines of code by polyop: {polyop:3}, for ONNX Runtime, PyTorch and TensorRT, CPU and CUDA, three types, all threads"
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
