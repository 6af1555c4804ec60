# SPDX-License-Identifier: Apache-2.0
"""corr_sampler, alt_cuda_corr and correlation_package, compared with formulas in plain torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import polyop
from polyop.compat import alt_cuda_corr, corr_sampler, correlation_cuda
from polyop.compat.correlation_package import Correlation, CorrelationFunction

DOUBLE = torch.float64


def sampled(images: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """images [N, C, H, W] at pixels x and y [N, h, w]: bilinear, 0 outside; torch's own sampler."""
    height, width = images.shape[2:]
    grid = torch.stack([(2 * x + 1) / width - 1, (2 * y + 1) / height - 1], -1)
    return F.grid_sample(images, grid, align_corners=False)


def disparities(n: int, h: int, w: int, w2: int) -> Tensor:
    """Positions inside and outside, also exactly on pixels."""
    coords = torch.rand(n, 2, h, w) * (w2 + 6) - 3
    coords[:, :, 0] = coords[:, :, 0].round()
    return coords


# ---- RAFT-Stereo ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [0, 1, 4])
@pytest.mark.parametrize("channels", [1, 2])
def test_corr_sampler(radius: int, channels: int) -> None:
    torch.manual_seed(0)
    n, h, w, w2 = 2, 3, 5, 11
    volume = torch.randn(n, h, w, w2, dtype=DOUBLE, requires_grad=True)
    coords = disparities(n, h, w, w2)
    x = coords[:, 0].double().reshape(-1, 1, 1) + torch.arange(-radius, radius + 1)
    lines = sampled(volume.reshape(-1, 1, 1, w2), x, torch.zeros_like(x))
    expected = lines.reshape(n, h, w, -1).permute(0, 3, 1, 2)
    (result,) = corr_sampler.forward(volume.detach(), coords[:, :channels].double(), radius)
    torch.testing.assert_close(result, expected.detach())
    grad = torch.randn_like(expected)
    (of_formula,) = torch.autograd.grad(expected, volume, grad)
    (found,) = corr_sampler.backward(volume.detach(), coords[:, :channels].double(), grad, radius)
    torch.testing.assert_close(found, of_formula)


def test_corr_sampler_of_f16_and_far_positions() -> None:
    volume = torch.ones(1, 1, 4, 3, dtype=torch.float16)
    coords = torch.tensor([torch.nan, torch.inf, -1e30, 1]).view(1, 1, 1, 4)
    (result,) = corr_sampler.forward(volume, coords, 1)
    assert result.dtype == torch.float16
    assert result[0, :, 0].T.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 1, 1]]


# ---- RAFT ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "radius"), [((5, 6), 2), ((1, 3), 3), ((40, 50), 1)], ids=str)
@pytest.mark.parametrize("count", [1, 2])
def test_alt_cuda_corr(size: tuple[int, int], radius: int, count: int) -> None:
    """The third size is above the limit up to which all pairs are multiplied."""
    torch.manual_seed(0)
    b, h, w, c = 2, 4, 5, 8
    fmap1 = torch.randn(b, h, w, c, dtype=DOUBLE, requires_grad=True)
    fmap2 = torch.randn(b, *size, c, dtype=DOUBLE, requires_grad=True)
    coords = torch.rand(b, count, h, w, 2) * (torch.tensor(size).flip(0) + 4) - 2  # positions are f32 in the kernel
    coords[:, :, 0] = coords[:, :, 0].round()
    coords = coords.double()
    steps = torch.arange(-radius, radius + 1)
    rows = []
    for dx in steps:
        for dy in steps:
            at = [
                sampled(fmap2.permute(0, 3, 1, 2), coords[:, i, ..., 0] + dx, coords[:, i, ..., 1] + dy)
                for i in range(count)
            ]
            rows.append((torch.stack(at, 1) * fmap1.permute(0, 3, 1, 2)[:, None]).sum(2))
    expected = torch.stack(rows, 2)
    (result,) = alt_cuda_corr.forward(fmap1.detach(), fmap2.detach(), coords, radius)
    torch.testing.assert_close(result, expected.detach())
    grad = torch.randn_like(expected)
    of_formula = torch.autograd.grad(expected, (fmap1, fmap2), grad)
    found = alt_cuda_corr.backward(fmap1.detach(), fmap2.detach(), coords, grad, radius)
    torch.testing.assert_close(found[:2], of_formula)
    assert found[2].shape == coords.shape


def test_parts_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    fmap1, fmap2, coords = torch.randn(2, 4, 5, 8), torch.randn(2, 5, 6, 8), torch.rand(2, 1, 4, 5, 2) * 6
    expected = alt_cuda_corr.forward(fmap1, fmap2, coords, 2)
    grads = alt_cuda_corr.backward(fmap1, fmap2, coords, torch.ones_like(expected[0]), 2)
    monkeypatch.setattr(alt_cuda_corr, "_MAX_PRODUCTS", 200)
    torch.testing.assert_close(alt_cuda_corr.forward(fmap1, fmap2, coords, 2), expected)
    torch.testing.assert_close(
        alt_cuda_corr.backward(fmap1, fmap2, coords, torch.ones_like(expected[0]), 2), grads, rtol=1e-4, atol=1e-5
    )


# ---- FlowNet2 ------------------------------------------------------------------------------------------


def flownet_correlation(a: Tensor, b: Tensor, pad: int, kernel: int, most: int, stride1: int, stride2: int) -> Tensor:
    """Window by window, with zeros beyond the images."""
    border, reach = (kernel - 1) // 2, most // stride2
    room = pad + border + most
    a, b = (F.pad(t, [room] * 4) for t in (a, b))
    extra = room - pad  # zeros beyond the padding
    sizes = [-(-(n - 2 * extra - 2 * (border + most)) // stride1) for n in a.shape[2:]]
    displaced = []
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            rows = []
            for i in range(sizes[0]):
                for j in range(sizes[1]):
                    y, x = extra + most + i * stride1 - border, extra + most + j * stride1 - border
                    size = 2 * border + 1
                    first = a[:, :, y : y + size, x : x + size]
                    y, x = y + dy * stride2, x + dx * stride2
                    rows.append((first * b[:, :, y : y + size, x : x + size]).sum((1, 2, 3)))
            displaced.append(torch.stack(rows, 1).view(-1, *sizes))
    return torch.stack(displaced, 1) / (kernel * kernel * a.shape[1])


@pytest.mark.parametrize(
    "arguments",
    [(3, 1, 3, 1, 1), (4, 3, 4, 2, 2), (0, 1, 2, 1, 2), (1, 3, 3, 2, 1), (1, 1, 4, 2, 2), (6, 3, 2, 1, 1)],
    ids=str,
)
def test_correlation(arguments: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    a, b = (torch.randn(2, 3, 9, 11, requires_grad=True) for _ in range(2))
    expected = flownet_correlation(a.double(), b.double(), *arguments)
    result = Correlation(*arguments)(a, b)
    torch.testing.assert_close(result.double(), expected, rtol=1e-4, atol=1e-5)
    assert torch.equal(CorrelationFunction.apply(a, b, *arguments), result)
    output = a.new_empty(0)
    none = a.new_empty(0)
    assert correlation_cuda.forward(a, b, none, none, output, *arguments, 1) == 1
    assert torch.equal(output, result)
    grad = torch.randn_like(result)
    of_formula = torch.autograd.grad(expected, (a, b), grad.double())
    torch.testing.assert_close(torch.autograd.grad(result, (a, b), grad), of_formula, rtol=1e-4, atol=1e-4)
    grads = [a.new_empty(0), a.new_empty(0)]
    assert correlation_cuda.backward(a, b, none, none, grad, *grads, *arguments, 1) == 1
    torch.testing.assert_close(tuple(grads), of_formula, rtol=1e-4, atol=1e-4)


# ---- export and errors ---------------------------------------------------------------------------------


class Lookup(nn.Module):
    def __init__(self, function: Callable[..., tuple[Tensor, ...]], radius: int) -> None:
        super().__init__()
        self.function, self.radius = function, radius

    def forward(self, *tensors: Tensor) -> Tensor:
        return self.function(*tensors, self.radius)[0]


CASES = {
    "corr_sampler": (Lookup(corr_sampler.forward, 2), (torch.randn(1, 4, 5, 9), torch.rand(1, 1, 4, 5) * 9)),
    "alt_cuda_corr": (
        Lookup(alt_cuda_corr.forward, 1),
        (torch.randn(1, 4, 5, 3), torch.randn(1, 4, 5, 3), torch.rand(1, 1, 4, 5, 2) * 5),
    ),
    "correlation": (Correlation(3, 1, 3, 1, 1), (torch.randn(1, 3, 6, 7), torch.randn(1, 3, 6, 7))),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_export(name: str, exporter: str, tmp_path: Path) -> None:
    net, inputs = CASES[name]
    file = tmp_path / "net.onnx"
    done = polyop.export(net.eval(), inputs, file, exporter=exporter, verbose=False)
    assert done.nodes["polyop::Correlation" if name == "correlation" else "polyop::CorrelationLookup"] == 1
    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    feeds = {given.name: x.numpy() for given, x in zip(session.get_inputs(), inputs, strict=True)}
    np.testing.assert_allclose(session.run(None, feeds)[0], net(*inputs).numpy(), rtol=1e-4, atol=1e-5)


def test_errors() -> None:
    volume, coords = torch.rand(1, 3, 4, 5), torch.rand(1, 1, 3, 4)
    with pytest.raises(ValueError, match=r"corr_sampler.forward: coords: expected shape \[1, 1 or 2, 3, 4\], got"):
        corr_sampler.forward(volume, coords[:, :, :2], 1)
    with pytest.raises(ValueError, match=r"corr_sampler.backward: volume: expected shape \[N, H, W, W2\], got"):
        corr_sampler.backward(volume[0], coords, coords, 1)
    with pytest.raises(ValueError, match=r"alt_cuda_corr.forward: fmap2: expected shape \[1, H2, W2, 5\], got"):
        alt_cuda_corr.forward(volume, volume[..., :2], coords, 1)
    with pytest.raises(ValueError, match=r"alt_cuda_corr.forward: coords: expected shape \[1, N, 3, 4, 2\], got"):
        alt_cuda_corr.forward(volume, volume, coords, 1)
    with pytest.raises(ValueError, match=r"correlation: expected kernel_size, .*, got"):
        Correlation(3, 0, 3)(volume, volume)
    with pytest.raises(ValueError, match="correlation: expected larger images"):
        Correlation(0, 1, 3)(volume, volume)
