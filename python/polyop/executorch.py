# SPDX-License-Identifier: Apache-2.0
"""Models with polyop's operators in ExecuTorch, on the CPU.

    import polyop.executorch
    polyop.executorch.export(model, (image,), "model.pte")
    outputs = polyop.executorch.load("model.pte").execute([image])

`register()` adds the operators to ExecuTorch's runtime of this process, and their `.out` variants to PyTorch, which
ExecuTorch's compiler writes into files. `export` and `load` call it. An output whose size the kernel finds, as that of
nms, has its actual size: memory is planned for the upper bound.

A call that polyop refuses ends the method with Error::InvalidArgument, and ExecuTorch's log has polyop's message.
"""

from __future__ import annotations

import ctypes
import re
import string
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from executorch.extension.pybindings import portable_lib  # noqa: F401 - loads libexecutorch
from executorch.runtime import Method, Runtime
from torch import Tensor

import polyop.functional  # noqa: F401 - registers torch.ops.polyop
from polyop._arrays.calls import library, operators
from polyop._base.libraries import library_file, require_library
from polyop._onnx.atomic_file import AtomicFile, prepare_folder
from polyop.errors import PolyopError

__all__ = ["ExecuTorchError", "export", "load", "register"]


class ExecuTorchError(PolyopError, RuntimeError):
    """A file's outputs differ from PyTorch's, or ExecuTorch cannot run it."""


@cache
def register() -> None:
    """Registers all operators in ExecuTorch's runtime, and their `.out` variants in PyTorch."""
    library()  # libpolyop_onnxruntime, which the next library needs
    adapter = ctypes.CDLL(require_library(library_file("polyop", "executorch"), "ExecuTorch"))
    adapter.polyop_executorch_register.restype = ctypes.c_char_p
    if error := adapter.polyop_executorch_register():
        raise ExecuTorchError(f"polyop.executorch: {error.decode()}")
    for name in operators():
        _add_out_variant(name)


_fragment = torch.library.Library("polyop", "FRAGMENT")


def _add_out_variant(name: str) -> None:
    """Defines polyop::name.out, whose last arguments are the outputs of polyop::name."""
    functional = getattr(torch.ops.polyop, name).default
    schema = functional._schema
    arguments = str(schema).partition("(")[2].rpartition(" -> ")[0].removesuffix(")")
    for argument in schema.arguments:  # PyTorch prints a list of equal items as one of them, which it does not parse
        if isinstance(argument.default_value, list):
            arguments = re.sub(rf"\b{argument.name}=[^,\[]+", f"{argument.name}={argument.default_value}", arguments)
    count = len(schema.returns)
    names = ["out"] if count == 1 else [f"out{i}" for i in range(count)]
    types = [f"Tensor({letter}!)" for letter in string.ascii_lowercase[:count]]
    outs = ", ".join(f"{t} {out}" for t, out in zip(types, names, strict=True))
    keyword = "" if "*, " in arguments else "*, "
    result = types[0] if count == 1 else f"({', '.join(types)})"
    _fragment.define(f"{name}.out({arguments}, {keyword}{outs}) -> {result}")

    def call(*given: Any, **keywords: Any) -> Any:
        outputs = [keywords.pop(out) for out in names]
        results = functional(*given, **keywords)
        for out, value in zip(outputs, (results,) if count == 1 else results, strict=True):
            out.resize_(value.shape).copy_(value)
        return outputs[0] if count == 1 else tuple(outputs)

    _fragment.impl(f"{name}.out", call, "CompositeExplicitAutograd")


def export(
    model: torch.nn.Module,
    args: Tensor | Sequence[Tensor],
    path: str | Path,
    *,
    dynamic_shapes: Any = None,
    partitioner: Any = None,
    rtol: float = 1e-3,
    atol: float = 1e-4,
) -> Path:
    """Writes `model(*args)` as a file of ExecuTorch, runs it, and compares its outputs with PyTorch's.

    Args:
        model: the module, which is exported in evaluation mode.
        args: its inputs.
        path: the file to write, usually *.pte. It gets its name after the comparison.
        dynamic_shapes: as torch.export.export takes it. ExecuTorch needs an upper bound of each dynamic dimension.
        partitioner: a partitioner of ExecuTorch, or a list of them, such as XnnpackPartitioner().
        rtol, atol: the tolerance: |result - expected| <= atol + rtol * |expected|.

    Returns the path. Raises ExecuTorchError if an output differs from PyTorch's in shape or by more than the tolerance.
    """
    register()
    inputs = (args,) if isinstance(args, Tensor) else tuple(args)
    path = Path(path)
    prepare_folder(path)
    training = model.training
    model.eval()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about future changes of PyTorch's own modules
            expected = model(*inputs)
            program = torch.export.export(model, inputs, dynamic_shapes=dynamic_shapes, strict=False)
            edge = to_edge_transform_and_lower(
                program, partitioner=partitioner, compile_config=EdgeCompileConfig(_check_ir_validity=False)
            )
            content = edge.to_executorch().buffer
    finally:
        model.train(training)
    expected = [t for t in torch.utils._pytree.tree_leaves(expected) if isinstance(t, Tensor)]
    with AtomicFile(path) as file:
        file.write_bytes(content)
        results = load(file).execute(inputs)
        for number, (result, correct) in enumerate(zip(results, expected, strict=True)):
            if result.shape != correct.shape:
                raise ExecuTorchError(
                    f"{path.name}: output {number}: expected {list(correct.shape)}, got {list(result.shape)}"
                )
            is_integer = not (result.is_floating_point() or correct.is_floating_point())  # which floats may not hold
            if not (
                torch.equal(result.to(correct.dtype), correct)
                if is_integer
                else torch.allclose(result.double(), correct.double(), rtol, atol, equal_nan=True)
            ):
                difference = (result.double() - correct.double()).abs().max().item()
                raise ExecuTorchError(f"{path.name}: output {number} differs from PyTorch's by {difference:.3g}")
    return path


def load(path: str | Path) -> Method:
    """Returns the method `forward` of a file, whose `execute(inputs)` returns a list of tensors."""
    register()
    method = Runtime.get().load_program(Path(path)).load_method("forward")
    if method is None:
        raise ExecuTorchError(f"{Path(path).name}: expected a method 'forward'")
    return method
