# SPDX-License-Identifier: Apache-2.0
"""Exports an operator of another library as polyop's node: torch_cluster::grid -> custom::torch_cluster_grid.

Uses torch_cluster if it is installed. Otherwise registers the same operator under its name, in plain PyTorch.

python examples/torch_cluster/main.py [FOLDER]     writes the models into FOLDER
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.onnx import symbolic_helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runtimes import BOTH, RUNTIMES

SCHEMA = "(Tensor pos, Tensor size, Tensor? optional_start, Tensor? optional_end) -> Tensor"


def grid_in_torch(pos: Tensor, size: Tensor, start: Tensor | None, end: Tensor | None) -> Tensor:
    """torch_cluster's grid_cluster: the first axis varies fastest in the numbers of cells."""
    start = pos.amin(0) if start is None else start
    end = pos.amax(0) if end is None else end
    cells = ((end - start) / size).long() + 1
    strides = torch.cat([cells.new_ones(1), cells.cumprod(0)[:-1]])
    return (((pos - start) / size).long() * strides).sum(1)


def provide_torch_cluster() -> str:
    """Registers torch.ops.torch_cluster.grid and returns its origin."""
    found = importlib.util.find_spec("torch_cluster")
    if found is not None and found.origin is not None:  # not this folder of the same name
        importlib.import_module("torch_cluster")
        return "torch_cluster's own"
    torch.library.define("torch_cluster::grid", SCHEMA)
    torch.library.impl("torch_cluster::grid", "cpu", grid_in_torch)
    return "a replacement in plain PyTorch (torch_cluster is not installed)"


def grid_symbolic(g: Any, pos: Any, size: Any, start: Any, end: Any) -> Any:
    """Omits optional inputs at the end. One before them is an empty name."""
    inputs = [pos, size, start, end]
    while symbolic_helper._is_none(inputs[-1]):
        inputs.pop()
    return g.op("custom::torch_cluster_grid", *inputs)


class Voxels(nn.Module):
    def __init__(self, with_end: bool) -> None:
        super().__init__()
        self.with_end = with_end

    def forward(self, pos: Tensor, size: Tensor, start: Tensor, end: Tensor) -> Tensor:
        return torch.ops.torch_cluster.grid(pos, size, start, end if self.with_end else None)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    print(f"torch_cluster::grid is {provide_torch_cluster()}")
    torch.onnx.register_custom_op_symbolic("torch_cluster::grid", grid_symbolic, 9)
    generator = torch.Generator().manual_seed(0)
    pos = torch.rand(2000, 3, generator=generator) * 10
    inputs = {"pos": pos, "size": torch.tensor([0.5, 1.0, 2.5]), "start": torch.zeros(3), "end": torch.full((3,), 10.0)}
    for with_end in (True, False):
        path = folder / f"voxels_{'with' if with_end else 'without'}_end.onnx"
        torch.onnx.export(
            Voxels(with_end).eval(), tuple(inputs.values()), path, dynamo=False, custom_opsets={"custom": 1},
            input_names=list(inputs), dynamic_axes={"pos": {0: "points"}},
        )  # fmt: skip
        (node,) = (n for n in onnx.load(path).graph.node if n.domain == "custom")
        for load in RUNTIMES.values():
            model = load(path)
            for points in (2000, 7):
                fed = {**inputs, "pos": pos[:points]}
                (got,) = model({name: fed[name].numpy() for name in node.input})
                np.testing.assert_array_equal(got, Voxels(with_end)(*fed.values()).numpy())
        print(f"{node.domain}::{node.op_type}({', '.join(node.input)}) equals PyTorch in {BOTH}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
