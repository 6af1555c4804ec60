# SPDX-License-Identifier: Apache-2.0
"""Says which line of a user's code calls an operator without an ONNX form, and what to write instead."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Sequence

import torch

from polyop._aten.guards import Guard, causes, line_of

# What to write instead, by the operator's name without namespace and overload.
_INSTEAD = {
    "_to_sparse": "a dense tensor: ONNX Runtime has no kernels for sparse ones",
    "resize": "torch.Tensor.reshape, or torch.zeros and slices",
}
# Composite operators of other values, and sparse tensors: a kernel of the user's own does not help.
_NO_KERNEL = frozenset(("_local_scalar_dense", "_to_sparse", "equal", "is_nonzero", "item"))
# Errors of the capture about values that are unknown before a program runs.
_OF_VALUES = frozenset(("GuardOnDataDependentSymNode", "DataDependentOutputException", "DynamicOutputShapeException"))
_SPARSE = re.compile(r"compressed tensor|\bsparse", re.IGNORECASE)
_NUMPY = ".numpy() is not supported for tensor subclasses"
_NUMBER = re.compile(
    r"unhashable type: non-nested SymInt|Cannot call \w+\(\) on tensor with symbolic sizes"
    r"|indices must be integers or slices, not Sym|unsupported operand type\(s\) for .*'Sym"
)
_CONSTANT = re.compile(r"^\(?L\['(\w+)'\]\S*\.size\(\)\[(\d+)\]\)? == (\d+)$")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def _called_at(error: BaseException) -> str:
    """Returns the line of the program where an error was raised."""
    frames = traceback.walk_tb(error.__traceback__)
    return line_of([(frame.f_code.co_filename, str(line)) for frame, line in frames])


def _of_values(error: BaseException) -> BaseException | None:
    return next((c for c in causes(error) if type(c).__name__ in _OF_VALUES or _NUMPY in str(c)), None)


def depends_on_values(error: BaseException) -> bool:
    """Says whether a capture stopped because the Python program depends on values of tensors. A function of TorchScript
    may depend on them: its branches are part of a program."""
    cause = _of_values(error)
    if cause is None:
        return False
    scripted = {function.__code__ for function in torch.jit._state._jit_caching_layer if hasattr(function, "__code__")}
    frames = [frame for frame, _ in traceback.walk_tb(cause.__traceback__)]
    return not any(
        frame.f_code in scripted or isinstance(frame.f_locals.get("self"), torch.jit.ScriptModule) for frame in frames
    )


def needs_numbers(error: BaseException, guards: Sequence[Guard]) -> bool:
    """Says whether a capture stopped after the program made a number of a dynamic size, or at a size as the key of a
    dictionary or set, the index of a list, or an operand of what only numbers have, such as `&` and Tensor.nbytes."""
    return any(guard.is_number and guard.line for guard in guards) or any(_NUMBER.search(str(c)) for c in causes(error))


def advise_on_capture(error: BaseException) -> Iterator[str]:
    """Yields what to tell a user about a program whose capture stopped: it depends on values of tensors, or has sparse
    ones."""
    if sparse := next((c for c in causes(error) if _SPARSE.search(str(c)) and _called_at(c)), None):
        yield f"the program has a sparse tensor, at {_called_at(sparse)}"
        yield f"write instead: {_INSTEAD['_to_sparse']}"
        return
    cause = _of_values(error)
    if cause is None:
        return
    line = _called_at(cause)
    what = "an array of NumPy" if _NUMPY in str(cause) else "a size or a Python condition"
    yield f"{what} depends on values of a tensor" + (f", at {line}" if line else "")
    yield "write instead: torch.where for `if`; a fixed number for a size; or torch._check, which says what is known of it"
    yield "for a loop that ends early, such as a decoder's: a fixed number of steps, or a file of one step"
    yield "a kernel of your own helps only if it has the whole computation, with outputs of sizes that are known"


def advise_on_sizes(guards: Sequence[Guard]) -> Iterator[str]:
    """Yields what to tell a user about a program whose capture stopped, because a dynamic size would be constant."""
    for guard in guards:
        match = _CONSTANT.match(guard.condition)
        if match and guard.line:
            parameter, axis, size = match.groups()
            yield f"the program needs dimension {axis} of '{parameter}' to be {size}, the example's, at {guard.line}"
            yield "write instead: operations on whole tensors, such as cumsum or unfold, for a loop; torch.cond for `if`"


def advise(operator: str, stack_trace: str) -> Iterator[str]:
    """Yields what to tell a user about an operator without an ONNX form, such as aten::_to_sparse."""
    line = line_of(_FRAME.findall(stack_trace))
    yield f"{operator} has no ONNX form" + (f", called at {line}" if line else "")
    name = operator.partition("::")[2].partition(".")[0]
    if name in _INSTEAD:
        yield f"write instead: {_INSTEAD[name]}"
    if name not in _NO_KERNEL:
        short = name.strip("_")
        prefix = "or " if name in _INSTEAD else ""
        yield f"{prefix}write a kernel for it: `polyop new {short}`, and call torch.ops.<package>.{short}"
