// SPDX-License-Identifier: Apache-2.0
#include "cli/new_project.h"

#include <algorithm>
#include <iterator>

#include "cli/new_operator.h"

namespace polyop::cli {
namespace {

// @project@ is the name of the library and of the package, @op@ that of the operator, @version@ polyop's version.
constexpr Template kTemplates[] = {
    {"pyproject.toml", R"text([build-system]
requires = ["scikit-build-core>=0.10", "polyop>=@version@"]
build-backend = "scikit_build_core.build"

[project]
name = "@project@"
version = "0.1.0"
description = "Operators for PyTorch and ONNX Runtime, built with polyop"
readme = "README.md"
requires-python = ">=3.10"
dependencies = ["polyop>=@version@"]

# polyop finds the operators by this entry point. The libraries are in lib/ of the package.
[project.entry-points."polyop.operators"]
@project@ = "@project@"

[tool.scikit-build]
build-dir = "build/{wheel_tag}"
wheel.py-api = "py3" # the libraries do not use Python's ABI
wheel.packages = ["python/@project@"]
)text"},
    {"CMakeLists.txt", R"text(cmake_minimum_required(VERSION 3.25)
project(@project@ LANGUAGES C CXX)
find_package(polyop CONFIG REQUIRED) # polyop_DIR: the folder that `polyop cmake-dir` prints
polyop_add_library(@project@ OPERATORS ops)
)text"},
    {"README.md", R"text(# @project@

Operators for PyTorch, ONNX Runtime and OpenVINO, built with polyop. Each has a folder in `ops/`.

```sh
export PIP_FIND_LINKS=/folder/of/the/wheel/of/polyop
pip install -v . # builds the libraries, shows the progress, and installs the Python package
polyop test      # tests the operators: kernels against references, random calls, CUDA's source on the CPU
polyop new NAME  # adds an operator
```

pip builds in a new environment, into which it installs polyop again: from a package index, or from the folder that
`PIP_FIND_LINKS` names. If neither has its wheel, pip ends with `No matching distribution found for polyop`.

The libraries for PyTorch and OpenVINO are built if these are installed.

```python
import torch

import polyop
import @project@


class Net(torch.nn.Module):
    def forward(self, x):
        return torch.ops.@project@.@op@(x)


x = torch.rand(2, 3)
polyop.export(Net(), x, "net.onnx")         # also runs it in ONNX Runtime and compares
session = polyop.session("net.onnx")        # an onnxruntime.InferenceSession
```

`polyop run`, `inspect`, `verify` and `bench` find the operators automatically.
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
      # Where no package index has polyop, the repository's folder wheels/ contains its wheel for Linux.
      - run: echo "PIP_FIND_LINKS=$PWD/wheels" >> "$GITHUB_ENV"
      - run: pip install "polyop[export]" cmake ninja pytest
      - run: pip install . && polyop test
      - run: pytest tests
)text"},
    {"python/@project@/__init__.py",
     R"text("""Operators for PyTorch (torch.ops.@project@.*) and ONNX files, built with polyop.

Importing the package registers them with PyTorch. ONNX Runtime without polyop loads the library by its path:

options.register_custom_ops_library(@project@.get_onnxruntime_op_path())
"""

from polyop.packages import load

_package = load("@project@")


def get_onnxruntime_op_path() -> str:
    """Returns the path of the library for `onnxruntime.SessionOptions.register_custom_ops_library`."""
    return str(_package.library("onnxruntime"))
)text"},
    {"tests/test_@project@.py",
     R"text("""Tests the operators in PyTorch, exported, and in ONNX Runtime."""

import numpy as np
import torch

import @project@
import polyop


class Net(torch.nn.Module):
    def forward(self, x):
        return torch.ops.@project@.@op@(x, scale=3.0)


def test_runs_in_pytorch():
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    torch.testing.assert_close(Net()(x), 3 * x)


def test_exports_and_runs_in_onnxruntime(tmp_path):
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    polyop.export(Net(), x, tmp_path / "net.onnx", input_names=["x"], output_names=["y"])
    (y,) = polyop.session(tmp_path / "net.onnx").run(None, {"x": x.numpy()})
    np.testing.assert_allclose(y, 3 * x.numpy())
    assert @project@.get_onnxruntime_op_path().endswith((".so", ".dll", ".dylib"))
)text"},
};

constexpr Template kGradientTemplates[] = {
    {"tests/test_@project@_gradients.py",
     R"text("""Tests the gradients in PyTorch. Calls in float64 run the references in double precision."""

import torch

import @project@  # noqa: F401, registers the operators


def times_three(x):
    return torch.ops.@project@.@op@(x, scale=3.0)


def test_the_gradient_kernel_computes_the_gradient():
    x = torch.linspace(-2, 2, 12).reshape(3, 4).requires_grad_()
    times_three(x).square().sum().backward()
    torch.testing.assert_close(x.grad, 18 * x.detach())


def test_gradients_match_finite_differences():
    x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(times_three, x)
    assert torch.autograd.gradgradcheck(times_three, x)  # by the formula
)text"},
};

}  // namespace

std::vector<std::string> WriteProject(const std::string& folder, const std::string& name, const std::string& op,
                                      bool gradient) {
  const Variables variables = {{"project", name}, {"op", op}, {"version", POLYOP_VERSION}};
  std::vector<std::string> written = WriteFiles(folder, kTemplates, variables);
  if (gradient) std::ranges::copy(WriteFiles(folder, kGradientTemplates, variables), std::back_inserter(written));
  return written;
}

}  // namespace polyop::cli
