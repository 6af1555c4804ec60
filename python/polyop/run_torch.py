"""Runs a saved torch program on saved inputs: what `polyop verify --reference torch=FILE` calls.

python -m polyop.run_torch PROGRAM INPUTS.npz OUTPUTS.npz INPUT_NAMES OUTPUT_NAMES

PROGRAM is a file of torch.export.save or torch.jit.save. The names are JSON lists: PROGRAM gets the inputs in this
order, and its outputs are written under the others.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import torch


def load(path: str) -> torch.nn.Module:
    """Either kind of file."""
    try:
        return torch.jit.load(path, map_location="cpu")
    except RuntimeError:
        return torch.export.load(path).module()


def main(program: str, inputs: str, outputs: str, input_names: str, output_names: str) -> None:
    names = json.loads(output_names)
    with np.load(inputs) as arrays, torch.inference_mode():
        result = load(program)(*(torch.from_numpy(arrays[name]) for name in json.loads(input_names)))
    tensors = [result] if isinstance(result, torch.Tensor) else list(result)
    if len(tensors) != len(names):
        raise SystemExit(f"{program} gives {len(tensors)} outputs, the model has {len(names)}")
    np.savez(outputs, **{name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)})


if __name__ == "__main__":
    main(*sys.argv[1:])
