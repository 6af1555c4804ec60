# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs of every operator and of every gradient kernel.

A graph is recorded with zeros and replayed with the values of the test.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from polyop._arrays.calls import operators
from polyop._torch.operators import OPERATORS
from tests.support.exported_nodes import Node
from tests.support.gradient_cases import CASES, call, differentiable, operator_of
from tests.support.on_gpu import CPU_ONLY, FIND_SIZES, GPU_CALLS, expect_equal, finds_a_size, with_sizes_on_the_host
from tests.support.processes import environment
from tests.support.torch_calls import as_tuple, call_of, name_of

RECORDED = [node for node in GPU_CALLS if not finds_a_size(*call_of(node))]
# Only formulas compute the other gradients.
KERNELS = [
    name for name in CASES if OPERATORS[operator_of(name)].gradient is not None and operator_of(name) not in FIND_SIZES
]


def test_which_operators_cannot_be_recorded() -> None:
    """The host must read the size of their outputs. Some of them only need that in some calls."""
    finding = {name for name, record in operators().items() if any(any(sizes) for sizes in record["found_sizes"])}
    assert finding - CPU_ONLY == FIND_SIZES


def record(function: Callable[[], Any]) -> tuple[torch.cuda.CUDAGraph, Any]:
    """Records the function, after a first call on another stream. Returns the graph and the function's result."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()
    return graph, result


def expect_replays(
    function: Callable[[], Any],
    static: Sequence[torch.Tensor | None],
    values: Sequence[torch.Tensor | None],
    expected: Any,
    tolerance: float | None = None,
) -> None:
    pairs = [(t, v) for t, v in zip(static, values, strict=True) if t is not None and v is not None and t.is_cuda]
    assert pairs
    with torch.no_grad():
        for tensor, _ in pairs:
            tensor.zero_()
    graph, result = record(function)
    with torch.no_grad():
        for tensor, value in pairs:
            tensor.copy_(value)
    for _ in range(2):  # the second time with scratch memory that has been used
        for tensor in as_tuple(result):
            tensor.fill_(1)
        graph.replay()
        torch.cuda.synchronize()
        expect_equal(as_tuple(result), as_tuple(expected), tolerance)


@pytest.mark.parametrize("node", RECORDED, ids=name_of)
def test_forward(node: Node) -> None:
    operator, args, attributes = call_of(node)
    values = operator.flatten(args)
    static = with_sizes_on_the_host(operator, values)
    nested = operator.nest(static)
    expected = as_tuple(operator.overload(*args, **attributes))
    expect_replays(lambda: operator.overload(*nested, **attributes), static, values, expected)


@pytest.mark.parametrize("name", KERNELS)
def test_backward(name: str) -> None:
    operator = OPERATORS[operator_of(name)]
    values = CASES[name][1]
    static = with_sizes_on_the_host(operator, values)

    def gradients(tensors: Sequence[Any], grads: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        leaves = [
            tensors[i].detach().requires_grad_() if i in differentiable(name) else t for i, t in enumerate(tensors)
        ]
        pairs = [(o, g) for o, g in zip(as_tuple(call(name, leaves)), grads, strict=True) if o.requires_grad]
        chosen = [leaves[i] for i in differentiable(name)]
        return list(torch.autograd.grad([o for o, _ in pairs], chosen, [g for _, g in pairs]))

    grads = [torch.rand(o.shape) if o.is_floating_point() else o for o in as_tuple(call(name, values))]
    expected = gradients(values, grads)
    static_grads = [g.clone().cuda() for g in grads]
    expect_replays(lambda: gradients(static, static_grads), [*static, *static_grads], [*values, *grads], expected, 1e-4)


REFUSED = """
import torch
import polyop

boxes = torch.tensor([[0, 0, 4, 4], [0, 0, 4, 3], [9, 9, 12, 12.0]]).cuda()
scores = torch.tensor([0.2, 0.3, 0.1]).cuda()
torch.ops.polyop.nms(boxes, scores)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
try:
    with torch.cuda.graph(graph):
        torch.ops.polyop.nms(boxes, scores)
except RuntimeError as error:
    while error is not None:
        print("error:", error)
        error = error.__context__
"""


def test_a_recording_that_must_read_a_size_is_an_error() -> None:
    """In another process: PyTorch's allocator may not recover from a recording that failed."""
    done = subprocess.run(
        [sys.executable, "-c", REFUSED], capture_output=True, text=True, timeout=300, check=False, env=environment()
    )
    assert done.returncode == 0, done.stderr
    assert "error: polyop::nms: CUDA: " in done.stdout
