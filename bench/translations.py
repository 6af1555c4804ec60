#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times translations of PyTorch's operators in ONNX Runtime against PyTorch, and prints a table of Markdown.

Without polyop, PyTorch's exporter writes these operators as loops of nodes, or as many small nodes. Both run on one
thread, interleaved; a time is the least of the rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import onnxruntime as ort
import torch
from timing import interleaved
from torch import Tensor, nn
from torch.nn import functional as F

import polyop


class _Call(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Any:
        return self.function(*args)


_generator = torch.Generator().manual_seed(0)
_x = torch.randn(2000, 64, generator=_generator)
_ids = torch.randint(0, 2000, (10000,), generator=_generator)
CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "`repeat_interleave` of 2,000 rows, 0 to 4 times": (
        lambda x, n: torch.repeat_interleave(x, n, 0),
        (_x, torch.randint(0, 5, (2000,), generator=_generator)),
    ),
    "`embedding_bag`, sums of 500 bags of 20": (
        lambda ids, at, w: F.embedding_bag(ids, w, at, mode="sum"), (_ids, torch.arange(0, 10000, 20), _x)),
    "`embedding_bag`, means of 500 bags of 20": (
        lambda ids, at, w: F.embedding_bag(ids, w, at, mode="mean"), (_ids, torch.arange(0, 10000, 20), _x)),
    "`affine_grid` of 4 x 256 x 256": (
        lambda a: F.affine_grid(a, [4, 3, 256, 256], align_corners=False), (torch.randn(4, 2, 3, generator=_generator),)),
}  # fmt: skip


def measure(name: str, rounds: int) -> tuple[float, float]:
    """Returns the milliseconds in PyTorch and in ONNX Runtime."""
    call, args = CASES[name]
    with torch.no_grad(), polyop.translations():
        program = torch.onnx.export(_Call(call), args, dynamo=True, verbose=False)
    assert program is not None
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    session = ort.InferenceSession(program.model_proto.SerializeToString(), options)
    feeds = {i.name: a.numpy() for i, a in zip(session.get_inputs(), args, strict=True)}
    with torch.no_grad():
        runs = {"PyTorch": lambda: call(*args), "ONNX Runtime": lambda: session.run(None, feeds)}
        eager, exported = (min(times) for times in interleaved(runs, 0, rounds, rounds).values())
    return eager, exported


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    print("| Call, float32, one thread | PyTorch | ONNX Runtime | Ratio |")
    print("|---|---|---|---|")
    for name in CASES:
        eager, exported = measure(name, rounds)
        print(f"| {name} | {eager:.2f} ms | {exported:.2f} ms | {exported / eager:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
