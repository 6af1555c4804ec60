"""Says which line of a user's code calls an operator without an ONNX form, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What to write instead, by the operator's name without namespace and overload.
_INSTEAD = {
    "_linalg_svd": "compute the decomposition outside of the model, and pass its factors as inputs or buffers",
    "_linalg_eigh": "compute the decomposition outside of the model, and pass its factors as inputs or buffers",
    "linalg_eig": "compute the decomposition outside of the model, and pass its factors as inputs or buffers",
    "linalg_qr": "compute the decomposition outside of the model, and pass its factors as inputs or buffers",
    "linalg_cholesky_ex": "compute the factor outside of the model, and pass it as an input or a buffer",
    "linalg_lu_factor_ex": "torch.linalg.inv or torch.linalg.solve, which polyop exports",
    "linalg_pinv": "torch.linalg.inv(a.mT @ a) @ a.mT for a matrix of full column rank",
    "_ctc_loss": "compute the loss outside of the exported model: it takes targets, which a deployed model lacks",
    "resize": "torch.Tensor.reshape, or torch.zeros and slices",
    "uniform": "torch.rand_like(x) * (high - low) + low",
}
# Composite operators of other values: a kernel of the user's own does not help.
_NO_KERNEL = frozenset(("_local_scalar_dense", "equal", "is_nonzero", "item"))
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def _line(stack_trace: str) -> str:
    """Returns the last line of a stack trace outside of PyTorch, as file:line; empty if there is none."""
    frames = [(file, line) for file, line in _FRAME.findall(stack_trace) if "/torch/" not in file]
    return f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""


def advise(operator: str, stack_trace: str) -> Iterator[str]:
    """Yields what to tell a user about an operator without an ONNX form, such as aten::linalg_qr."""
    line = _line(stack_trace)
    yield f"{operator} has no ONNX form" + (f", called at {line}" if line else "")
    name = operator.partition("::")[2].partition(".")[0]
    if name in _INSTEAD:
        yield f"write instead: {_INSTEAD[name]}"
    if name not in _NO_KERNEL:
        yield f"or write a kernel for it: `polyop new {name.strip('_')}`, and call torch.ops.<package>.{name.strip('_')}"
