# SPDX-License-Identifier: Apache-2.0
"""Runs a saved PyTorch program, for `polyop verify --against torch=FILE`.

The request has "program", a file of torch.export.save or torch.jit.save, the .npz files "inputs" and "outputs", and
"input_names" and "output_names". The program gets the inputs in the order of their names, and its outputs are written
under theirs. bridge.py documents the protocol.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polyop._commands.bridge import serve
from polyop._commands.errors import CommandError, ExitCode
from polyop._commands.models import check_file
from polyop.errors import one_line

if TYPE_CHECKING:
    import torch


def load(path: str) -> torch.nn.Module:
    """Loads a file of either kind."""
    import torch

    check_file(path)
    try:
        return torch.jit.load(path, map_location="cpu")
    except RuntimeError:
        pass
    try:
        return torch.export.load(path).module()
    except Exception as error:  # torch raises errors of many types
        raise CommandError(
            ExitCode.BAD_FILE,
            f"{path} is not a program that torch.export.save or torch.jit.save wrote: {one_line(error)}",
        ) from error


def run(request: dict[str, Any]) -> dict[str, Any]:
    import torch

    import polyop.functional  # noqa: F401  (registers polyop's operators)

    program, names = load(request["program"]), request["output_names"]
    with np.load(request["inputs"]) as arrays, torch.inference_mode():
        result = program(*(torch.from_numpy(arrays[name]) for name in request["input_names"]))
    tensors = [result] if isinstance(result, torch.Tensor) else list(result)
    if len(tensors) != len(names):
        file = Path(request["program"]).name
        raise CommandError(
            ExitCode.FAILED, f"{file}: expected {len(names)} outputs, as the model has, got {len(tensors)}"
        )
    saved: dict[str, Any] = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}
    np.savez(request["outputs"], **saved)
    return {}


if __name__ == "__main__":
    serve(run, "pip install torch")
