# SPDX-License-Identifier: Apache-2.0
"""PyTorch's current CUDA stream is found even though Python loads PyTorch in a local scope.

Needs neither a GPU nor CUDA: a fake of the library has the function.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.processes import ROOT

FAKE = """
int aoti_torch_get_current_cuda_stream(int device, void** stream) {
  if (device > 3) return 1;
  *stream = (void*)(0x1000L + device);
  return 0;
}
"""

PROGRAM = r"""
#include <dlfcn.h>
#include <cstdio>
#include <cstdlib>
#include "adapters/torch/cuda_stream.h"

int main(int argc, char** argv) {
  if (argc > 1 && dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL) == nullptr) return std::puts(dlerror()), 2;
  if (dlsym(RTLD_DEFAULT, "aoti_torch_get_current_cuda_stream") != nullptr) return std::puts("it is no hidden one"), 2;
  for (int device : {0, 3, 4}) {
    void* stream = nullptr;
    const polyop::Status status = polyop::torch_adapter::CurrentCudaStream(device, &stream);
    std::printf("%s %lx\n", status.ok() ? "ok" : status.message().c_str(), reinterpret_cast<unsigned long>(stream));
  }
}
"""


def run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stream")
    (folder / "main.cc").write_text(PROGRAM)
    run("c++", "-std=c++20", f"-I{ROOT}", folder / "main.cc", ROOT / "adapters" / "torch" / "cuda_stream.cc",
        "-ldl", "-o", folder / "main")  # fmt: skip
    return folder / "main"


@pytest.mark.parametrize("name", ["libtorch_cuda.so", "libtorch_cuda-1a2b3c.so.2"])
def test_finds_the_function_in_a_library_of_a_local_scope(program: Path, name: str, tmp_path: Path) -> None:
    (tmp_path / "fake.c").write_text(FAKE)
    run("cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", tmp_path / "fake.c", "-o", tmp_path / name)
    lines = run(program, tmp_path / name).splitlines()
    assert lines[:2] == ["ok 1000", "ok 1003"]
    assert "CUDA stream of device 4" in lines[2]
    assert "returned 1" in lines[2]


def test_reports_a_missing_library(program: Path) -> None:
    assert run(program).startswith("PyTorch's CUDA stream is unavailable: no loaded PyTorch library exports")
