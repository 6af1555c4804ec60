# SPDX-License-Identifier: Apache-2.0
"""torch.compile on the GPU: Triton's code around polyop's operators, and CUDA graphs of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

import polyop
from tests.support.on_gpu import expect_equal, to_gpu

RUNTIME = "compile"


def seeded(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(sum(shape)))


ROIS = torch.tensor([[0, 1.0, 2, 20, 30], [1, 3, 3, 40, 37], [1, 0, 0, 9, 11]])
FUNCTIONS: dict[str, tuple[Callable[..., Tensor], list[Tensor]]] = {
    "roi_align": (
        lambda x: polyop.roi_align(x.sin() * 2, ROIS.to(x.device), (5, 3), 0.5, 2).cos() + 1,
        [seeded(2, 7, 31, 33)],
    ),
    "modulated_deform_conv2d": (
        lambda x, offset, mask, weight: polyop.modulated_deform_conv2d(
            x.relu() + 0.5, offset * 3 - 1, mask.sigmoid(), weight, None, padding=(1, 1)
        ).tanh(),
        [seeded(2, 6, 13, 17), seeded(2, 18, 13, 17), seeded(2, 9, 13, 17), seeded(5, 6, 3, 3)],
    ),
    "grid_sample": (
        lambda x, grid: polyop.grid_sample(x * x, grid * 2 - 1).exp(),
        [seeded(2, 5, 13, 17), seeded(2, 9, 7, 2)],
    ),
}


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def gradients(function: Callable[..., Tensor], inputs: list[Tensor]) -> list[Tensor]:
    leaves = [t.detach().clone().requires_grad_() for t in inputs]
    output = function(*leaves)
    output.square().mean().backward()
    return [output.detach().clone(), *(leaf.grad.clone() for leaf in leaves)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions_equal_the_cpu(name: str) -> None:
    function, inputs = FUNCTIONS[name]
    compiled = torch.compile(function, fullgraph=True)
    expect_equal(gradients(compiled, to_gpu(inputs)), gradients(function, inputs), 1e-4)


def test_reduced_overhead() -> None:
    """The compiled function records CUDA graphs, which later calls replay with other inputs."""
    function, inputs = FUNCTIONS["roi_align"]
    compiled = torch.compile(function, fullgraph=True, mode="reduce-overhead")
    for factor in (1, 0.5, 0.25, 2):
        torch.compiler.cudagraph_mark_step_begin()
        variant = [t * factor for t in inputs]
        expect_equal(gradients(compiled, to_gpu(variant)), gradients(function, variant), 1e-4)


def test_a_size_that_depends_on_the_data() -> None:
    def keep(boxes: Tensor, scores: Tensor) -> Tensor:
        return boxes[polyop.nms(boxes, scores + 1, 0.5)] * 2

    corners = seeded(301, 2) * 40
    boxes, scores = torch.cat([corners, corners + seeded(301, 2).flip(0) * 9], 1), seeded(301)
    compiled = torch.compile(keep, fullgraph=True)
    expect_equal(compiled(boxes.cuda(), scores.cuda()), keep(boxes, scores), 1e-6)
