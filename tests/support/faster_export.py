"""Exports many small programs by torch.onnx.export(…, dynamo=True) in one process, in half of the time.

Each export builds the registry of ONNX functions anew, by parsing 500 Python functions, and asks for all composite
operators. Neither changes between the exports of a test.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch._export import utils
from torch.onnx._internal.exporter._registration import ONNXRegistry

_kept = False


def keep_registries() -> None:
    """Lets the following exports of this process share what they read of the registries."""
    global _kept
    if _kept:
        return
    _kept = True
    build: Callable[..., ONNXRegistry] = functools.cache(ONNXRegistry.from_torchlib)

    def from_torchlib(cls: Any, *args: Any, **given: Any) -> ONNXRegistry:
        kept = build(*args, **given)
        registry = cls()
        registry._opset_version = kept._opset_version
        registry.functions = {target: list(found) for target, found in kept.functions.items()}  # callers change them
        return registry

    utils._collect_all_valid_cia_ops()  # finds the operators that Python has not met
    ONNXRegistry.from_torchlib = classmethod(from_torchlib)  # type: ignore[method-assign, assignment]
    utils._materialize_cpp_cia_ops = lambda: None
