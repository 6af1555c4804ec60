# SPDX-License-Identifier: Apache-2.0
"""Exports calls of PyTorch by its dynamo exporter with polyop's translations, and compares their files with PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
import torch

import polyop
from tests.support.pytorch_cases import Call, tensors_of


def normal(*shape: int) -> torch.Tensor:
    """Returns the same random numbers for each shape."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def session_of(program: Any) -> ort.InferenceSession:
    assert program is not None
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    return ort.InferenceSession(program.model_proto.SerializeToString(), options)


class OfTwo(torch.nn.Module):
    """A module of one function of two tensors, x and y."""

    def __init__(self, function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.function(x, y)


def exported(
    call: Callable[..., Any], *args: torch.Tensor, dynamic: Sequence[Any] | None = None, **options: Any
) -> Callable[..., list[np.ndarray]]:
    """Returns a function that runs the file of a call of tensors; `dynamic` names the dynamic axes of each tensor."""
    model = call if isinstance(call, torch.nn.Module) else Call(call, (args, {}))
    if dynamic is not None:
        sizes = tuple(dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for axes in dynamic)
        options["dynamic_shapes"] = (sizes,) if isinstance(model, Call) else sizes
    with torch.no_grad(), polyop.translations():
        program = torch.onnx.export(model, args, dynamo=True, verbose=False, **options)
    file = session_of(program)
    names = [value.name for value in program.model.graph.inputs]
    needed = {value.name for value in file.get_inputs()}

    def run(*tensors: torch.Tensor) -> list[np.ndarray]:
        feeds = zip(names, (a.numpy() for a in tensors_of(tensors)), strict=True)
        return file.run(None, {name: value for name, value in feeds if name in needed})

    return run


def check(
    call: Callable[..., Any], *args: torch.Tensor, others: Sequence[tuple[torch.Tensor, ...]] = (),
    dynamic: Sequence[Any] | None = None, rtol: float = 1e-5, atol: float = 1e-6, **options: Any,
) -> None:  # fmt: skip
    """Compares the file of a call with PyTorch, for its tensors and for others."""
    run = exported(call, *args, dynamic=dynamic, **options)
    for tensors in (args, *others):
        with torch.no_grad():
            expected = list(tensors_of(call(*(tensor.clone() for tensor in tensors))))
        got = run(*tensors)
        assert len(got) == len(expected)
        for value, tensor in zip(got, expected, strict=True):
            assert value.dtype == tensor.numpy().dtype
            assert value.shape == tuple(tensor.shape)
            np.testing.assert_allclose(value, tensor.numpy(), rtol, atol)


def check_together(calls: Mapping[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]], **options: Any) -> None:
    """Compares several calls with PyTorch in one file, to save time. If that fails, checks each."""

    def call(*tensors: torch.Tensor) -> list[Any]:
        left = iter(tensors)
        return [function(*(next(left) for _ in args)) for function, args in calls.values()]

    try:
        check(call, *(tensor for _, args in calls.values() for tensor in args), **options)
    except Exception:
        for name, (function, args) in calls.items():
            try:
                check(function, *args, **options)
            except Exception as error:
                raise AssertionError(name) from error
        raise
