"""polyop: write an operator once in C++; run it in PyTorch, ONNX Runtime and TensorRT.

import onnxruntime as ort
import polyop

options = ort.SessionOptions()
options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
session = ort.InferenceSession("model.onnx", options)

With PyTorch, polyop.roi_align, polyop.nms and the other functions of polyop.functional are there too; they are loaded
when the first is asked for.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "get_library_path", "get_onnxruntime_op_path"]


def get_onnxruntime_op_path() -> str:
    """Path of polyop's custom-op library, for `SessionOptions.register_custom_ops_library`.

    Raises FileNotFoundError if the library is not there, which means that the package was neither
    installed nor built.
    """
    library = Path(__file__).resolve().parent / "lib" / "libpolyop_onnxruntime.so"
    if not library.is_file():
        raise FileNotFoundError(
            f"polyop's ONNX Runtime library is missing: {library}. "
            "In a checkout run `make build`; otherwise reinstall the package with `pip install .`."
        )
    return str(library)


def get_library_path() -> str:
    """The same as `get_onnxruntime_op_path`, under the name that onnxruntime-extensions uses."""
    return get_onnxruntime_op_path()


def __getattr__(name: str) -> Any:
    """The functions that need PyTorch, which ONNX Runtime's users need not have."""
    if not name.startswith("_"):
        functional = import_module("polyop.functional")
        if name in functional.__all__:
            return getattr(functional, name)
    raise AttributeError(f"module 'polyop' has no attribute '{name}'")
