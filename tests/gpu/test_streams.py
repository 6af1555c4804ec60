# SPDX-License-Identifier: Apache-2.0
"""Streams, threads and several GPUs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import polyop
from tests.support.exported_nodes import Node
from tests.support.on_gpu import GPU_CALLS, expect_equal, to_gpu
from tests.support.torch_calls import as_tuple, call_of, name_of


@pytest.mark.parametrize("node", GPU_CALLS, ids=name_of)
def test_the_callers_stream(node: Node) -> None:
    operator, args, given = call_of(node)
    expected = as_tuple(operator.overload(*args, **given))
    stream = torch.cuda.Stream()
    on_gpu = to_gpu(args)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)  # work on another stream would run too early
        results = [as_tuple(operator.overload(*on_gpu, **given)) for _ in range(3)]
    stream.synchronize()
    for got in results:
        expect_equal(got, expected)


def test_inputs_that_the_stream_still_computes() -> None:
    """A kernel on another stream would read the zeros that are there before."""
    x, rois = torch.rand(2, 8, 61, 83), torch.tensor([[0, 1.0, 2, 40, 50], [1, 3, 3, 70, 60]])
    expected = polyop.roi_align(x, rois, (7, 7), 1.0, 2)
    values, static, boxes = x.cuda(), torch.zeros_like(x).cuda(), rois.cuda()
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        torch.cuda._sleep(100_000_000)
        static.copy_(values)
        got = polyop.roi_align(static, boxes, (7, 7), 1.0, 2)
        torch.cuda.current_stream().synchronize()
    expect_equal(got, expected)


def step(seed: int, device: str) -> list[torch.Tensor]:
    """Computes results and gradients of several operators of random data."""
    generator = torch.Generator().manual_seed(seed)

    def rand(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator).to(device)

    side = 20 + seed
    x = rand(2, 16, side, side + 3).requires_grad_()
    offset, mask = rand(2, 18, side, side + 3) * 4 - 2, rand(2, 9, side, side + 3)
    weight = rand(16, 16, 3, 3).requires_grad_()
    corners = rand(101, 2) * side
    boxes = torch.cat([corners, corners + rand(101, 2) * 9], 1)
    scores = rand(101)
    kept = torch.ops.polyop.nms(boxes, scores)
    y = polyop.modulated_deform_conv2d(x, offset, mask, weight, None, padding=(1, 1))
    pooled = polyop.roi_align(y, torch.cat([torch.zeros_like(scores[kept])[:, None], boxes[kept]], 1), (5, 3), 1.0, 2)
    pooled.square().mean().backward()
    return [kept, y.detach(), pooled.detach(), x.grad, weight.grad]


def test_streams_of_several_threads() -> None:
    """Each thread has its own stream, data and sizes."""
    seeds = range(8)
    expected = [step(seed, "cpu") for seed in seeds]

    def work(seed: int) -> list[list[torch.Tensor]]:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            results = [step(seed, "cuda") for _ in range(5)]
            stream.synchronize()
        return results

    with ThreadPoolExecutor(len(seeds)) as pool:
        for want, results in zip(expected, pool.map(work, seeds), strict=True):
            for got in results:
                expect_equal(got, want, 1e-3)


def test_streams_of_one_thread() -> None:
    """Calls on several streams overlap, so they share no scratch memory."""
    node = next(node for node in GPU_CALLS if node.name == "mmcv::MMCVModulatedDeformConv2d")
    operator, args, given = call_of(node)
    variants = [[None if a is None else a * (1 + i / 8) for a in args] for i in range(8)]
    expected = [operator.overload(*variant, **given) for variant in variants]
    on_gpu = [to_gpu(variant) for variant in variants]
    streams = [torch.cuda.Stream() for _ in variants]
    torch.cuda.synchronize()
    results = []
    for _ in range(5):
        for stream, variant in zip(streams, on_gpu, strict=True):
            with torch.cuda.stream(stream):
                results.append(operator.overload(*variant, **given))
    torch.cuda.synchronize()
    for i, got in enumerate(results):
        expect_equal(got, expected[i % len(expected)], 1e-4)


def test_the_device_of_the_tensors(not_run: Callable[[str], None]) -> None:
    """A call runs on the GPU of its tensors, whichever is the current one."""
    if torch.cuda.device_count() < 2:
        not_run("several GPUs: this machine has one")
        return
    assert torch.cuda.current_device() == 0
    for node in GPU_CALLS:
        operator, args, given = call_of(node)
        values = [None if t is None else t.to("cuda:1") for t in operator.flatten(args)]
        got = as_tuple(operator.overload(*operator.nest(values), **given))
        assert all(t.device == torch.device("cuda:1") for t in got), operator.name
        expect_equal(got, as_tuple(operator.overload(*args, **given)))
    assert torch.cuda.current_device() == 0
    x, rois = torch.rand(1, 2, 8, 8), torch.tensor([[0, 1.0, 1, 5, 5]])
    expected = "polyop::roi_align: 'rois': expected cuda:0, the device of the inputs before it, got cuda:1"
    with pytest.raises(RuntimeError, match=expected):
        polyop.roi_align(x.to("cuda:0"), rois.to("cuda:1"), (2, 2))
    leaf = x.to("cuda:1").requires_grad_()
    polyop.roi_align(leaf, rois.to("cuda:1"), (2, 2), 1.0, 2).sum().backward()
    reference = x.requires_grad_()
    polyop.roi_align(reference, rois, (2, 2), 1.0, 2).sum().backward()
    expect_equal(leaf.grad, reference.grad, 1e-4)
