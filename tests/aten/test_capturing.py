# SPDX-License-Identifier: Apache-2.0
"""Programs at which PyTorch's capture stops, and which exports write: with dynamic sizes, compared at others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import onnxruntime as ort
import pytest
import torch
from torch import Tensor, nn

import polyop
from polyop._aten.packages import heatmap_to_keypoints

pytestmark = pytest.mark.filterwarnings("ignore")


class Net(nn.Module):
    """A module of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Any:
        return self.function(*args)


def export(
    function: Callable[..., Any], args: Sequence[Tensor], folder: Path, sizes: Sequence[dict[int, str]], **given: Any
) -> polyop.exporting.Exported:
    """Exports with the sizes of each input that are dynamic, and compares at others."""
    model = function if isinstance(function, nn.Module) else Net(function)
    names = [f"x{i}" for i in range(len(args))]
    return polyop.export(
        model.eval(), tuple(args), folder / "a.onnx", exporter="dynamo", input_names=names, verbose=False,
        dynamic=dict(zip(names, sizes, strict=True)), **given,
    )  # fmt: skip


# ---- conditions and integers -----------------------------------------------------------------------


def checks(x: Tensor) -> Tensor:
    assert (x > -100).all(), "too small"
    if not x.isfinite().all():
        raise ValueError(f"expected finite numbers, got {x}")
    kept = x[x > 0]
    if kept.shape[0] > 1000:
        message = "too many"
        raise ValueError(message)
    return kept.sum() + x


def test_conditions_that_only_lead_to_an_error(tmp_path: Path) -> None:
    report = export(checks, [torch.randn(3, 4)], tmp_path, [{0: "n"}])
    assert {"n": 1} in report.compared


def means(x: Tensor, group: Tensor) -> Tensor:
    groups = int(group.max()) + 1
    assert isinstance(groups, (int, torch.SymInt))
    sums = x.new_zeros(groups, x.shape[1]).index_add(0, group, x)
    counts = x.new_zeros(groups).index_add(0, group, torch.ones_like(x[:, 0]))
    return sums / counts.clamp(min=1).unsqueeze(1)


def test_sizes_by_int(tmp_path: Path) -> None:
    report = export(means, [torch.randn(6, 4), torch.tensor([0, 0, 3, 1, 1, 3])], tmp_path, [{0: "n"}, {0: "n"}])
    assert any(run.get("n", 6) > 6 for run in report.compared)
    assert "int" not in globals()
    session = ort.InferenceSession(tmp_path / "a.onnx")
    for group in ([0], [5, 0, 2]):
        x, at = torch.randn(len(group), 4), torch.tensor(group)
        (got,) = session.run(None, {"x0": x.numpy(), "x1": at.numpy()})
        torch.testing.assert_close(torch.from_numpy(got), means(x, at))


@torch.jit.script
def halves(x: Tensor) -> Tensor:
    size = x.shape[0] // 2
    return x[:size] if x.dim() == 2 else x


def test_functions_of_torchscript(tmp_path: Path) -> None:
    x = torch.randn(8, 3)
    report = export(lambda x: halves(x * 2), [x], tmp_path, [{0: "n"}])
    assert {"n": 11} in report.compared
    assert torch.equal(halves(x), x[:4])  # as before


def test_products_whose_order_depends_on_sizes(tmp_path: Path) -> None:
    """opt_einsum chooses it, by the example's sizes."""
    w, v = torch.randn(4, 5), torch.randn(5, 3)
    report = export(lambda x: torch.einsum("bi,ij,jk->bk", x, w, v), [torch.randn(2, 4)], tmp_path, [{0: "batch"}])
    assert {"batch": 3} in report.compared


def _middle_frequencies(x: Tensor) -> Tensor:
    kept, centre = min(x.shape[-1], 6), x.shape[-1] // 2
    found = torch.fft.fftshift(torch.fft.fft(x), -1)
    found[..., centre - kept // 2 : centre + kept // 2] *= 2
    return found.abs()


def test_slices_of_complex_numbers(tmp_path: Path) -> None:
    """PyTorch asserts where they begin in memory."""
    report = export(_middle_frequencies, [torch.randn(2, 8)], tmp_path, [{1: torch.export.Dim("n", min=6)}])
    assert {"n": 11} in report.compared


def _shortcut(x: Tensor, limit: int = 4) -> Tensor:
    kept = x[x > 0][:limit]
    count = len(kept)
    if count < limit:
        kept = torch.cat([kept, torch.zeros(limit - count)])
    return kept


def test_shortcuts_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function as effdet has one, which pads detections if there are few. Others with such a branch are refused."""
    with pytest.raises(polyop.ExportError, match=rf"depends on values of a tensor, at {__file__}:\d+"):
        export(_shortcut, [torch.randn(9)], tmp_path, [{0: "n"}])
    monkeypatch.setitem(polyop._aten.checks._GENERAL, (__name__, "_shortcut"), True)
    export(_shortcut, [torch.randn(9)], tmp_path, [{0: "n"}])
    session = ort.InferenceSession(tmp_path / "a.onnx")
    for x in (torch.randn(30), -torch.ones(3)):
        assert torch.equal(torch.from_numpy(session.run(None, {"x0": x.numpy()})[0]), _shortcut(x))


@pytest.mark.parametrize("count", [0, 3, 100])
def test_strongest_keypoints(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """kornia's function without its branch: maxima in raster order, the first ones of equal scores."""
    module: Any = ModuleType("kornia.feature.disk.detector")
    module.nms2d = lambda x, size, mask_only: x == x.round()
    module.Keypoints = lambda xy, score: (xy.tolist(), score.tolist())
    monkeypatch.setitem(sys.modules, module.__name__, module)
    heat = torch.tensor([[[[2.0, 0.5, 1], [1, 4, -3]]]])
    every = [([0, 0], 2.0), ([2, 0], 1.0), ([0, 1], 1.0), ([1, 1], 4.0)]
    expected = {0: [], 3: [every[0], every[1], every[3]], 100: every}[count]
    assert heatmap_to_keypoints(print, heat, count) == [([xy for xy, _ in expected], [s for _, s in expected])]


# ---- layers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "layer",
    [nn.GRU(4, 5, 2, bidirectional=True), nn.LSTM(4, 5), nn.RNN(4, 5, bias=False, nonlinearity="relu")],
    ids=["GRU", "LSTM", "RNN"],
)
def test_recurrent_layers_with_time_first(layer: nn.Module, tmp_path: Path) -> None:
    report = export(layer, [torch.randn(6, 3, 4)], tmp_path, [{0: "time", 1: "batch"}])
    assert {"time": 7} in report.compared
    assert {"batch": 7} in report.compared


class Experts(nn.Module):
    """A layer of experts, as those of transformers: the rows of each are a group."""

    def __init__(self, product: Callable[..., Tensor]) -> None:
        super().__init__()
        self.product, self.count = product, 5
        self.router, self.weights = nn.Linear(4, self.count), nn.Parameter(torch.randn(self.count, 4, 8))

    def forward(self, x: Tensor) -> Tensor:
        weight, expert = self.router(x).softmax(1).topk(2)
        expert, order = expert.flatten().sort()
        ends = torch.histc(expert.float(), self.count, 0, self.count - 1).cumsum(0, dtype=torch.int32)
        products = self.product(x[order // 2], self.weights, offs=ends)
        return (products[order.argsort()] * weight.reshape(-1, 1)).unflatten(0, [-1, 2]).sum(1)


def test_mixture_of_experts(tmp_path: Path) -> None:
    from transformers.integrations import moe  # noqa: F401 (registers its operator)

    for product in (nn.functional.grouped_mm, torch.ops.transformers.grouped_mm_fallback):
        report = export(Experts(product), [torch.randn(8, 4)], tmp_path, [{0: "n"}])
        assert {"n": 1} in report.compared  # most experts have no rows


def test_rows_after_the_last_group_are_zeros(tmp_path: Path) -> None:
    rows, weights, ends = torch.randn(6, 4), torch.randn(3, 4, 5), torch.tensor([2, 2, 5], dtype=torch.int32)
    export(torch.ops.polyop_export.grouped_rows, [rows, weights, ends], tmp_path, [{0: "n"}, {}, {}])
    session = ort.InferenceSession(tmp_path / "a.onnx")
    (got,) = session.run(None, {"x0": rows.numpy(), "x1": weights.numpy(), "x2": ends.numpy()})
    expected = torch.cat([rows[:2] @ weights[0], rows[2:5] @ weights[2], torch.zeros(1, 5)])
    torch.testing.assert_close(torch.from_numpy(got), expected)


# ---- arguments and results -------------------------------------------------------------------------


class Rest(nn.Module):
    def forward(self, x: Tensor, *rest: Tensor) -> tuple[Any, ...]:
        return x + rest[0] * rest[1], 5, x.shape[1], 2.5, True


def test_further_arguments_and_numbers_as_results(tmp_path: Path) -> None:
    args = [torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)]
    report = export(Rest(), args, tmp_path, [{0: "n"}] * 3)
    assert [o.dtype for o in report.outputs] == ["float32", "int64", "int64", "float32", "bool"]
    assert {"n": 5} in report.compared


def test_types_without_kernels_are_named(tmp_path: Path) -> None:
    with pytest.raises(polyop.ExportError, match=r"no kernel for Mul of bfloat16 .*by model\.float\(\)"):
        export(lambda x: (x.bfloat16() * 2).float(), [torch.randn(3)], tmp_path, [{0: "n"}])
