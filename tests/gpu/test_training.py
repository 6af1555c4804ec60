# SPDX-License-Identifier: Apache-2.0
"""Training steps of small models on the GPU, compared with the CPU, and automatic mixed precision."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import polyop
from polyop import sparse
from tests.support.gradient_cases import CASES, operator_of
from tests.support.on_gpu import expect_equal, to_gpu
from tests.support.torch_calls import as_tuple


def seeded(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


class Detector(nn.Module):
    """Convolutions, of which one is deformable, features of regions, and a head for boxes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1)
        self.offset = nn.Conv2d(16, 27, 3, 1, 1)
        self.weight = nn.Parameter(torch.randn(16, 16, 3, 3) / 12)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(16 * 25, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, images: Tensor, rois: Tensor) -> Tensor:
        x = self.stem(images).relu()
        offset, mask = self.offset(x).split([18, 9], 1)
        x = polyop.modulated_deform_conv2d(x, offset, mask.sigmoid(), self.weight, None, padding=(1, 1)).relu()
        return self.head(polyop.roi_align(x, rois, (5, 5), 0.5, 2))


class Transformer(nn.Module):
    """Deformable attention from queries to a pyramid of two levels."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shapes", torch.tensor([[11, 13], [5, 7]]))
        self.register_buffer("starts", torch.tensor([0, 11 * 13]))
        self.value, self.query = nn.Linear(12, 16), nn.Parameter(torch.randn(1, 9, 12))
        self.positions, self.weights = nn.Linear(12, 2 * 2 * 3 * 2), nn.Linear(12, 2 * 2 * 3)
        self.head = nn.Linear(16, 4)

    def forward(self, pyramid: Tensor) -> Tensor:
        n = len(pyramid)
        query = self.query.expand(n, -1, -1)
        value = self.value(pyramid).view(n, -1, 2, 8)
        positions = self.positions(query).view(n, 9, 2, 2, 3, 2).sigmoid()
        weights = self.weights(query).view(n, 9, 2, 6).softmax(-1).view(n, 9, 2, 2, 3)
        return self.head(polyop.ms_deform_attn(value, self.shapes, self.starts, positions, weights))


class Sampler(nn.Module):
    """Samples features at positions that depend on them, and upsamples the result with content-aware kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.features, self.flow = nn.Conv2d(3, 8, 3, 1, 1), nn.Conv2d(8, 2, 3, 1, 1)
        self.kernels, self.head = nn.Conv2d(8, 36, 3, 1, 1), nn.Conv2d(8, 1, 1)

    def forward(self, images: Tensor) -> Tensor:
        x = self.features(images).tanh()
        x = polyop.grid_sample(x, self.flow(x).permute(0, 2, 3, 1).tanh())
        masks = F.pixel_shuffle(self.kernels(x), 2).softmax(1)
        return self.head(polyop.carafe(x, masks, 3, 1, 2))


class Clouds(nn.Module):
    """Voxels of points, sparse convolutions, and a dense head."""

    def __init__(self) -> None:
        super().__init__()
        self.points = nn.Linear(4, 8)
        self.convolutions = sparse.SparseSequential(
            sparse.SubMConv3d(8, 8, 3, indice_key="a"), nn.ReLU(), sparse.SparseConv3d(8, 12, 3, 2, 1)
        )
        self.head = nn.Linear(12, 3)

    def forward(self, points: Tensor, cells: Tensor) -> Tensor:
        features, voxels, _, _ = polyop.dynamic_scatter(self.points(points).relu(), cells, "max")
        batch = torch.zeros_like(voxels[:, :1])
        x = sparse.SparseConvTensor(features, torch.cat([batch, voxels], 1).int(), (6, 8, 8), 1)
        return self.head(self.convolutions(x).dense().flatten(2).mean(2))


ROIS = torch.tensor([[0, 1.0, 2, 20, 30], [1, 3, 3, 40, 37], [1, 0, 0, 9, 11], [0, 11, 5, 45, 33]])
MODELS: dict[str, tuple[Callable[[], nn.Module], list[Tensor]]] = {
    "detector": (Detector, [seeded(2, 3, 43, 51), ROIS]),
    "transformer": (Transformer, [seeded(3, 11 * 13 + 5 * 7, 12)]),
    "sampler": (Sampler, [seeded(2, 3, 19, 23)]),
    "clouds": (Clouds, [seeded(301, 4), (seeded(301, 3, seed=1) * torch.tensor([6.0, 8, 8])).int()]),
}
STEPS = 8


def train(model: nn.Module, inputs: list[Tensor], target: Tensor, autocast: torch.dtype | None = None) -> list[Tensor]:
    """Returns the losses of steps of gradient descent, with the forward passes in mixed precision or not."""
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.5)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast(target.device.type, autocast, enabled=autocast is not None):
            output = model(*inputs)
        loss = F.mse_loss(output.float(), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


@pytest.fixture
def full_precision() -> Iterator[None]:
    """PyTorch's convolutions on a GPU round their inputs to TF32 by default."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def created(name: str) -> tuple[nn.Module, list[Tensor], Tensor]:
    """Returns a model, its inputs, and an output that it has to learn."""
    build, inputs = MODELS[name]
    torch.manual_seed(0)
    model = build()
    return model, inputs, seeded(*model(*inputs).shape, seed=2)


@pytest.mark.usefixtures("full_precision")
@pytest.mark.parametrize("name", MODELS)
def test_steps_equal_the_cpu(name: str) -> None:
    model, inputs, target = created(name)
    on_gpu = copy.deepcopy(model).cuda()
    expected = train(model, inputs, target)
    got = train(on_gpu, to_gpu(inputs), target.cuda())
    assert expected[-1] < 0.9 * expected[0]
    expect_equal(got, expected, 2e-3)
    expect_equal(list(on_gpu.state_dict().values()), list(model.state_dict().values()), 2e-3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_autocast(name: str, dtype: torch.dtype) -> None:
    """polyop's operators compute in float32 between layers in half precision."""
    model, inputs, target = created(name)
    on_gpu, reference = copy.deepcopy(model).cuda(), model(*inputs)
    with torch.autocast("cuda", dtype):
        output = on_gpu(*to_gpu(inputs))
    scale = float(reference.abs().max())
    assert float((output.detach().cpu().float() - reference.detach()).abs().max()) < 0.1 * scale + 0.02
    losses = train(on_gpu, to_gpu(inputs), target.cuda(), dtype)
    assert all(loss.isfinite() for loss in losses)
    assert losses[-1] < 0.95 * losses[0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["roi_align", "ms_deform_attn", "modulated_deform_conv2d", "grid_sampler"])
def test_operators_under_autocast_are_in_float32(name: str, dtype: torch.dtype) -> None:
    attributes, tensors = CASES[name]
    overload = getattr(torch.ops.polyop, operator_of(name))
    halves = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
    expected = as_tuple(overload(*[t.float() if t.is_floating_point() else t for t in halves], **attributes))
    with torch.autocast("cuda", dtype):
        got = as_tuple(overload(*to_gpu(halves), **attributes))
    expect_equal(got, expected)


def test_scaled_losses_in_half_precision() -> None:
    """GradScaler with parameters in float32 and a model under autocast."""
    model, inputs, target = created("detector")
    model.cuda()
    scaler, optimizer = torch.amp.GradScaler("cuda"), torch.optim.SGD(model.parameters(), 0.05)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = F.mse_loss(model(*to_gpu(inputs)).float(), target.cuda())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(float(loss))
    assert losses[-1] < 0.95 * losses[0]
