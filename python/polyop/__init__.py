"""polyop: write an operator once in C++; run it in PyTorch, ONNX Runtime and TensorRT.

import onnxruntime as ort
import polyop

options = ort.SessionOptions()
options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
session = ort.InferenceSession("model.onnx", options)
"""

from __future__ import annotations

from pathlib import Path

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
