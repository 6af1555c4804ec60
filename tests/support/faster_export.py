# SPDX-License-Identifier: Apache-2.0
"""Exports many small programs by torch.onnx.export(…, dynamo=True) in one process, in half of the time.

Each export builds the registry of ONNX functions anew, by parsing 500 Python functions, asks for all composite
operators, and gives each of them a kernel for each device. None of it changes between the exports of a test.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._export import utils
from torch._subclasses.fake_impls import _deregister_op_impl, op_implementations_dict
from torch.export import exported_program
from torch.onnx._internal.exporter._registration import ONNXRegistry

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
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

    override = exported_program._override_composite_implicit_decomp
    exported_program._override_composite_implicit_decomp = _override_from_kept(override)
    utils._collect_all_valid_cia_ops()  # finds the operators that Python has not met
    utils._check_valid_to_preserve = functools.cache(utils._check_valid_to_preserve)
    ONNXRegistry.from_torchlib = classmethod(from_torchlib)  # type: ignore[method-assign, assignment]
    utils._materialize_cpp_cia_ops = lambda: None


def _override_from_kept(override: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function like PyTorch's, which keeps the kernels that it has given to an operator.

    Only that of _COMPOSITE differs between exports: it is the decomposition.
    """
    kept: dict[Any, tuple[dict[Any, Any], Any]] = {}

    @contextmanager
    def call(functions: dict[Any, Any]) -> Iterator[None]:
        new = {op: function for op, function in functions.items() if op not in kept}
        with override(new):
            for op in new:
                kept[op] = dict(op.py_kernels), op_implementations_dict[op]
        before = {op: dict(op.py_kernels) for op in functions}
        for op, function in functions.items():
            kernels, implementation = kept[op]
            op.py_kernels.update(kernels)
            op.py_kernels[_COMPOSITE] = function
            op._dispatch_cache.clear()
            op_implementations_dict.setdefault(op, implementation)
        try:
            yield
        finally:
            for op, kernels in before.items():
                op.py_kernels.clear()
                op.py_kernels.update(kernels)
                op._dispatch_cache.clear()
                _deregister_op_impl(op)

    return call
