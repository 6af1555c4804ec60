# SPDX-License-Identifier: Apache-2.0
"""Operators that torch has too: transforms, linear algebra, sorting."""

from __future__ import annotations

import torch

from gpu_cases.cases import Contest, case


@case("dft", "64x4,096, one dimension")
def _() -> Contest:
    signal = torch.randn(64, 4096, 2)
    return Contest(
        lambda: torch.ops.polyop.dft(signal), [signal],
        {"torch": lambda: torch.view_as_real(torch.fft.fft(torch.view_as_complex(signal)))},
    )  # fmt: skip


def well_conditioned(count: int, size: int) -> torch.Tensor:
    return torch.randn(count, size, size) + size * torch.eye(size)


@case("inverse", "4,096 matrices of 4x4")
def _() -> Contest:
    a = well_conditioned(4096, 4)
    return Contest(lambda: torch.ops.polyop.inverse(a), [a], {"torch": lambda: torch.linalg.inv_ex(a)[0]})


@case("inverse", "16 matrices of 128x128")
def _() -> Contest:
    a = well_conditioned(16, 128)
    return Contest(lambda: torch.ops.polyop.inverse(a), [a], {"torch": lambda: torch.linalg.inv_ex(a)[0]})


@case("matrix_factors", "Cholesky, 64 matrices of 64x64")
def _() -> Contest:
    root = well_conditioned(64, 64)
    a = root @ root.mT
    return Contest(
        lambda: torch.ops.polyop.matrix_factors(a, method="cholesky")[0], [a],
        {"torch": lambda: torch.linalg.cholesky_ex(a)[0]},
    )  # fmt: skip


@case("qr", "64 matrices of 64x64, triangle")
def _() -> Contest:
    a = well_conditioned(64, 64)
    return Contest(lambda: torch.ops.polyop.qr(a)[1], [a], {"torch": lambda: torch.linalg.qr(a)[1]})


@case("eigh", "16 matrices of 128x128, values")
def _() -> Contest:
    root = well_conditioned(16, 128)
    a = root + root.mT
    return Contest(lambda: torch.ops.polyop.eigh(a)[0], [a], {"torch": lambda: torch.linalg.eigh(a)[0]})


@case("svd", "16 matrices of 128x128, values")
def _() -> Contest:
    a = torch.randn(16, 128, 128)
    return Contest(lambda: torch.ops.polyop.svd(a)[1], [a], {"torch": lambda: torch.linalg.svd(a)[1]})


@case("argsort", "100,000 integers")
def _() -> Contest:
    x = torch.randperm(100_000).int()
    return Contest(lambda: torch.ops.polyop.argsort(x), [x], {"torch": lambda: torch.argsort(x, stable=True)})


@case("order_statistic", "median of 1,000 x 4,096")
def _() -> Contest:
    x = torch.randn(1000, 4096)
    return Contest(
        lambda: torch.ops.polyop.order_statistic(x, statistic="median")[0], [x], {"torch": lambda: x.median(-1)[0]}
    )


@case("search_sorted", "100,000 values in 10,000")
def _() -> Contest:
    sequence, values = torch.rand(10_000).sort()[0], torch.rand(100_000)
    return Contest(
        lambda: torch.ops.polyop.search_sorted(sequence, values), [sequence, values],
        {"torch": lambda: torch.searchsorted(sequence, values)},
    )  # fmt: skip


@case("cumulative", "running sums of 1,000 x 4,096")
def _() -> Contest:
    x = torch.randn(1000, 4096)
    return Contest(
        lambda: torch.ops.polyop.cumulative(x, axis=-1, mode="sum"), [x], {"torch": lambda: x.cumsum(-1)},
        same=lambda got, expected: ((got - expected).abs() / (1 + expected.abs())).max().item(),
    )  # fmt: skip


@case("cdist", "2,000 x 3,000 rows of 64, p = 1")
def _() -> Contest:
    a, b = torch.randn(2000, 64), torch.randn(3000, 64)
    return Contest(lambda: torch.ops.polyop.cdist(a, b, p=1.0), [a, b], {"torch": lambda: torch.cdist(a, b, 1.0)})


@case("find_indices", "1,000 x 4,096", capturable=False)
def _() -> Contest:
    x = torch.randn(1000, 4096) > 0
    return Contest(
        lambda: torch.ops.polyop.find_indices(x, mode="nonzero", dimensions=2), [x], {"torch": lambda: x.nonzero()}
    )
