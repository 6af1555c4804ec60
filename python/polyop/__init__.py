# SPDX-License-Identifier: Apache-2.0
"""polyop: write an operator once in C++; run it in PyTorch, ONNX Runtime, TensorRT and OpenVINO.

    import onnxruntime as ort
    import polyop

    options = ort.SessionOptions()
    options.add_provider_for_devices(polyop.register(), {})  # ONNX Runtime 1.24 or newer
    session = ort.InferenceSession("model.onnx", options)

or `options.register_custom_ops_library(polyop.get_onnxruntime_op_path())` for polyop's operators alone, or, for a model
of standard operators that `polyop.optimize` can accelerate:

    session = polyop.session("model.onnx", optimize=True)

With PyTorch, polyop also provides torch.ops.polyop, the functions of polyop.functional (polyop.roi_align, polyop.nms,
…), the layers of polyop.modules (polyop.RoIAlign, …), polyop.export and polyop.accelerate. They are registered at once
if torch was imported before polyop, otherwise on first use.
"""

from __future__ import annotations

from polyop._base import isolation as _isolation  # noqa: F401  (before modules are imported from the current folder)

# isort: split
import ctypes
import os
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from polyop._base import libraries as _libraries
from polyop._base.libraries import get_accelerator_path, get_library_path, get_onnxruntime_op_path

__version__ = "0.1.0"
__all__ = ["__version__", "get_accelerator_path", "get_library_path", "get_onnxruntime_op_path"]

_MODULES = frozenset(
    ("accelerating", "attaching", "batch", "compat", "errors", "exporting", "formulas", "functional", "jax", "modules",
     "numpy", "onnx_schemas", "onnxscript", "openvino", "optimizing", "packages", "portable", "ray", "sparse",
     "tensorrt", "triton")
)  # fmt: skip


_FROM_MODULES = {
    "attach": "attaching", "AttachError": "attaching", "optimize": "optimizing", "OptimizeError": "optimizing",
    "session": "_onnxruntime.session", "register": "_onnxruntime.provider", "accelerate": "accelerating",
    "translations": "_torch.translations", "export": "exporting", "ExportError": "exporting", "Exported": "exporting",
    **dict.fromkeys(
        ("CARAFEPack", "CornerPool", "DeformConv2d", "DeformConv2dPack", "ModulatedDeformConv2d",
         "ModulatedDeformConv2dPack", "MultiScaleDeformableAttention", "PSAMask", "RoIAlign", "RoIAlignRotated",
         "RoIAwarePool3d", "RoIPointPool3d"),
        "modules",
    ),
    "node_domain": "functional",
}  # fmt: skip
"""The modules of names that are imported on first use."""


def __getattr__(name: str) -> Any:
    """Imports on first use what needs packages that not every user has: PyTorch, or those that read and write
    models.

    Raises ModuleNotFoundError, with the extra to install, if one of them is missing.
    """
    try:
        return _first_use(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "polyop":
            raise
        package = error.name.partition(".")[0]
        extra = _EXTRAS.get(name, "torch")
        message = f"polyop.{name} needs the package '{package}': pip install 'polyop[{extra}]'"
        raise ModuleNotFoundError(message, name=error.name) from error


_EXTRAS = {
    "numpy": "numpy", "jax": "jax", "batch": "batch", "triton": "batch", "ray": "ray", "optimize": "optimize",
    "optimizing": "optimize", "session": "optimize", "OptimizeError": "optimize", "export": "export",
    "exporting": "export", "Exported": "export", "ExportError": "export", "portable": "export",
    "onnx_schemas": "export", "onnxscript": "export", "attach": "optimize", "attaching": "optimize",
    "AttachError": "optimize",
}  # fmt: skip
"""The extras of pyproject.toml that the parts of this package need; the others need `torch`."""


def _first_use(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"polyop.{name}")
    if name in _FROM_MODULES:
        return getattr(import_module(f"polyop.{_FROM_MODULES[name]}"), name)
    if not name.startswith("_") and name in _function_names():
        return getattr(import_module("polyop.functional"), name)
    missing = "" if _function_names() else " as long as its libraries are missing: in a checkout run `make build`"
    message = f"module 'polyop' has no attribute '{name}'{missing}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    """Returns all names, so that interpreters complete and suggest also those that are imported on first use."""
    return sorted({*globals(), *_MODULES, *_FROM_MODULES, *_function_names()})


@cache
def _function_names() -> frozenset[str]:
    """Returns the names of the operators' functions, which are known also where PyTorch is missing; none without a
    library."""
    library = _libraries.find_library(_libraries.library_file("polyop", "onnxruntime"))
    if not library.is_file():
        return frozenset()
    return import_module("polyop._arrays.functions").names(_libraries.read_catalogue(ctypes.CDLL(str(library))))


if _libraries.find_library(_libraries.library_file("polyop", "torch")).is_file():
    if "torch" in sys.modules:
        with suppress(ImportError, OSError):  # PyTorch is too old: its part raises an error on first use
            import_module("polyop.functional")
    else:
        import_module("polyop._torch.exporters").tell_exporters()

if os.environ.get("POLYOP_MMCV") == "1":
    import_module("polyop.compat.mmcv")
