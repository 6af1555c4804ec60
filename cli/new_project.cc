#include "cli/new_project.h"

#include "cli/new_operator.h"

namespace polyop::cli {
namespace {

// @project@ is the library's name and the package's, @op@ the operator's, @version@ polyop's.
constexpr Template kTemplates[] = {
    {"pyproject.toml", R"text([build-system]
requires = ["scikit-build-core>=0.10", "polyop>=@version@"]
build-backend = "scikit_build_core.build"

[project]
name = "@project@"
version = "0.1.0"
description = "Operators for PyTorch and ONNX Runtime, made with polyop"
readme = "README.md"
requires-python = ">=3.10"
dependencies = ["polyop>=@version@"]

# By this polyop finds the operators: the libraries lie in lib/ of the package.
[project.entry-points."polyop.operators"]
@project@ = "@project@"

[tool.scikit-build]
build-dir = "build/{wheel_tag}"
wheel.py-api = "py3" # the libraries use no ABI of Python's
wheel.packages = ["python/@project@"]
)text"},
    {"CMakeLists.txt", R"text(cmake_minimum_required(VERSION 3.25)
project(@project@ LANGUAGES C CXX)
find_package(polyop CONFIG REQUIRED) # polyop_DIR is what `polyop cmake-dir` prints
polyop_add_library(@project@ OPERATORS ops)
)text"},
    {"README.md", R"text(# @project@

Operators for PyTorch, ONNX Runtime and OpenVINO, each a folder of `ops/`, made with polyop.

```sh
pip install .    # builds the libraries, and makes them a Python package
polyop test      # the operators' tests: kernels against references, random calls, CUDA's source on the CPU
polyop new NAME  # another operator
```

PyTorch's library is built where PyTorch is installed, OpenVINO's where OpenVINO is.

```python
import torch

import polyop
import @project@


class Net(torch.nn.Module):
    def forward(self, x):
        return torch.ops.@project@.@op@(x)


x = torch.rand(2, 3)
polyop.export(Net(), x, "net.onnx")         # and runs it in ONNX Runtime, and compares
session = polyop.session("net.onnx")        # an onnxruntime.InferenceSession
```

`polyop run`, `inspect`, `verify` and `bench` find the operators by themselves.
)text"},
    {".gitignore", R"text(/build/
/dist/
__pycache__/
)text"},
    {".github/workflows/test.yml", R"text(name: test
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install torch --index-url https://download.pytorch.org/whl/cpu
      - run: pip install "polyop[export]" cmake ninja pytest
      - run: pip install . && polyop test
      - run: pytest tests
)text"},
    {"python/@project@/__init__.py",
     R"text("""Operators made with polyop: torch.ops.@project@.*, and nodes in ONNX files.

Importing the package makes them known to PyTorch. ONNX Runtime alone takes the library by its path:

options.register_custom_ops_library(@project@.get_onnxruntime_op_path())
"""

from polyop.packages import load

_package = load("@project@")


def get_onnxruntime_op_path() -> str:
    """Path of the library for `onnxruntime.SessionOptions.register_custom_ops_library`."""
    return str(_package.library("onnxruntime"))
)text"},
    {"tests/test_@project@.py",
     R"text("""The operators as users call them: in PyTorch, exported, and in ONNX Runtime."""

import numpy as np
import torch

import @project@
import polyop


class Net(torch.nn.Module):
    def forward(self, x):
        return torch.ops.@project@.@op@(x, scale=3.0)


def test_pytorch_computes_it():
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    torch.testing.assert_close(Net()(x), 3 * x)


def test_it_is_exported_and_runs_in_onnxruntime(tmp_path):
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    polyop.export(Net(), x, tmp_path / "net.onnx", input_names=["x"], output_names=["y"])
    (y,) = polyop.session(tmp_path / "net.onnx").run(None, {"x": x.numpy()})
    np.testing.assert_allclose(y, 3 * x.numpy())
    assert @project@.get_onnxruntime_op_path().endswith(".so")
)text"},
};

}  // namespace

std::vector<std::string> WriteProject(const std::string& folder, const std::string& name, const std::string& op) {
  return WriteFiles(folder, kTemplates, {{"project", name}, {"op", op}, {"version", POLYOP_VERSION}});
}

}  // namespace polyop::cli
