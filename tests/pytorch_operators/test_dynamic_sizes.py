# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operators whose form depends on a dynamic size: results at other sizes than the example's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.support.exported_calls import check
from tests.support.faster_export import keep_registries
from tests.support.model_calls import CALLS


@pytest.fixture(scope="module", autouse=True)
def _share_registries() -> None:
    keep_registries()


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def _windows(x: torch.Tensor) -> Any:
    n = x.shape[0]
    named = [getattr(torch, f"{name}_window") for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")]
    windows = [window(n, periodic) for window in named for periodic in (True, False)]
    return *windows, torch.hamming_window(n, True, 0.6, 0.4), torch.kaiser_window(n, True, 3.0, dtype=torch.float64)


def test_windows() -> None:
    check(_windows, _random(9), others=[(_random(size),) for size in (1, 2, 12)], dynamic=[(0,)])


def _ranges(x: torch.Tensor) -> Any:
    n = x.shape[0]
    return (
        torch.linspace(-1, 2, n), torch.linspace(0, n / 3, 4), torch.linspace(3, -9, n, dtype=torch.int64),
        torch.linspace(x[0], x[1], n), torch.logspace(0, 2, n), torch.logspace(0, n, 3, base=2),
        torch.logspace(0.5, 4, n, dtype=torch.int64), torch.scalar_tensor(n / 2), torch.signal.windows.bartlett(n),
        torch.signal.windows.cosine(n, sym=False),
    )  # fmt: skip


def test_ranges() -> None:
    check(_ranges, _random(9), others=[(_random(2),), (_random(14),)], dynamic=[(0,)])


def _combinations(x: torch.Tensor) -> Any:
    chosen = [torch.combinations(x, r, again) for r in (1, 2, 3) for again in (False, True)]
    return *chosen, torch.combinations(x > 0), *torch.tensor_split(x, 3), *x.tensor_split(sections=2)


def test_combinations_and_parts() -> None:
    check(_combinations, _random(5), others=[(_random(size),) for size in (3, 4, 7)], dynamic=[(0,)])


def _complex(x: torch.Tensor, y: torch.Tensor) -> Any:
    x, y, none = torch.view_as_complex(x), torch.view_as_complex(y), torch.zeros(1, 2, dtype=torch.complex64)
    return (
        torch.bmm(x, y), torch.mm(x[0], y[0]), torch.mv(x[0], y[0, :, 0]), torch.baddbmm(none, x, y, beta=0.5),
        torch.addmm(none, x[0], y[0], alpha=2), x.masked_fill(x.real > 0, x[0, 0, 0]), x.to(torch.int32), x.bool(),
        torch.addcmul(x, x, x, value=2),
    )  # fmt: skip


def test_products_of_complex_numbers() -> None:
    x, y = _random(3, 4, 5, 2), _random(3, 5, 2, 2)
    others = [(_random(2, 3, 6, 2), _random(2, 6, 2, 2))]
    check(_complex, x, y, others=others, dynamic=[(0, 1, 2), (0, 1)], rtol=1e-4, atol=1e-5)


def _selected(x: torch.Tensor) -> Any:
    small = [(x * 9).to(dtype) for dtype in (torch.bool, torch.int8, torch.int16)]
    return [
        (
            torch.where(x > 0, a, a[:1]), a.masked_fill(x > 0.5, 1), a.masked_fill(x < 0, a[0, 0]), a.msort(),
            a.sort(1, descending=True).values, F.pixel_shuffle(a[:, None, None].expand(-1, 12, 2, -1).cumsum(1), 2),
        ) for a in small
    ]  # fmt: skip


def test_selections_of_small_types() -> None:
    check(_selected, _random(3, 4), others=[(_random(2, 5),)], dynamic=[(0, 1)])


def test_transposed_convolutions_of_a_large_output_padding() -> None:
    weight, bias = _random(3, 2, 3, 2), _random(2)

    def call(x: torch.Tensor) -> Any:
        one = F.conv_transpose1d(x[:, :, 0], weight[..., 0], None, 1, 2, 1, 1, 2)
        return one, F.conv_transpose2d(x, weight, bias, (2, 1), (1, 0), (3, 1), 1, (4, 2))

    check(call, _random(2, 3, 5, 4), others=[(_random(1, 3, 4, 7),)], dynamic=[(0, 2, 3)], rtol=1e-4, atol=1e-5)


def test_an_empty_tensor_is_rolled() -> None:
    check(lambda x, y: x.sum() + y.roll((1, -2), (0, 1)), _random(3), _random(2, 0), dynamic=[(0,), (0,)])


def _qparams(x: torch.Tensor) -> Any:
    q: Any = torch.ops.quantized_decomposed
    return (
        *q.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8),
        *q.choose_qparams.tensor(x[0] * 0, 0, 255, 1e-5, torch.uint8),
        *q.choose_qparams_symmetric.tensor(x, 0, 255, 1e-5, torch.uint8),
        *q.choose_qparams_per_token(x, torch.int8),
        *q.choose_qparams_per_token_asymmetric(x, torch.int8),
    )


def test_scales_and_zero_points() -> None:
    assert "quantized dynamically" in CALLS  # its import defines the operators
    check(_qparams, _random(3, 4), others=[(_random(5, 2) + 1,)], dynamic=[(0, 1)])


def test_linear_cross_entropy_in_parts() -> None:
    options = torch.nn.LinearCrossEntropyOptions()

    def call(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> Any:
        return [F.linear_cross_entropy(x, weight, target, reduction=r, options=options) for r in ("mean", "none")]

    weight, target = _random(3, 5), torch.tensor([0, 2, 1, 2, -100, 1])
    others = [(_random(6, 5), weight, target)]
    check(call, _random(4, 5), weight, target[:4], others=others, dynamic=[(0,), (), (0,)])
