# SPDX-License-Identifier: Apache-2.0
"""Packages of operators that were built with polyop's SDK, found by their entry points.

A package `my_ops` has an entry point of that name in the group `polyop.operators`. Its value is the module whose folder
lib/ contains the libraries:

[project.entry-points."polyop.operators"]
my_ops = "my_ops"

    my_ops/lib/libmy_ops_RUNTIME.so    a library per runtime: onnxruntime, torch, openvino, tensorrt; each is optional
    my_ops/lib/formulas/               the operators' formulas

The folder is located next to the package's metadata; the package itself is not imported. The program `polyop` reads the
same entry points. POLYOP_OPERATORS names folders of further libraries, such as a build tree, separated by colons.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING

from polyop._base.libraries import get_onnxruntime_op_path
from polyop._base.packages import Package, found, libraries, packages

if TYPE_CHECKING:
    import onnxruntime

__all__ = ["Package", "libraries", "load", "packages", "register_all", "register_packages"]


def load(name: str) -> Package:
    """Registers a package's operators with PyTorch, if that is installed: torch.ops.my_ops.* for `my_ops`.

    Packages call this in their __init__.py. Returns the package. Raises ImportError if it is not usable.
    """
    if name not in found():
        raise ImportError(
            f"package '{name}': expected an entry point in the group polyop.operators, got {', '.join(found()) or 'none'}: "
            "reinstall the package, or name its folder of libraries in POLYOP_OPERATORS"
        )
    package, why = found()[name]
    if why is not None:
        raise ImportError(why)
    if package.library("torch") is not None and find_spec("torch") is not None:
        from polyop._torch import load as _  # noqa: F401 - registers those of all packages
    return package


def register_all(options: onnxruntime.SessionOptions) -> None:
    """Registers the ONNX Runtime libraries of polyop and of every package."""
    options.register_custom_ops_library(get_onnxruntime_op_path())
    register_packages(options)


def register_packages(options: onnxruntime.SessionOptions) -> None:
    """Registers the ONNX Runtime libraries of every package. Leaves out those that fail, with a warning."""
    for package, library in libraries("onnxruntime"):
        try:
            options.register_custom_ops_library(str(library))
        except Exception as error:  # ONNX Runtime's own types are not public
            warnings.warn(f"the operators of '{package.name}' are left out: {error}", stacklevel=3)
