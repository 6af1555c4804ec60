# SPDX-License-Identifier: Apache-2.0
"""polyop.register: polyop as an execution provider of ONNX Runtime."""

from __future__ import annotations

import ctypes
import threading

import onnxruntime as ort

from polyop._base.libraries import get_onnxruntime_op_path
from polyop.errors import PolyopError

PROVIDER = "PolyopExecutionProvider"
_OLDEST = (1, 24)
_lock = threading.Lock()


def register() -> list[ort.OrtEpDevice]:
    """Registers polyop as an execution provider with this process's ONNX Runtime, once, and returns its devices: the
    CPU.

        options = onnxruntime.SessionOptions()
        options.add_provider_for_devices(polyop.register(), {"trace": "0"})
        session = onnxruntime.InferenceSession("model.onnx", options)

    The session has polyop's operators, and runs nodes of standard operators by polyop's kernels where these are faster.
    Raises PolyopError if ONNX Runtime is older than 1.24, or if the library was built without the provider.
    """
    if why := why_not():
        raise PolyopError(f"polyop.register: {why}", "use the accelerator: polyop.get_accelerator_path()")
    with _lock:
        if not (devices := _devices()):
            ort.register_execution_provider_library("polyop", get_onnxruntime_op_path())
            devices = _devices()
        return devices


def why_not() -> str:
    """Returns why the provider cannot be registered, or an empty text."""
    if tuple(int(number) for number in ort.__version__.split(".")[:2]) < _OLDEST:
        return f"expected ONNX Runtime 1.24 or newer, got {ort.__version__}"
    path = get_onnxruntime_op_path()
    if not hasattr(ctypes.CDLL(path), "CreateEpFactories"):
        return f"expected a library with an execution provider, got {path}, built with headers of ONNX Runtime < 1.24"
    return ""


def _devices() -> list[ort.OrtEpDevice]:
    return [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]
