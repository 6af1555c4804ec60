"""polyop: write an operator once in C++; run it in PyTorch, ONNX Runtime, TensorRT and OpenVINO.

    import onnxruntime as ort
    import polyop

    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    session = ort.InferenceSession("model.onnx", options)

or, for a model of standard operators, which `polyop.optimize` makes faster:

    session = polyop.session("model.onnx", optimize=True)

With PyTorch, torch.ops.polyop, the functions of polyop.functional (polyop.roi_align, polyop.nms, …), the layers of
polyop.modules (polyop.RoIAlign, …), polyop.export and polyop.accelerate are there too: at once if torch was imported
before polyop, else when the first of them is asked for.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "get_accelerator_path", "get_library_path", "get_onnxruntime_op_path"]


def _library(name: str) -> Path:
    """A library of the folder that POLYOP_LIBRARY_DIR names, one built with more operators; without it, of the package with
    CUDA kernels where that is installed and has it, else of this one."""
    if named := os.environ.get("POLYOP_LIBRARY_DIR"):
        return Path(named).absolute() / name
    own = Path(__file__).resolve().parent / "lib"
    return next((folder / name for folder in _cuda_folders() if (folder / name).exists()), own / name)


@cache
def _cuda_folders() -> tuple[Path, ...]:
    """Where polyop-cuda13 or polyop-cuda12 has its libraries, the newer one's first: tools/cuda_wheel.sh makes them. One of
    another version than this package's is left out, with a warning."""
    from importlib.metadata import PackageNotFoundError, distribution  # as long to import as all of this package

    found = []
    for cuda in (13, 12):
        try:
            package = distribution(f"polyop-cuda{cuda}")
        except PackageNotFoundError:
            continue
        if package.version == __version__:
            found.append(Path(str(package.locate_file(f"polyop_cuda{cuda}"))) / "lib")
        else:
            warnings.warn(
                f"polyop-cuda{cuda} has version {package.version} and is not used, for polyop has {__version__}: "
                f"pip install polyop-cuda{cuda}=={__version__}",
                stacklevel=4,
            )
    return tuple(found)


def _existing(name: str, runtime: str = "ONNX Runtime") -> str:
    library = _library(name)
    if not library.is_file():
        raise FileNotFoundError(
            f"polyop's {runtime} library is missing: {library}. "
            "In a checkout run `make build`; otherwise reinstall the package with `pip install .`."
        )
    return str(library)


def get_onnxruntime_op_path() -> str:
    """Path of polyop's custom-op library, for `SessionOptions.register_custom_ops_library`.

    Raises FileNotFoundError if the library is not there, which means that the package was neither
    installed nor built, or that the environment variable POLYOP_LIBRARY_DIR names a folder without it.
    """
    return _existing("libpolyop_onnxruntime.so")


def get_accelerator_path() -> str:
    """Path of a library for `register_custom_ops_library` that puts polyop's kernels in the place of ONNX Runtime's own
    RoiAlign, GridSample, NonMaxSuppression and InstanceNormalization, for models of standard operators on the CPU.

    Where the session's configuration says the model's opset under "polyop.opset", versions of operators whose defaults
    are not the newest's are replaced, too. Raises FileNotFoundError as `get_onnxruntime_op_path` does.
    """
    return _existing("libpolyop_accelerator.so")


def get_library_path() -> str:
    """The same as `get_onnxruntime_op_path`, under the name that onnxruntime-extensions uses."""
    return get_onnxruntime_op_path()


def __getattr__(name: str) -> Any:
    """What needs packages that not every user has: PyTorch, or those that read and rewrite models."""
    if name in ("OptimizeError", "optimize"):
        return getattr(import_module("polyop.optimizing"), name)
    if name == "session":
        return import_module("polyop._session").session
    if name == "accelerate":
        return import_module("polyop.accelerating").accelerate
    if name in ("ExportError", "Exported", "export"):
        return getattr(import_module("polyop.exporting"), name)
    if not name.startswith("_"):
        for part in ("functional", "modules"):
            module = import_module(f"polyop.{part}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'polyop' has no attribute '{name}'")


if "torch" in sys.modules and _library("libpolyop_torch.so").is_file():
    with suppress(ImportError, OSError):  # a PyTorch that is too old: whoever asks for its part is told
        import_module("polyop.functional")

if os.environ.get("POLYOP_MMCV") == "1":
    import_module("polyop.compat.mmcv")
