# SPDX-License-Identifier: Apache-2.0
"""DCNv3 and DCNv4, compared with loops over the samples."""

from __future__ import annotations

import importlib.metadata
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import Tensor

import polyop.compat
from polyop.compat import dcnv3, dcnv4
from polyop.compat.dcnv4 import ext
from tests.support.processes import environment, run

WINDOW = (3, 3, 2, 1, 1, 1, 1, 1)  # kernel, stride, padding, dilation; height before width


def sample(image: Tensor, y: float, x: float) -> Tensor:
    """The bilinear sample of an image [H, W, D], 0 outside."""
    top, left = math.floor(y), math.floor(x)
    result = image.new_zeros(image.shape[2])
    for row, column in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
        if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
            result = result + image[row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return result


def formula(input: Tensor, offset: Tensor, mask: Tensor, groups: int, scale: float, remove_center: bool) -> Tensor:
    """input [N, H, W, G * D], offset [N, oh, ow, G, P, 2], mask [N, oh, ow, G, P]."""
    points = [(i, j) for i in range(3) for j in range(3) if not (remove_center and i == j == 1)]
    images = input.unflatten(3, (groups, -1))
    rows = []
    for n in range(len(input)):
        for oy in range(offset.shape[1]):
            for ox in range(offset.shape[2]):
                for g in range(groups):
                    total = images.new_zeros(images.shape[4])
                    for p, (i, j) in enumerate(points):
                        dx, dy = offset[n, oy, ox, g, p].tolist()
                        y, x = oy * 2 + (j - 1 + dy) * scale, ox + (i - 1 + dx) * scale
                        total = total + sample(images[n, :, :, g], y, x) * mask[n, oy, ox, g, p]
                    rows.append(total)
    return torch.stack(rows).view(*offset.shape[:3], input.shape[3])


def inputs(remove_center: bool, kind: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    points = 9 - remove_center
    return (
        torch.randn(2, 5, 4, 8, dtype=kind),
        torch.randn(2, 3, 4, 2 * points * 2, dtype=kind),
        torch.rand(2, 3, 4, 2 * points, dtype=kind),
    )


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("remove_center", [False, True])
def test_dcnv3(remove_center: bool, kind: torch.dtype) -> None:
    input, offset, mask = inputs(remove_center, kind)
    rest = (2, 4, 1.5, 256, int(remove_center))
    found = dcnv3.dcnv3_forward(input, offset, mask, *WINDOW, *rest)
    points = 9 - remove_center
    expected = formula(
        input, offset.unflatten(3, (2, points, 2)), mask.unflatten(3, (2, points)), 2, 1.5, remove_center
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    grad = torch.randn_like(found)
    of_input, of_offset, of_mask = dcnv3.dcnv3_backward(
        input, offset, mask, *WINDOW, 2, 4, 1.5, grad, 256, int(remove_center)
    )
    assert of_input is not None and of_offset is not None and of_mask is not None  # noqa: PT018
    moved = [input.double(), offset.double(), mask.double()]
    for i, gradient in enumerate((of_input, of_offset, of_mask)):  # one directional derivative of each
        direction = torch.randn_like(moved[i])
        ends = []
        for sign in (1, -1):
            at = [t + sign * 1e-5 * direction if k == i else t for k, t in enumerate(moved)]
            ends.append(dcnv3.dcnv3_forward(*at, *WINDOW, *rest))
        slope = ((ends[0] - ends[1]) / 2e-5 * grad.double()).sum()
        torch.testing.assert_close((gradient.double() * direction).sum(), slope, rtol=2e-3, atol=2e-3)


def test_dcnv4() -> None:
    input, offset, mask = inputs(False)
    rows = torch.cat([offset.unflatten(3, (2, 18)), mask.unflatten(3, (2, 9))], 4).flatten(3)
    rows = torch.nn.functional.pad(rows, (0, 2)).requires_grad_()  # to a multiple of 8
    expected = dcnv3.dcnv3_forward(input, offset, mask, *WINDOW, 2, 4, 1.5, 256)
    found = dcnv4.DCNv4Function.apply(input, rows, *WINDOW, 2, 4, 1.5, 256, False)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(ext.dcnv4_forward(input, rows, *WINDOW, 2, 4, 1.5, 256, 0, 8, 64, False), expected)
    grad = torch.randn_like(found)
    of_rows = ext.dcnv4_backward(input, rows.detach(), *WINDOW, 2, 4, 1.5, 256, grad, 0, 8, 64, False)[1]
    torch.testing.assert_close(of_rows, torch.autograd.grad(found, rows, grad)[0])


@pytest.mark.parametrize(
    "options", [{}, {"dw_kernel_size": 3, "center_feature_scale": True}, {"without_pointwise": True}]
)
def test_the_layer_of_dcnv4(options: dict[str, int]) -> None:
    torch.manual_seed(0)
    layer = dcnv4.DCNv4(32, group=2, **options)
    torch.nn.init.normal_(layer.offset_mask.weight, std=0.2)
    x = torch.randn(2, 20, 32)
    y = layer(x, (4, 5))
    values = x if layer.without_pointwise else layer.value_proj(x)
    features = x.unflatten(1, (4, 5))
    if layer.dw_kernel_size:
        features = layer.offset_mask_dw(features.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    rows = layer.offset_mask(features)[..., :54].unflatten(3, (2, 27))
    expected = dcnv3.dcnv3_forward(
        values.unflatten(1, (4, 5)), rows[..., :18].flatten(3), rows[..., 18:].flatten(3), 3, 3, 1, 1, 1, 1, 1, 1, 2, 16,
        1.0, 256,
    )  # fmt: skip
    if layer.center_feature_scale:
        scale = (expected @ layer.center_feature_scale_proj_weight.mT).sigmoid().repeat_interleave(16, -1)
        expected = expected * (1 - scale) + values.unflatten(1, (4, 5)) * scale
    expected = expected.flatten(1, 2)
    torch.testing.assert_close(y, expected if layer.without_pointwise else layer.output_proj(expected))
    with pytest.raises(ValueError, match="DCNv4: input: expected 4 \\* 4 tokens, got 20"):
        layer(x)


def test_attention_of_dcnv4() -> None:
    torch.manual_seed(0)
    layer = dcnv4.FlashDeformAttn(32, n_levels=2, n_heads=2, n_points=3)
    torch.nn.init.normal_(layer.attention_weights.weight)
    shapes, starts = torch.tensor([[4, 5], [2, 3]]), torch.tensor([0, 20])
    query, points, tokens = torch.randn(1, 3, 32), torch.rand(1, 3, 2, 2), torch.randn(1, 26, 32)
    found = layer(query, points, tokens, shapes, starts)
    values = layer.value_proj(tokens)[0].unflatten(1, (2, 16))
    offsets = layer.sampling_offsets(query)[0].unflatten(1, (2, 2, 3, 2))
    weights = layer.attention_weights(query)[0].unflatten(1, (2, 6)).softmax(2).unflatten(2, (2, 3))
    expected = torch.zeros(3, 2, 16)
    for q in range(3):
        for head in range(2):
            for level, (height, width) in enumerate(shapes.tolist()):
                plane = values[starts[level] :][: height * width, head].view(height, width, 16)
                for p in range(3):
                    x, y = (points[0, q, level] * torch.tensor([width, height]) + offsets[q, head, level, p]).tolist()
                    expected[q, head] += sample(plane, y - 0.5, x - 0.5) * weights[q, head, level, p]
    torch.testing.assert_close(found[0], layer.output_proj(expected.flatten(1)), rtol=1e-4, atol=1e-5)
    boxes = torch.cat([points, torch.rand(1, 3, 2, 2)], -1)
    assert layer(query, boxes, tokens, shapes, starts, torch.zeros(1, 26, dtype=torch.bool)).shape == found.shape


@pytest.fixture
def without_them(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("DCNv3", "DCNv4", "DCNv4.ext", "DCNv4.functions", "DCNv4.modules"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in ("DCNv3", "DCNv4")]:
        del sys.modules[name]


def test_versions(without_them: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """InternImage passes remove_center only if pkg_resources knows a version above 1.0."""
    resources = ModuleType("pkg_resources")
    known: dict[str, SimpleNamespace] = {}
    resources.working_set = SimpleNamespace(by_key=known, add=lambda d: known.update({d.project_name.lower(): d}))
    resources.Distribution = SimpleNamespace
    monkeypatch.setitem(sys.modules, "pkg_resources", resources)
    assert polyop.compat.install("DCNv3", "DCNv4") == ["DCNv3", "DCNv4"]
    assert known["dcnv3"].version == importlib.metadata.version("DCNv3") == "1.1"
    assert importlib.metadata.version("torch") == torch.__version__
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("a-package-that-nobody-has")
    from DCNv4.functions import DCNv4Function

    assert DCNv4Function is dcnv4.DCNv4Function


def test_pkg_resources_that_is_imported_later(tmp_path: Path) -> None:
    (tmp_path / "pkg_resources.py").write_text(
        "class Distribution:\n  def __init__(self, **a): self.__dict__.update(a)\n"
        "class _Set:\n  by_key = {}\n  def add(self, d): self.by_key[d.project_name] = d.version\n"
        "working_set = _Set()\n"
    )
    code = "import polyop.compat as c; c.install('DCNv3'); import pkg_resources as p; print(p.working_set.by_key)"
    assert run(sys.executable, "-c", code, env=environment(tmp_path)).strip() == "{'DCNv3': '1.1'}"
