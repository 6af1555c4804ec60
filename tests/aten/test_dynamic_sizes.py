# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operators whose form depends on a dynamic size: results at other sizes than the example's."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.support.exported_calls import check, exported, normal
from tests.support.model_calls import CALLS


def _windows(x: torch.Tensor) -> Any:
    n = x.shape[0]
    named = [getattr(torch, f"{name}_window") for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")]
    windows = [window(n, periodic) for window in named for periodic in (True, False)]
    return *windows, torch.hamming_window(n, True, 0.6, 0.4), torch.kaiser_window(n, True, 3.0, dtype=torch.float64)


def test_windows() -> None:
    check(_windows, normal(9), others=[(normal(size),) for size in (1, 2, 12)], dynamic=[(0,)])


def _ranges(x: torch.Tensor) -> Any:
    n = x.shape[0]
    return (
        torch.linspace(-1, 2, n), torch.linspace(0, n / 3, 4), torch.linspace(3, -9, n, dtype=torch.int64),
        torch.linspace(x[0], x[1], n), torch.logspace(0, 2, n), torch.logspace(0, n, 3, base=2),
        torch.logspace(0.5, 4, n, dtype=torch.int64), torch.scalar_tensor(n / 2), torch.signal.windows.bartlett(n),
        torch.signal.windows.cosine(n, sym=False),
    )  # fmt: skip


def test_ranges() -> None:
    check(_ranges, normal(9), others=[(normal(2),), (normal(14),)], dynamic=[(0,)])


def _ranges_by_fractions(x: torch.Tensor) -> Any:
    n = x.shape[0]
    return (
        torch.arange(0, n * 0.1, 0.1), torch.arange(1, n, 0.3), torch.arange(n / 4), torch.arange(n * 0.1, 0, -0.1),
        torch.arange(-0.5, n * 0.25, 0.25), torch.arange(n, 0, step=-0.3, dtype=torch.float64), torch.arange(n),
        torch.arange(n * 0.29, dtype=torch.int64), torch.arange(0.5, n * 0.1 + 0.5, 1, dtype=torch.int32),
        torch.arange(0, 2 * n, 3),
    )  # fmt: skip


def test_ranges_by_fractions() -> None:
    """A number of elements is rounded in float64: 11 * 0.1 / 0.1 is 11 there, but more in float32."""
    others = [(normal(n),) for n in range(1, 201)]
    check(_ranges_by_fractions, normal(20), others=others, dynamic=[(0,)])


def _combinations(x: torch.Tensor) -> Any:
    chosen = [torch.combinations(x, r, again) for r in (1, 2, 3) for again in (False, True)]
    return *chosen, torch.combinations(x > 0), *torch.tensor_split(x, 3), *x.tensor_split(sections=2)


def test_combinations_and_parts() -> None:
    check(_combinations, normal(5), others=[(normal(size),) for size in (3, 4, 7)], dynamic=[(0,)])


def _complex(x: torch.Tensor, y: torch.Tensor) -> Any:
    x, y, none = torch.view_as_complex(x), torch.view_as_complex(y), torch.zeros(1, 2, dtype=torch.complex64)
    return (
        torch.bmm(x, y), torch.mm(x[0], y[0]), torch.mv(x[0], y[0, :, 0]), torch.baddbmm(none, x, y, beta=0.5),
        torch.addmm(none, x[0], y[0], alpha=2), x.masked_fill(x.real > 0, x[0, 0, 0]), x.to(torch.int32), x.bool(),
        torch.addcmul(x, x, x, value=2),
    )  # fmt: skip


def test_products_of_complex_numbers() -> None:
    x, y = normal(3, 4, 5, 2), normal(3, 5, 2, 2)
    others = [(normal(2, 3, 6, 2), normal(2, 6, 2, 2))]
    check(_complex, x, y, others=others, dynamic=[(0, 1, 2), (0, 1)], rtol=1e-4, atol=1e-5)


def test_equal_singular_values_of_complex_matrices() -> None:
    """A unitary matrix, a projection and 0 have vectors that are no matter of phases alone."""

    def call(pairs: torch.Tensor) -> Any:
        a = torch.view_as_complex(pairs)
        (u, s, vh), (w, v) = torch.linalg.svd(a), torch.linalg.eigh(a + a.mH)
        products = (u * s.unsqueeze(1)) @ vh, u.mH @ u, vh.mH @ vh, (v * w.unsqueeze(1)) @ v.mH, v.mH @ v
        return s, w, *map(torch.view_as_real, products)

    unitary = torch.linalg.qr(torch.view_as_complex(normal(4, 4, 2))).Q
    projection = unitary[:, :2] @ unitary[:, :2].mH
    a = torch.stack([unitary, projection, torch.zeros(4, 4), torch.eye(4)])
    check(call, torch.view_as_real(a), atol=2e-5)


def _statistics_of_complex_numbers(x: torch.Tensor) -> Any:
    z, wide = torch.view_as_complex(x), torch.view_as_complex(x.double())
    chosen = z.masked_scatter(z.real > 0, z.flip(0))
    results = [
        z.var(1), z.std(), z.var(0, correction=0), z.sum(0, dtype=torch.complex128),
        x.sum(0, dtype=torch.complex64), z.mean((0, 1)), chosen, z.type_as(wide), torch.full_like(z, 2) * z, z.new_full((2,), 3j),
        torch.argwhere(z * (z.real > 0)), *torch.atleast_2d(z[0], z), torch.softmax(z.real, 1),
        torch.stft(z, 4, 2, return_complex=True, center=False),
    ]  # fmt: skip
    return [torch.view_as_real(y) if y.is_complex() else y for y in results]


def test_statistics_of_complex_numbers() -> None:
    others = [(normal(2, 8, 2),)]
    check(_statistics_of_complex_numbers, normal(3, 6, 2), others=others, dynamic=[(0, 1)], rtol=1e-4, atol=1e-5)


def _of_given_lengths(x: torch.Tensor) -> Any:
    """The example's size equals a length."""
    results = [
        torch.fft.fft(x, 6), torch.fft.irfft(x, 10), torch.fft.rfft(x, 5), torch.fft.irfftn(x, (3, 10)),
        torch.fft.fft2(x, (4, 6)), torch.fft.hfft(x, 10), torch.fft.ihfft(x, 6, 0),
    ]  # fmt: skip
    return [torch.view_as_real(y.resolve_conj()) if y.is_complex() else y for y in results]


def test_fourier_transforms_of_a_given_length() -> None:
    others = [(normal(3, 5),), (normal(5, 8),)]
    check(_of_given_lengths, normal(4, 6), others=others, dynamic=[(0, 1)], rtol=1e-4, atol=1e-5)


def test_runs_of_equal_slices() -> None:
    def call(x: torch.Tensor) -> Any:
        found = [torch.unique_consecutive(x, True, True, axis) for axis in (0, 1)]
        return *itertools.chain(*found), torch.unique_consecutive(x, dim=-2)

    x = torch.tensor([[1, 1, 2], [1, 1, 2], [3, 3, 2]])
    others = [(x[:2],), (torch.tensor([[4, 5, 5, 6], [4, 5, 5, 6]]),)]
    check(call, x, others=others, dynamic=[(0, 1)])


def test_products_of_sizes() -> None:
    def call(x: torch.Tensor) -> Any:
        y = torch.stack([x, x * 2], -1)
        products = torch.einsum("...i,...ij->j...", x, y), torch.linalg.multi_dot([x, y[0], y[1].mT])
        positions = torch.einsum("i,j->ij", torch.arange(len(x)), x[0])  # of two types, as rotary embeddings have
        return torch.kron(x, y[0]), *products, positions

    check(call, normal(4, 6), others=[(normal(2, 3),)], dynamic=[(0, 1)])


def test_fractional_pools_of_a_ratio() -> None:
    def call(x: torch.Tensor, samples: torch.Tensor) -> Any:
        how = {"output_ratio": (0.5, 0.6), "_random_samples": samples}
        return F.fractional_max_pool2d(x, 2, return_indices=True, **how)

    samples = torch.tensor([[[0.25, 0.75]]])
    others = [(normal(1, 1, 9, 4), samples), (normal(1, 1, 3, 12), samples)]
    check(call, normal(1, 1, 6, 7), samples, others=others, dynamic=[(2, 3), ()])


def test_maximum_pools_of_rows() -> None:
    def call(x: torch.Tensor) -> Any:
        return F.max_pool1d(x, 2), torch.max_pool1d(x, 3, 2, 1), F.max_pool1d(F.pad(x, (1, 1)), 3, ceil_mode=True)

    check(call, -normal(1, 2, 24).abs(), others=[(-normal(1, 2, size).abs(),) for size in (7, 33)], dynamic=[(2,)])


@pytest.mark.parametrize("size", [16, 17])
def test_windows_that_begin_after_the_input(size: int) -> None:
    """Their number depends on the size, not only on that of the example."""

    def call(x: torch.Tensor) -> Any:
        pooled = F.max_pool2d(x, 2, 3, 1, ceil_mode=True)
        averaged = F.avg_pool2d(x, 2, 2, 1, ceil_mode=True, divisor_override=3)
        return pooled + x.new_zeros(pooled.shape[2:]), averaged, averaged.flatten(2) * averaged.shape[3]

    others = [(normal(1, 2, other, 18),) for other in (5, 17, 18, 19)]
    check(call, normal(1, 2, size, 18), others=others, dynamic=[(2,)])


def test_tensors_without_elements() -> None:
    def call(x: torch.Tensor, y: torch.Tensor) -> Any:
        """x has a dynamic size, and a size of 0."""
        products = x @ y.mT, torch.addmm(y.sum(1), x, y.mT, beta=0.5), torch.baddbmm(y.sum(1), x[None], y.mT[None])
        layers = F.group_norm(y[None, :, :0, None], 1), F.unfold(y.reshape(0, 1, 3, 4), 2)
        sums = x.sum(1), x.mean(), x.var(), *torch.std_mean(x, 1), x.prod(1)
        return *products, *layers, *sums, x.flip(0) + 1, x.sort().values

    others = [(normal(2, 0), normal(3, 0))]
    check(call, normal(5, 0), normal(3, 0), others=others, dynamic=[(0,), ()])


def test_dimensions_of_a_number() -> None:
    def call(x: torch.Tensor, target: torch.Tensor, scores: torch.Tensor) -> Any:
        return (
            x.amax(0), x.amin(-1, keepdim=True), *torch.aminmax(x, dim=0), x.all(0), x.any(0), *x.topk(1), x.prod(0),
            x.nonzero(), torch.nonzero_static(x, size=2), F.cross_entropy(scores, target, reduction="none"),
        )  # fmt: skip

    check(call, torch.tensor(2.0), torch.tensor(1), normal(4), dynamic=[(), (), (0,)])


def _selected(x: torch.Tensor) -> Any:
    small = [(x * 9).to(dtype) for dtype in (torch.bool, torch.int8, torch.int16)]
    return [
        (
            torch.where(x > 0, a, a[:1]), a.masked_fill(x > 0.5, 1), a.masked_fill(x < 0, a[0, 0]), a.msort(),
            a.sort(1, descending=True).values, F.pixel_shuffle(a[:, None, None].expand(-1, 12, 2, -1).cumsum(1), 2),
        ) for a in small
    ]  # fmt: skip


def test_selections_of_small_types() -> None:
    check(_selected, normal(3, 4), others=[(normal(2, 5),)], dynamic=[(0, 1)])


def test_transposed_convolutions_of_a_large_output_padding() -> None:
    weight, bias = normal(3, 2, 3, 2), normal(2)

    def call(x: torch.Tensor) -> Any:
        one = F.conv_transpose1d(x[:, :, 0], weight[..., 0], None, 1, 2, 1, 1, 2)
        return one, F.conv_transpose2d(x, weight, bias, (2, 1), (1, 0), (3, 1), 1, (4, 2))

    check(call, normal(2, 3, 5, 4), others=[(normal(1, 3, 4, 7),)], dynamic=[(0, 2, 3)], rtol=1e-4, atol=1e-5)


def test_an_empty_tensor_is_rolled() -> None:
    check(lambda x, y: x.sum() + y.roll((1, -2), (0, 1)), normal(3), normal(2, 0), dynamic=[(0,), (0,)])


def test_empty_tensors_that_broadcast() -> None:
    """torch.export takes their sizes 1 and 10 for equal ones."""
    auto = dict.fromkeys((1, 2), torch.export.Dim.AUTO)
    x, y = torch.zeros(0, 1, 3), torch.zeros(0, 10, 3)
    check(lambda x, y: (x * y, x + 1), x, y, dynamic_shapes=((auto, auto),))


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
    check(_qparams, normal(3, 4), others=[(normal(5, 2) + 1,)], dynamic=[(0, 1)])


def test_linear_cross_entropy_in_parts() -> None:
    options = torch.nn.LinearCrossEntropyOptions()

    def call(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> Any:
        return [F.linear_cross_entropy(x, weight, target, reduction=r, options=options) for r in ("mean", "none")]

    weight, target = normal(3, 5), torch.tensor([0, 2, 1, 2, -100, 1])
    others = [(normal(6, 5), weight, target)]
    check(call, normal(4, 5), weight, target[:4], others=others, dynamic=[(0,), (), (0,)])


def _of_nothing(x: torch.Tensor) -> Any:
    kept = x[x > 0.5]
    return (
        x.any(), x.any(0), (x > 0).any(1, True), (x > 9).any((0, 1)), kept.any(), (x > 0).all(0), kept.all(), x.sum(0),
        torch.isnan(x).any(), x.long().any(0), x.half().any(),
    )  # fmt: skip


def test_whether_any_of_no_elements_is_true() -> None:
    others = [(torch.zeros(0, 4),), (torch.zeros(3, 4),), (torch.full((1, 4), torch.nan),), (normal(9, 4),)]
    check(_of_nothing, normal(5, 4), others=others, dynamic=[(0,)])


def test_squeeze_keeps_dynamic_sizes() -> None:
    """Only dimensions whose size is constant are removed, also if a dynamic size is 1."""
    check(
        lambda x: [x.squeeze() + 1, x[0, ..., 0].squeeze() * 2], normal(1, 4, 5, 1),
        others=[(normal(1, 4, 7, 1),)], dynamic=[(2,)],
    )  # fmt: skip
    run = exported(lambda x: x.squeeze() + 1, normal(1, 4, 5, 1), dynamic=[(2,)])
    assert run(normal(1, 4, 1, 1))[0].shape == (4, 1)
