# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own operators in ONNX files: results in ONNX Runtime against PyTorch's."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
import torch
from scipy import special
from torch.nn import functional as F

import polyop
from polyop._aten import TRANSLATIONS, overload
from polyop._aten.special import STANDARD
from tests.support.exported_calls import check, check_together, exported, normal, session_of
from tests.support.pytorch_cases import Call
from tests.support.pytorch_export import outcome

INF, NAN = float("inf"), float("nan")
t = torch.tensor


def _exported(call: Callable[..., Any], *args: torch.Tensor) -> list[np.ndarray]:
    return exported(call, *args)(*args)


_LARGE = t(
    [
        3**20,
        -(3 * 10**9),
        2**31,
        17 * 10**17,
        5,
        -5,
        0,
        2**63 - 1,
        -(2**63),
        2**32,
        -(2**32),
        2**31 - 1,
        1,
        3**15,
        2,
        -(2**40),
    ]
)

# PyTorch's exporter alone writes these with wrong numbers, or with another shape.
CORRECTED: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "scatter_reduce mean": (
        lambda x, i, s: x.scatter_reduce(0, i, s, "mean"), (t([1.0, 2, 3]), t([0, 0, 1]), t([1.0, 2, 3]))),
    "scatter_reduce mean without self": (
        lambda x, i, s: x.scatter_reduce(0, i, s, "mean", include_self=False),
        (t([1.0, 2, 3]), t([0, 0, 1]), t([1.0, 2, 3]))),
    "avg_pool2d divisor": (
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, divisor_override=2), (normal(1, 2, 8, 8),)),
    "avg_pool3d divisor": (lambda x: F.avg_pool3d(x, 2, 2, 1, divisor_override=3), (normal(1, 2, 5, 6, 4),)),
    "cross_entropy label smoothing": (
        lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1, ignore_index=2), (normal(3, 5), t([0, 2, 4]))),
    "cross_entropy weights and smoothing": (
        lambda x, y, w: F.cross_entropy(x, y, w, label_smoothing=0.2), (normal(3, 5), t([0, 2, 4]), t([1.0, 2, 3, 4, 5]))),
    "cross_entropy probabilities": (lambda x, y: F.cross_entropy(x, y.softmax(1)), (normal(3, 5), normal(3, 5))),
    "antialiased bilinear": (
        lambda x: F.interpolate(x, size=(5, 6), mode="bilinear", antialias=True, align_corners=True),
        (normal(1, 2, 9, 9),)),
    "antialiased bicubic": (
        lambda x: F.interpolate(x, size=(5, 12), mode="bicubic", antialias=True, align_corners=True),
        (normal(1, 2, 9, 9),)),
    "norm keepdim": (lambda x: torch.linalg.norm(x, keepdim=True), (t([3.0, 4.0]),)),
    "norm keepdim of a matrix": (lambda x: torch.linalg.vector_norm(x, keepdim=True), (normal(2, 3),)),
    "norm of a number": (lambda x: torch.linalg.vector_norm(x, 3, -1), (normal(),)),
    "maximum pool after a padding of zeros": (
        lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2), (-normal(1, 2, 8, 8).abs() - 1,)),
    "maximum pool after other paddings": (
        lambda x: [F.max_pool2d(F.pad(x, (1, 1, 1, 1), mode=mode), 3, 2) for mode in ("reflect", "replicate", "circular")],
        (normal(1, 2, 8, 8),)),
    "floor division and remainder of real numbers": (
        lambda x, y: (torch.div(x, y, rounding_mode="floor"), x // y, x % y, x // 0.3, x % 0.3, 2.5 % y),
        (t([-7.0, 1, 6, 1, -1, 0, -0.0, 5, INF, -3, 1e30, NAN, -5.5]),
         t([2.0, 0.1, 0.2, INF, INF, 3, 3, 0, 2, -INF, 1e-3, 2, -2]))),
    "division of integers beyond 2^24": (
        lambda x, y: (torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc"),
                      torch.div(x, 3, rounding_mode="trunc"), torch.div(x, y.int(), rounding_mode="trunc"), x % 2.5),
        (t([7, -7, 16777217, -16777219, 5, 0]), t([2, 2, 1, 2, -3, 4]))),
    "searchsorted in integers": (
        lambda s, v: (torch.searchsorted(s, 2.5), torch.searchsorted(s, v), torch.bucketize(v, s, right=True)),
        (t([1, 2, 3, 4]), t([1.5, 2.5, 4.0]))),
    "fake quantization of halves": (
        lambda x: torch.fake_quantize_per_tensor_affine(x, t([1.0]), t([1], dtype=torch.int32), 0, 255),
        (t([0.5, 1.5, 2.5, 3.5, -0.5, 0.3]),)),
    "log_ndtr": (torch.special.log_ndtr, (t([-1.0, -20, 5, 0, NAN]),)),
    "erfcx": (torch.special.erfcx, (t([-1.0, 20, 5, 0, INF]),)),
    "batch_norm in training": (
        lambda x: F.batch_norm(x, torch.zeros(3), torch.ones(3), training=True), (normal(4, 3) * 5,)),
    "logaddexp": (torch.logaddexp, (t([100.0, -200, -INF, INF, 1]), t([100.0, -200, -INF, INF, 2]))),
    "logaddexp2": (
        lambda x, y: (torch.logaddexp2(x, y), torch.logaddexp2(x.double(), y[:1]), torch.logaddexp2(x.half(), y.half())),
        (t([200.0, -200, -INF, INF, 1, -500, -INF, NAN]), t([200.0, -203, -INF, INF, 2, 500, 3, INF]))),
    "limits and signs of integers beyond 2^31": (
        lambda x, y: (x.clamp(min=0), x.clamp(-5, 5), x.clamp(7, 3), x.clamp(y[:1], y[1]), x.clamp_max(y[1]), x.clamp_min(-7),
                      x.clamp_max(2**40), x.clamp_min(y), torch.maximum(x, y[0]), torch.minimum(x, x * 0), x.sign(),
                      x.relu(), x.int().clamp(y[0], y[1]), torch.maximum(x, y[0].int())),
        (_LARGE, t([5, 2**33, *range(14)]))),
    "extremes of integers beyond 2^31": (
        lambda x: (x.max(), x.min(), x.max(0), x.view(4, 4).min(1, keepdim=True), x.view(4, 4).amax((0, 1), keepdim=True),
                   x.view(4, 4).amin(-1), x.view(4, 4).amax(), x.aminmax(dim=0), x.view(4, 4).amin((1, 0))),
        (_LARGE,)),
    "logsigmoid": (F.logsigmoid, (t([100.0, -100, 0]),)),
    "signbit of -0": (torch.signbit, (t([-0.0, 0, -1, 1]),)),
    "xlogy": (torch.xlogy, (t([0.0, 0, 0, 2]), t([INF, NAN, 0, 3]))),
    "atan2": (
        torch.atan2, (t([0.0, -0.0, 0, -0.0, INF, -INF, 1, NAN, 2]), t([-1.0, -1, -0.0, 0, -INF, INF, NAN, 1, -INF]))),
}  # fmt: skip


@pytest.mark.parametrize("group", range(3))
def test_corrected(group: int) -> None:
    check_together({name: CORRECTED[name] for name in list(CORRECTED)[group::3]})


# Edge cases of new translations.
EDGES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "cumprod of one": (lambda x: x.cumprod(1), (normal(3, 1),)),
    "cumprod of columns": (lambda x: x.cumprod(-2), (normal(2, 11, 3),)),
    "cumprod of integers": (lambda x: x.cumprod(0), (torch.tensor([[2, 3], [-1, 5], [7, 1]]),)),
    "cumprod of types": (
        lambda x: (x.cumprod(0, dtype=torch.int8), x.cumprod(0, dtype=torch.float64), (x > 1).cumprod(0)),
        (torch.tensor([3, 7, 11, 13]),)),
    "cumprod of complex numbers and of a scalar": (
        lambda x: (_complex(x).cumprod(1).imag, x[0, 0].cumprod(0)), (normal(3, 5),)),
    "cumprod with 0 and infinity": (lambda x: x.cumprod(0), (t([2.0, INF, -1, 0, 3, NAN, 1]),)),
    "logcumsumexp of distant values": (
        lambda x: (x.logcumsumexp(0), x[:, 0].half().logcumsumexp(0), x[0, 0].logcumsumexp(0)),
        (t([[200.0, -200], [-90, 90], [-INF, INF], [3, NAN]]),)),
    "cummax with NaN": (lambda x: x.cummax(0), (t([1.0, NAN, 3, 2]),)),
    "cummin of float64": (lambda x: x.cummin(0), (t([3.0, 1, NAN, 2], dtype=torch.float64),)),
    "fmax": (torch.fmax, (t([1.0, NAN, NAN]), t([NAN, 2.0, NAN]))),
    "hypot": (torch.hypot, (t([3e30, 0, INF, 3]), t([4e30, 0, NAN, 4]))),
    "frexp": (torch.frexp, (t([0.0, 1, -3, 1e-40, 3e38]),)),
    "nextafter": (torch.nextafter, (t([1.0, 1, 0, -2, INF]), t([2.0, 0, -1, 0, 0]))),
    "gcd": (torch.gcd, (t([[0, 12, -35, 7]]), t([[-6], [0], [14]]))),
    "gcd int8": (torch.gcd, (t([-128, 96, 5], dtype=torch.int8), t([-128, -12, 0], dtype=torch.int8))),
    "lcm": (torch.lcm, (t([0, 0, 12, -35]), t([-6, 0, 18, 14]))),
    "lcm int16": (torch.lcm, (t([300, 7, 0], dtype=torch.int16), t([-401, 7, 0], dtype=torch.int16))),
    "atan2 of rows, of types": (
        lambda x, y: (torch.atan2(x, y), torch.atan2(x.half(), y.half()), torch.atan2(x.double(), y.double())),
        (normal(7, 1), normal(13) * 9)),
    "angle of complex numbers": (lambda x: _complex(x).angle(), (t([-1.0, 0, 2, -0.0, 0, 0]),)),
    "chebyshev polynomials": (
        lambda x, n: [getattr(torch.special, f"{prefix}chebyshev_polynomial_{kind}")(x, n)
                      for kind in "tuvw" for prefix in ("", "shifted_")],
        (t([[0.3, -0.7, 1, -1, 0, 1.5, -1.25, 0.999]]).double(), t([[0.0], [1], [2], [7], [30], [-2]]).double())),
    "chebyshev polynomials of numbers, and of float": (
        lambda x, n: [torch.special.chebyshev_polynomial_t(x, 5), torch.special.chebyshev_polynomial_u(0.4, n),
                      torch.special.chebyshev_polynomial_t(x.half(), n)],
        (t([[0.3, -0.7, 1, -1, 0, 1.5]]), t([[0.0], [1], [2], [5]]))),
    "entr": (torch.special.entr, (t([0.0, -0.0, -1, 1, 0.5, 1e-40, INF, -INF, NAN]),)),
    "entr of types": (
        lambda x: (torch.special.entr(x.half()), torch.special.entr(x.double()), torch.special.entr(x.long())),
        (t([0.0, 0.5, 2, -1]),)),
    "a scatter whose source is larger than the index": (
        lambda x, i, v: (x.scatter_add(0, i, v), x.scatter(0, i, v), x.scatter_reduce(0, i, v, "amax"),
                         x.scatter_reduce(0, i, v, "mean", include_self=False)),
        (torch.zeros(10, 4), t([[3, 0, 1], [2, 4, 0]]), normal(10, 4))),
    "masked_scatter with a mask larger than the tensor": (
        lambda x, m, s: x.masked_scatter(m, s), (t([1.0, 2]), t([[True, False], [False, True]]), t([7.0, 8, 9, 10]))),
    "squeeze of dimensions that are not 1": (
        lambda x: (x.squeeze(1) + 1, x.squeeze((0, 1)), x.squeeze((1, 2)), x.squeeze(-1), x.squeeze(0)),
        (normal(1, 20, 5),)),
    "tolist of constants": (
        lambda x: (x - x.mean(torch.arange(1, x.dim()).tolist(), True), x.permute(torch.tensor([2, 0, 1]).tolist())),
        (normal(2, 8, 3),)),
    "results of a type that is computed in a larger one": (
        lambda x: (x.sum(0), x.sum(), x.cumsum(0), x.prod(1), x.prod()), (t([[1.0, 2], [0.5, 3]]).half(),)),
    "shifts of bytes": (
        lambda x, y: (x >> 3, x << 1, x >> 9, x << 40, 5 << y, 200 >> y, x >> y, x << y, x >> y.int(), x.int() << y,
                      torch.bitwise_right_shift(x, y), torch.bitwise_left_shift(x, 2)),
        (t([1, 200, 255, 7, 128]).byte(), t([0, 1, 7, 8, 255]).byte())),
    "copysign": (torch.copysign, (t([1.0, -2, 3, 4, 5]), t([-0.0, 0, -1, -INF, INF]))),
    "mv": (torch.mv, (normal(5, 3), normal(3))),
    "pinv of no elements": (
        lambda x: (torch.linalg.pinv(x[:0]), torch.linalg.pinv(x[None, :0, :0], hermitian=True)), (normal(3, 4),)),
    "eigvalsh": (torch.linalg.eigvalsh, (t([[2.0, 1], [1, 3]]),)),
    "svdvals": (torch.linalg.svdvals, (normal(4, 3),)),
    "median with NaN": (lambda x: x.median(1), (t([[1.0, 3, 2], [NAN, 1, 2]]),)),
    "searchsorted": (
        lambda s, v: torch.searchsorted(s, v, right=True), (t([1.0, 2, 2, 5]), t([0.0, 2, 5, 9]))),
    "searchsorted with NaN": (
        lambda s, v: (torch.searchsorted(s, v), torch.searchsorted(s, v, right=True, out_int32=True)),
        (t([[1.0, 2, NAN, NAN], [-INF, 0, 0, INF]]), t([[0.0, 1.5, NAN], [-INF, 0, INF]]))),
    "bucketize of integers": (lambda v, s: torch.bucketize(v, s, right=True), (t([[0.0, 1], [5, NAN]]), t([0, 1, 5]))),
    "isin with NaN": (
        lambda a, b: (torch.isin(a, b), torch.isin(a, b * NAN, invert=True)), (t([1.0, NAN, INF]), t([NAN, 1, 3]))),
    "order statistics of small types": (
        lambda x: (x.median(0).values, x.to(torch.int8).kthvalue(2, 0, keepdim=True).values, (x > 0).mode(-1).values,
                   (x / x).nanmedian(1).values), (t([[1.0, 0, -2], [0, 0, 5], [3, -1, 7], [0, 0, 0]]).half(),)),
    "histc of the range of the values": (
        lambda x: (torch.histc(x, 30), torch.histc(x * 0 + 2, 4), torch.histc(x, 7, -0.4, 0.6)), (normal(500),)),
    "histc of numbers on limits, outside and NaN": (
        lambda x: (torch.histc(x, 4, -1.0, 1.0), torch.histc(x.double(), 3, 0.0, 1.5), torch.histc(x, 1, -2.0, 0.0)),
        (t([-1.0, -1.0000001, 1, 1.0000001, 0, -0.0, NAN, INF, -INF, 0.5, 1.5, -2, 1e-30, -1e-30]),)),
    "histogram of numbers on edges, outside and NaN": (
        lambda x: (torch.histogram(x, 4, range=(-1.0, 1)), torch.histogram(x, 1, range=(-1.0, 1), density=True).hist),
        (t([-1.0, -1, -0.5, 0, 0.5, 1, 1, 1, 1.5, -2, NAN, INF, -INF, 0.25]),)),
    "histogram between extrema, of float64, of equal numbers": (
        lambda x: (torch.histogram(x, 7), torch.histogram(x.double(), 5, density=True), torch.histogram(x * 0, 3)),
        (normal(300),)),
    "histogram with weights": (
        lambda x, w: torch.histogram(x, 6, range=(-1.0, 2), weight=w, density=True).hist, (normal(200), normal(200).abs())),
    "histogramdd of numbers of bins": (
        lambda x: (lambda h, e: (h, *e))(*torch.histogramdd(x, [3, 4], range=[-1.0, 1, -2, 0.5])), (normal(50, 2),)),
    "abs of complex numbers": (
        lambda x, y: torch.complex(x, y).abs(),
        (t([3e30, 3e-30, INF, NAN, 0, -0.0, 1]), t([4e30, -4e-30, NAN, INF, 0, -2, NAN]))),
    "bincount": (lambda i: (torch.bincount(i), torch.bincount(i, minlength=9)), (t([0, 3, 3, 1]),)),
    "bincount of small types": (
        lambda i: (torch.bincount(i), torch.bincount(i.int(), minlength=300)), (t([255, 3, 255, 1]).byte(),)),
    "bincount with weights": (
        lambda i, w: (torch.bincount(i, w), torch.bincount(i, w.long(), minlength=9)), (t([0, 3, 3, 1]), normal(4) * 9)),
    "histogramdd of edges that are not sorted": (
        lambda x, a, b: torch.histogramdd(x, [a, b]).hist,
        (normal(20, 2) * 3, t([3.0, -2, 0, 5]), t([-4.0, 1, 1, 4]))),
    "repeat_interleave": (lambda x, r: torch.repeat_interleave(x, r, 0), (normal(3, 2), t([2, 0, 3]))),
    "repeat_interleave of 32-bit integers, empty": (
        lambda a, b: (torch.repeat_interleave(a), torch.repeat_interleave(b)), (t([0, 2, 1]).int(), t([0, 0]))),
    "embedding_bag, largest, padding from the end": (
        lambda i, o, w: F.embedding_bag(i, w, o, mode="max", padding_idx=-1, include_last_offset=True),
        (t([0, 3, 2, 3, 3]), t([0, 2, 2, 5]), normal(4, 3))),
    "embedding_bag with weights": (
        lambda i, o, w, p: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=p),
        (t([0, 3, 2, 3, 3, 1]), t([0, 2, 2]), normal(4, 3), normal(6))),
    "embedding_bag of float64": (
        lambda i, o, w: F.embedding_bag(i, w, o, mode="max", padding_idx=1),
        (t([1, 3, 2, 0, 1]), t([0, 1, 4]), normal(4, 3).double())),
    "unique_consecutive": (
        lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), (t([1.0, 1, 2, 1, 1]),)),
    "scatters of float16": (
        lambda x, i: (x.scatter_add(0, i, x[1:]), x.index_add(0, i[0], x[1:], alpha=2), x.index_put((i[0],), x[1:], accumulate=True),
                      x.index_put((i[1],), x[:2]), *(x.scatter_reduce(0, i, x[1:], how) for how in ("sum", "prod", "mean", "amax")),
                      x.bfloat16().scatter_add(0, i, x[1:].bfloat16()).float()),
        (t([[3.0, -2], [0.5, 4], [1, 2]]).half(), t([[1, 1], [0, 2]]))),
    "sets of small types": (
        lambda x: [(torch.unique(y, return_inverse=True, return_counts=True), torch.unique(y[0], sorted=False),
                    torch.unique(y, dim=1), torch.unique_consecutive(y, return_counts=True), torch.unique_consecutive(y, dim=0))
                   for y in (x, x.int(), x.short(), x.byte(), x > 1)],
        (t([[3, 3, 1, 3, 1, 0], [3, 3, 1, 3, 1, 2]], dtype=torch.int8),)),
    "extremes of small types": (
        lambda x: [(y.max(), y.min(0), y.max(1, keepdim=True), y.amax((0, 1)), y.amin(1), y.aminmax()) for y in (x, x > 1)],
        (t([[3, -300, 1], [300, 1, 2]], dtype=torch.int16),)),
    "limits and positions of 16-bit integers": (
        lambda x: (x.argmax(), x.argmin(1), x.clamp(-7, 7), x.clamp_min(x[0, 0]), torch.maximum(x, x[1]), x.relu(), x.sign()),
        (t([[3, -300, 1], [300, 1, 2]], dtype=torch.int16),)),
    "unique_consecutive without counts": (torch.unique_consecutive, (t([3, 3, 1, 2, 2, 3]),)),
    "masks of all elements": (
        lambda x, m: (x[x > 0], torch.masked_select(x, m[:, :1]), x[m[:, 0]]),
        (normal(3, 4), t([[True, False, True, True], [False] * 4, [True] * 4]))),
    "a mask of complex numbers": (lambda x: torch.view_as_real(_complex(x).masked_select(x > 0)), (normal(3, 4),)),
    "masked_scatter": (
        lambda x, m, s: (x.masked_scatter(m, s), x.masked_scatter(x > 9, s[:1, :1]), x.masked_scatter(m[:1], s)),
        (normal(3, 4), t([[False, False, True, True], [False] * 4, [True] * 4]), normal(5, 4))),
    "pdist of equal and of distant rows": (
        lambda x: (torch.pdist(x), torch.pdist(x.double()), torch.pdist(x, 1.0)),
        (torch.cat([normal(4, 5), normal(4, 5)[:1], 1e15 * torch.ones(1, 5)]),)),
    "pdist with NaN": (torch.pdist, (t([[1.0, 2], [NAN, 3], [4, 6]]),)),
    "adaptive_max_pool2d": (
        lambda x: F.adaptive_max_pool2d(x, (3, 4), return_indices=True), (normal(2, 3, 7, 9),)),
    "max_unpool2d": (
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), (normal(1, 2, 4, 4),)),
    "affine_grid": (lambda x: F.affine_grid(x, [2, 1, 3, 4], align_corners=False), (normal(2, 2, 3),)),
    "embedding_bag": (
        lambda i, o, w: F.embedding_bag(i, w, o, mode="mean", padding_idx=0),
        (t([0, 2, 1, 2, 3]), t([0, 2, 2]), normal(4, 3))),
    "gaussian_nll_loss": (F.gaussian_nll_loss, (normal(3, 2), normal(3, 2), normal(3, 2).abs())),
    "solve": (torch.linalg.solve, (normal(2, 4, 4), normal(2, 4, 3))),
    "solve from the right": (lambda a, b: torch.linalg.solve(a, b, left=False), (normal(4, 4), normal(2, 3, 4))),
    "inverse of float64": (torch.linalg.inv, (normal(2, 4, 4).double(),)),
    "triangular solve from the right": (
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=True, left=False, unitriangular=True),
        (normal(4, 4), normal(2, 3, 4))),
    "cholesky of the upper triangle": (
        lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(4), upper=True), (normal(2, 4, 4),)),
    "cholesky_solve": (torch.cholesky_solve, (normal(2, 4, 3), normal(2, 4, 4) + 4 * torch.eye(4))),
    "lu": (torch.linalg.lu, (normal(2, 5, 3),)),
    "lu_solve from the right, adjoint": (
        lambda x, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(x), b, left=False, adjoint=True),
        (normal(2, 4, 4), normal(2, 3, 4))),
    "ldl_factor": (
        torch.linalg.ldl_factor, (t([[0.0, 2, 0], [2, 0, 1], [0, 1, 3]]) + 0 * normal(4, 3, 3),)),
    "ldl_solve": (
        lambda x, b: torch.linalg.ldl_solve(*torch.linalg.ldl_factor(x), b), (normal(4, 6, 6), normal(4, 6, 2))),
    "airy_ai": (torch.special.airy_ai, (t([-30.0, -4, -1, 0, 2, 5, 90]),)),
    "slogdet": (torch.linalg.slogdet, (torch.cat([normal(3, 4, 4), torch.zeros(1, 4, 4)]),)),
    "complete qr": (lambda x: torch.linalg.qr(x, mode="complete"), (normal(2, 5, 3),)),
    "qr of a wide matrix": (torch.linalg.qr, (normal(3, 5),)),
    "ormqr from the right": (
        lambda x, y: torch.ormqr(*torch.geqrf(x), y, left=False, transpose=True), (normal(5, 3), normal(2, 5))),
    "eigh": (
        lambda x: (lambda w, v: (w, (v * w.unsqueeze(-2)) @ v.mT))(*torch.linalg.eigh(x, UPLO="U")), (normal(2, 5, 5),)),
    "eig": (
        lambda x: (lambda w, v: (w, x.to(v.dtype) @ v - v * w.unsqueeze(-2), v.abs()))(*torch.linalg.eig(x)),
        (normal(2, 6, 6).double(),)),
    "eigenvalues": (torch.linalg.eigvals, (normal(2, 3, 3),)),
    "integers where ONNX has floating-point types alone": (
        lambda x: (x.ceil(), x.floor(), x.round(), x.trunc(), x.isfinite(), x.isnan(), x.relu()),
        (torch.tensor([[2, -3], [-1, 0]]),)),
    "scatters into a scalar": (
        lambda x: (x.scatter(0, torch.tensor(0), 2.5), x.scatter(0, torch.tensor(0), x + 1), x.scatter_add(0, torch.tensor(0)[None], x[None])),
        (torch.tensor(3.0),)),
    "real and complex operands": (
        lambda x: (torch.view_as_real(torch.cos(x) + 1j * torch.sin(x)), torch.view_as_real(3 - x.double() / _complex(x))),
        (normal(2, 3),)),
    "half precision complex numbers": (lambda x: x.chalf(), (normal(2, 3),)),
    "full svd": (
        lambda x: (lambda u, s, v: (u @ u.mT, s, (u[..., :3] * s.unsqueeze(-2)) @ v))(*torch.linalg.svd(x)),
        (normal(2, 5, 3),)),
    "pinv with tolerances": (
        lambda x: torch.linalg.pinv(x, atol=0.5, rtol=0.1), (normal(2, 4, 5),)),
    "lstsq": (lambda a, b: torch.linalg.lstsq(a, b, driver="gelsd"), (normal(5, 3), normal(5, 2))),
    "nuclear norm and condition": (
        lambda x: (torch.linalg.matrix_norm(x, "nuc"), torch.linalg.cond(x), torch.linalg.matrix_rank(x)),
        (normal(2, 4, 4),)),
    "copy of another shape": (lambda x, y: x.clone().copy_(y), (normal(2, 3), t([1, 2, 3]))),
    "conv of float64": (
        lambda x, w: F.conv2d(x, w), (normal(1, 2, 5, 5).double(), normal(3, 2, 3, 3).double())),
    "replicate padding that removes": (lambda x: F.pad(x, (-3, 5), mode="replicate"), (normal(1, 2, 3),)),
    "tril_indices": (
        lambda x: torch.cat([torch.tril_indices(4, 6, 1), torch.triu_indices(4, 6, -3)], 1) + x, (t([[1], [2]]),)),
    "one_hot of the classes that occur": (lambda i: F.one_hot(i), (t([[0, 3], [2, 1]]),)),
    "ctc_loss with repeated labels and an impossible one": (
        lambda x, y, n, m: F.ctc_loss(x.log_softmax(-1), y, n, m, reduction="none"),
        (normal(6, 3, 5), t([[1, 1, 2], [4, 0, 0], [3, 2, 1]]), t([6, 5, 2]), t([3, 0, 3]))),
    "ctc_loss of targets in a row": (
        lambda x, y: F.ctc_loss(x.log_softmax(-1), y, (6, 4), (3, 2), zero_infinity=True),
        (normal(6, 2, 5), t([1, 1, 2, 4, 3]))),
    "bits of floats": (
        lambda x, y: (x.view(torch.int32), y.view(torch.int16)),
        (t([0.0, -0.0, 1, -3.7, INF, -INF, NAN, 3e38, 1e-38, 1e-45, -5e-42]), t([0.0, -0.0, 65504, 6e-8, -INF, 1.5]).half())),
    "floats of bits": (
        lambda x, y: (x.view(torch.float32), y.view(torch.float64)),
        (t([0, -(2**31), 0x7F800000, 0x7FC00000, 1, 0x00800000, -0x40800001], dtype=torch.int32),
         t([0, 1, 0x3FF8000000000000, -(2**63) + 5, 0x7FF0000000000000]))),
    "gelu of float64": (F.gelu, (t([-10.0, -1, 0, 2], dtype=torch.float64),)),
}  # fmt: skip


@pytest.mark.parametrize("group", range(9))
def test_edges(group: int) -> None:
    check_together({name: EDGES[name] for name in list(EDGES)[group::9]}, rtol=1e-4, atol=1e-5)


def _complex(x: torch.Tensor) -> torch.Tensor:
    return torch.complex(x, x.flip(-1) + 0.5)


_WEIGHTS = torch.complex(normal(2, 4, 3, 3), normal(2, 4, 3, 3).flip(0))


def _spectral_layer(x: torch.Tensor) -> torch.Tensor:
    """Multiplies the lowest frequencies by complex weights, as a Fourier neural operator does."""
    frequencies = torch.fft.rfft2(x)
    result = torch.zeros(x.shape[0], 4, x.shape[2], x.shape[3] // 2 + 1, dtype=torch.cfloat)
    result[:, :, :3, :3] = torch.einsum("bixy,ioxy->boxy", frequencies[:, :, :3, :3], _WEIGHTS)
    result[:, :, -3:, :3] = torch.einsum("bixy,ioxy->boxy", frequencies[:, :, -3:, :3], _WEIGHTS)
    return torch.fft.irfft2(result, s=(x.shape[2], x.shape[3]))


def _rotary_embedding(x: torch.Tensor) -> torch.Tensor:
    """Rotates pairs by angles, with the operators that LLaMA and SAM 2 use."""
    angles = torch.outer(torch.arange(x.shape[-2]).float(), 0.1 ** torch.arange(x.shape[-1] // 2))
    rotation = torch.polar(torch.ones_like(angles), angles).unsqueeze(0).repeat(x.shape[0], 1, 1)
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * rotation).flatten(-2)


def _there_and_back(step: int) -> Callable[[torch.Tensor], torch.Tensor]:
    window = torch.hann_window(64)

    def call(x: torch.Tensor) -> torch.Tensor:
        frames = torch.stft(x, 64, step, window=window, return_complex=True)
        return torch.istft(frames * 2, 64, step, window=window, length=x.shape[-1])

    return call


TRANSFORMS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "Whisper's length": (lambda x: torch.view_as_real(torch.fft.rfft(x)), (normal(3, 400),)),
    "a prime length": (lambda x: torch.fft.irfft(torch.fft.rfft(x, norm="forward"), n=101), (normal(3, 101),)),
    "first and last dimension": (lambda x: torch.view_as_real(torch.fft.fftn(x, dim=(0, 2))), (normal(6, 2, 7),)),
    "four dimensions": (
        lambda x: torch.fft.irfftn(torch.fft.rfftn(x, norm="ortho"), s=(2, 3, 4, 5)),
        (normal(2, 3, 4, 5),),
    ),
    "float64": (lambda x: torch.view_as_real(torch.fft.ifft2(x)), (normal(2, 6, 10).double(),)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_fourier_transforms(name: str) -> None:
    call, args = TRANSFORMS[name]
    check(call, *args, rtol=1e-5, atol=2e-5 if args[0].dtype == torch.float32 else 1e-12)


COMPLEX: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "spectral layer": (_spectral_layer, (normal(2, 2, 8, 16),)),
    "rotary embedding": (_rotary_embedding, (normal(2, 5, 8),)),
    "stft of a length that is no power of two": (
        lambda x, w: torch.stft(x, 50, 20, window=w, return_complex=True), (normal(2, 300), torch.hann_window(50))),
    "stft of a shorter window, normalized, both sides": (
        lambda x, w: torch.stft(x, 32, 8, 25, w, center=False, normalized=True, onesided=False, return_complex=True),
        (normal(300), torch.hann_window(25))),
    "stft without a window, as pairs": (
        lambda x: torch.view_as_real(torch.stft(x, 30, return_complex=True)), (normal(2, 100).double(),)),
    "istft": (_there_and_back(16), (normal(2, 256),)),
    "istft whose step does not divide the window": (_there_and_back(24), (normal(2, 256),)),
    "rows and columns": (
        lambda x, i: torch.cat([_complex(x)[i], _complex(x).index_select(0, i), _complex(x).tril()]),
        (normal(3, 4), t([2, 0]))),
    "gather and where": (
        lambda x, i: torch.where(x > 0, _complex(x), -_complex(x)).gather(1, i), (normal(3, 4), t([[1], [0], [2]]))),
    "pad, cumsum, unbind": (
        lambda x: F.pad(_complex(x), (1, 2), value=3.0).cumsum(1).unbind(0)[1], (normal(3, 4),)),
    "assignment": (
        lambda x: torch.ones(3, 4, dtype=torch.cfloat).index_put((t([1]),), _complex(x)[0]), (normal(3, 4),)),
    "masked": (lambda x: _complex(x).masked_fill(x > 0, 2).split(2, 1)[1], (normal(3, 4),)),
    "exp and log": (lambda x: torch.log(torch.exp(_complex(x))), (normal(3, 4),)),
    "sqrt of negative numbers": (
        lambda x, y: torch.complex(x, y).sqrt(), (t([-4.0, -4, 4, 0, -1]), t([1e-3, -1e-3, 3, 0, 5]))),
    "powers": (lambda x: _complex(x) ** 3 + _complex(x) ** -1 + _complex(x) ** 1.5, (normal(3, 4),)),
    "elementary": (lambda x: _complex(x).sin() + _complex(x).cos(), (normal(3, 4),)),
    "hyperbolic": (lambda x: _complex(x).sinh() + _complex(x).cosh() + _complex(x * 50).tanh(), (normal(3, 4),)),
    "sigmoid": (lambda x: _complex(x).sigmoid(), (normal(3, 4),)),
    "product": (lambda x: _complex(x).prod(1, keepdim=True), (normal(3, 4),)),
    "linear": (lambda x: F.linear(_complex(x), _complex(x), _complex(x)[:, 0]), (normal(3, 4),)),
    "silu": (lambda x: F.silu(_complex(x)), (normal(3, 4),)),
    "sign": (lambda x: _complex(x).sgn(), (normal(3, 4),)),
    "comparisons": (
        lambda x: [_complex(x) == _complex(x), _complex(x) != _complex(x) + 1, torch.isfinite(_complex(x / 0))],
        (t([[1.0, 0], [-1, NAN]]),)),
    "covariance": (
        lambda x, w: (torch.cov(_complex(x)), torch.corrcoef(_complex(x)), torch.cov(_complex(x), aweights=w)),
        (normal(3, 5), t([1.0, 2, 3, 4, 5]))),
    "alias and squeeze": (
        lambda x: (torch.ops.aten.alias(_complex(x)), _complex(x).squeeze(-1), _complex(x)[:1].squeeze(0)),
        (normal(3, 4),)),
    "copy of integers": (lambda x, y: _complex(x).copy_(y), (normal(2, 3), t([1, 2, 3]))),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(name: str) -> None:
    call, args = COMPLEX[name]

    def in_pairs(*given: torch.Tensor) -> Any:
        result = call(*given)
        results = [result] if isinstance(result, torch.Tensor) else result
        return [torch.view_as_real(x.resolve_conj()) if x.is_complex() else x for x in results]

    check(in_pairs, *args, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", [16, 13])
def test_inverse_transform_of_any_length(length: int) -> None:
    model = Call(
        lambda x: torch.fft.irfft2(torch.fft.rfft2(x, norm="ortho"), s=x.shape[-2:]), ((normal(2, 8, 16),), {})
    )
    auto = torch.export.Dim.AUTO
    with polyop.translations():
        program = torch.onnx.export(
            model, (normal(2, 8, 16),), dynamo=True, verbose=False, dynamic_shapes=(({0: auto, 1: auto, 2: auto},),)
        )
    session = session_of(program)
    x = normal(3, 8, length)
    result = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
    np.testing.assert_allclose(result, model(x).numpy(), rtol=1e-3, atol=1e-3)


ACCURATE = {
    "lgamma": (special.gammaln, -9.7, 40), "digamma": (special.psi, -9.7, 40), "erfinv": (special.erfinv, -1, 1),
    "special_ndtri": (special.ndtri, 0, 1), "special_erfcx": (special.erfcx, -5, 40), "i0": (special.i0, -20, 20),
    "special_bessel_j1": (special.j1, -9.7, 40), "special_bessel_y0": (special.y0, 0, 40),
    "special_modified_bessel_k1": (special.k1, 0, 40), "special_airy_ai": (lambda x: special.airy(x)[0], -30, 9),
    "special_log_ndtr": (special.log_ndtr, -40, 9), "special_i1e": (special.i1e, -40, 40),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCURATE)
def test_special_functions_are_accurate(name: str) -> None:
    reference, low, high = ACCURATE[name]
    x = torch.linspace(low, high, 777, dtype=torch.float64)
    result = TRANSLATIONS[f"aten::{name}"].function(x)
    np.testing.assert_allclose(result.numpy(), reference(x.numpy()), rtol=1e-11, atol=1e-12)


def _trigamma(x: np.ndarray) -> np.ndarray:
    """scipy's is NaN for negative numbers."""
    sine = np.sin(np.pi * (x - np.round(x)))
    above = special.zeta(2, np.where(x < 0, 1 - x, x))
    return np.where(x < 0, (np.pi / sine) ** 2 - above, above)


STANDARD_FORMS = {
    ("erf", 0): special.erf, ("erf", 1): special.erfc, ("erf", 2): special.erfcx, ("erf", 3): special.log_ndtr,
    ("erf", 4): special.erfinv, ("erf", 5): special.ndtri, ("gamma", 0): special.gammaln,
    ("gamma", 1): special.psi, ("gamma", 2): _trigamma, ("bessel_i", 0): special.i0, ("bessel_i", 1): special.i1, ("bessel_i", 2): special.i0e,
    ("bessel_i", 3): special.i1e, ("bessel_k", 0): special.k0, ("bessel_k", 1): special.k1,
    ("bessel_k", 2): special.k0e, ("bessel_k", 3): special.k1e, ("bessel_j", 0): special.j0,
    ("bessel_j", 1): special.j1, ("bessel_j", 2): lambda x: np.sinc(x / np.pi), ("bessel_y", 0): special.y0, ("bessel_y", 1): special.y1,
    ("airy", 0): lambda x: special.airy(x)[0], ("elementary", 0): np.tan, ("elementary", 1): np.sinh,
    ("elementary", 2): np.cosh, ("elementary", 3): np.arctanh, ("elementary", 4): lambda x: np.logaddexp(0, x),
    ("elementary", 5): lambda x: x * np.tanh(np.logaddexp(0, x)), ("elementary", 6): special.entr,
    ("elementary", 7): special.logit,
}  # fmt: skip


@pytest.mark.parametrize("name", STANDARD, ids=lambda name: f"{name[0]} {name[1]}")
def test_special_functions_by_standard_operators_equal_the_node(name: tuple[str, int]) -> None:
    """The function of a portable file computes the same as the node."""
    x = torch.cat([torch.linspace(-9.7, 30, 777, dtype=torch.float64), torch.linspace(0.001, 0.999, 99).double()])
    node = torch.ops.polyop.special_unary(x, function=name[0], variant=name[1])
    with np.errstate(all="ignore"):
        expected = STANDARD_FORMS[name](x.numpy())
    np.testing.assert_allclose(node.numpy(), expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(STANDARD[name](x).numpy(), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        (
            ("gamma", 0),
            [1 + 1e-12, 1 - 1e-9, 2 - 1e-9],
            [-5.772669797094564e-13, 5.77215649399226e-10, -4.227843697573328e-10],
        ),
        (("gamma", 1), [1.46163214496836, 1.4616], [-2.2410766695906462e-15, -3.110625123034165e-05]),
        (("bessel_k", 0), [1e-305, 1e-301], [702.4043848788424, 693.1940445068661]),
        (("bessel_k", 1), [1e-305, 1e-301], [1e305, 9.999999999999999e300]),
        (("bessel_y", 1), [1e-305, 1e10], [-6.366197723675814e304, -2.175591750630717e-06]),
        (("bessel_j", 0), [1e5, 1e10], [-0.0017192011162359723, 2.175591750246892e-06]),
    ],
    ids=str,
)
def test_special_functions_near_limits_and_zeros(name: tuple[str, int], x: list[float], expected: list[float]) -> None:
    """The values are those of mpmath."""
    numbers = torch.tensor(x, dtype=torch.float64)
    node = torch.ops.polyop.special_unary(numbers, function=name[0], variant=name[1])
    for result in (node, STANDARD[name](numbers)):
        np.testing.assert_allclose(result.numpy(), expected, rtol=2e-14, atol=0)


PAIRS = {
    "igamma": (special.gammainc, [0.5, 3, 70, 900, 5e4], [0.2, 4, 66, 930, 5.01e4]),
    "igammac": (special.gammaincc, [0.5, 3, 70, 900, 5e4], [0.2, 4, 66, 930, 5.01e4]),
    "special_zeta": (special.zeta, [1.5, 2, 9, 30], [0.3, 40, 7, 2]),
    "special_hermite_polynomial_he": (lambda x, n: special.eval_hermitenorm(n.astype(int), x), [0.5, -2, 3], [0, 7, 40]),
    "special_legendre_polynomial_p": (lambda x, n: special.eval_legendre(n.astype(int), x), [0.5, -0.2, 1], [0, 7, 300]),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_arguments_are_accurate(name: str) -> None:
    reference, a, b = PAIRS[name]
    a, b = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    result = TRANSLATIONS[f"aten::{name}"].function(a, b)
    np.testing.assert_allclose(result.numpy(), reference(a.numpy(), b.numpy()), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1, [19.736713482200887, 9.838356943352306, 8.934802200544679, 0.15354517795933756]),
        (2, [124.02510049458073, -0.0009763242170921921, -0.82879664423432, -0.023530472985855238]),
        (5, [492231.2671105559, 15382.227096490487, 15371.113548602436, 0.0020094931750490293]),
    ],
)
def test_polygamma_far_below_zero(n: int, expected: list[float]) -> None:
    """The values are those of mpmath."""
    x = torch.tensor([-400.25, -31.5, -0.5, 7.0], dtype=torch.float64)
    result = TRANSLATIONS["aten::polygamma"].function(n, x)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-11, atol=1e-9)


def test_every_translation_belongs_to_an_operator() -> None:
    for module in ("torch.ao.quantization.fx._decomposed", "transformers.integrations.moe"):
        importlib.import_module(module)  # which define operators
    unknown = [target for target in TRANSLATIONS if overload(target) is None]
    assert not unknown


# ---- graphs ----------------------------------------------------------------------------------------


def test_a_users_table_has_priority() -> None:
    op = pytest.importorskip("onnxscript").opset18

    def cumprod(self: Any, dim: int, dtype: int = -1) -> Any:
        return op.Identity(self)

    with polyop.translations():
        program = torch.onnx.export(
            Call(lambda x: x.cumprod(0), ((normal(3),), {})),
            (normal(3),),
            dynamo=True,
            verbose=False,
            custom_translation_table={torch.ops.aten.cumprod.default: cumprod},
        )
    assert program is not None
    assert "Identity" in {node.op_type for node in program.model_proto.graph.node}


class Running(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.cummax(0).values + torch.special.erfcx(x)


def test_nodes_name_the_operator_that_was_translated() -> None:
    with polyop.translations():
        program = torch.onnx.export(Running(), (normal(5),), dynamo=True, verbose=False)
    assert program is not None
    operators = [
        {entry.key: entry.value for entry in node.metadata_props}.get("polyop.pytorch_operator")
        for node in program.model_proto.graph.node
    ]
    assert {"aten::cummax", "aten::special_erfcx"} == set(operators) - {None}
    assert operators[-1] is None  # the sum, which PyTorch exports


@pytest.mark.parametrize("x", [
    normal(3, 4), normal(3, 4).double(), normal(2, 3).half(), t([[INF, -0.0, 1e-40]]), t([[-3, 5, 1 << 62]]),
    t([[3, 250]], dtype=torch.uint8), t([[True, False, True]]), normal(3),
], ids=str)  # fmt: skip
def test_hash_tensor(x: torch.Tensor) -> None:
    whole, rows = _exported(lambda x: (torch.hash_tensor(x), torch.hash_tensor(x, -1, keepdim=True)), x)
    assert whole.view(np.int64) == torch.hash_tensor(x).view(torch.int64).numpy()
    np.testing.assert_array_equal(rows.view(np.int64), torch.hash_tensor(x, -1, keepdim=True).view(torch.int64).numpy())


def _session_of_dynamic_sizes(call: Callable[..., Any], x: torch.Tensor) -> ort.InferenceSession:
    sizes = dict.fromkeys(range(x.dim()), torch.export.Dim.AUTO)
    with polyop.translations():
        program = torch.onnx.export(
            Call(call, ((x,), {})), (x,), dynamo=True, verbose=False, dynamic_shapes=((sizes,),)
        )
    return session_of(program)


@pytest.mark.parametrize("shape", [(2, 3, 6, 7), (3, 6, 7)], ids=str)
def test_unfold_of_sizes_that_are_not_constant(shape: tuple[int, ...]) -> None:
    def call(x: torch.Tensor) -> torch.Tensor:
        return F.unfold(x, (2, 3), dilation=(1, 2), padding=(1, 0), stride=(2, 1))

    session = _session_of_dynamic_sizes(call, normal(*shape))
    for more in (0, 1, 4):
        x = normal(*(size + more for size in shape))
        np.testing.assert_array_equal(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0], call(x).numpy())


def test_bincount_of_any_number_of_integers() -> None:
    def call(x: torch.Tensor) -> torch.Tensor:
        return torch.bincount(x, minlength=5)

    session = _session_of_dynamic_sizes(call, t([1, 2, 2]))
    name = session.get_inputs()[0].name
    for values in ([], [0], [4, 4, 7], [*range(1000), 3]):
        x = torch.tensor(values, dtype=torch.int64)
        np.testing.assert_array_equal(session.run(None, {name: x.numpy()})[0], call(x).numpy())
    with pytest.raises(Exception, match="out of data bounds"):  # its lower 32 bits are in the range
        session.run(None, {name: np.array([2**32 + 3, 1])})


def test_mean_of_elements_that_are_selected() -> None:
    def call(x: torch.Tensor) -> Any:
        rows = x[x[:, 0] > 0]
        return x[x > 0].mean(), rows.mean(0), rows.half().mean((0, 1), keepdim=True), rows.mean(1), x.mean(0)

    check(call, torch.eye(4) + 1, others=[(-torch.ones(4, 4),), (torch.eye(4),)], atol=1e-3)


@pytest.mark.parametrize("how", [{"batch_first": True}, {"padding_side": "left"}], ids=str)
def test_pad_sequence_of_dynamic_lengths(how: dict[str, Any]) -> None:
    def call(*sequences: torch.Tensor) -> torch.Tensor:
        return torch.nn.utils.rnn.pad_sequence(list(sequences), padding_value=-1.0, **how)

    lengths = [(7, 2, 4), (2, 2, 9)]
    others = [tuple(normal(length, 2) for length in of_call) for of_call in lengths]
    check(call, normal(3, 2), normal(5, 2), normal(4, 2), others=others, dynamic=[(0,), (0,), (0,)])


def test_sizes_of_complex_numbers() -> None:
    def call(x: torch.Tensor) -> torch.Tensor:
        return x.abs().reshape(x.shape[0], -1) * x.shape[-1] + x.numel()

    session = _session_of_dynamic_sizes(call, torch.complex(normal(2, 3, 5), normal(2, 3, 5)))
    for shape in [(2, 3, 5), (4, 2, 7), (3, 6, 2)]:
        x = torch.complex(normal(*shape), normal(*shape))
        pairs = torch.view_as_real(x).numpy()
        np.testing.assert_allclose(session.run(None, {session.get_inputs()[0].name: pairs})[0], call(x).numpy(), 1e-6)


SLOW = {
    "repeat_interleave": (lambda x, n: torch.repeat_interleave(x, n, 0), (normal(3, 2), t([2, 0, 3]))),
    "embedding_bag": (lambda i, o, w: F.embedding_bag(i, w, o, mode="sum"), (t([0, 2, 1]), t([0, 2]), normal(4, 3))),
    "affine_grid": (lambda a: F.affine_grid(a, [2, 1, 3, 4], align_corners=False), (normal(2, 2, 3),)),
}


@pytest.mark.parametrize("name", SLOW)
def test_slow_forms_are_replaced(name: str) -> None:
    """PyTorch's own forms loop over bags, or compare all indices with all ends. bench/translations.py has times."""
    call, args = SLOW[name]
    with polyop.translations():
        program = torch.onnx.export(Call(call, (args, {})), args, dynamo=True, verbose=False)
    assert program is not None
    nodes = program.model_proto.graph.node
    assert not {"Loop", "Scan", "Less", "GatherND"} & {node.op_type for node in nodes}
    assert any(e.key == "polyop.pytorch_operator" and name in e.value for n in nodes for e in n.metadata_props)


def test_translations_decompose_an_exported_program() -> None:
    x = normal(5)
    program = torch.export.export(Running(), (x,))
    program = program.run_decompositions({**torch.export.default_decompositions(), **polyop.translations()})
    targets = {node.target for node in program.graph.nodes}
    assert torch.ops.aten.special_erfcx.default not in targets
    torch.testing.assert_close(program.module()(x), Running()(x))


def _stopped(call: Callable[..., Any], x: torch.Tensor) -> str:
    """Returns the error of the exported file."""
    with pytest.raises(Exception, match=r"MatrixSolve|MatrixFactors|InverseTRT|Eigh|Eig|SVD") as error:
        _exported(call, x)
    return str(error.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["inv", "solve", "cholesky", "lu_factor", "svd", "eigh", "eig"])
def test_matrices_without_a_result_raise_the_errors_of_pytorch(name: str, dtype: torch.dtype) -> None:
    def call(x: torch.Tensor) -> Any:
        return torch.linalg.solve(x, x) if name == "solve" else getattr(torch.linalg, name)(x)

    one = (
        torch.diag(t([1.0, 0, 2])).to(dtype) if name not in ("svd", "eigh", "eig") else t([[NAN] * 3] * 3, dtype=dtype)
    )
    for x in (one, torch.stack([torch.eye(len(one), dtype=dtype), one])):
        with pytest.raises(RuntimeError) as error:
            call(x)
        expected = re.sub(r"error code: \d+", "error code: 1", str(error.value))
        assert expected in _stopped(call, x)


def test_variants_with_info_do_not_raise() -> None:
    x = torch.stack([torch.eye(2), torch.zeros(2, 2)])
    for call in (torch.linalg.inv_ex, torch.linalg.cholesky_ex, torch.linalg.lu_factor_ex):
        got = _exported(call, x)
        np.testing.assert_array_equal(got[0][0], np.eye(2))
        np.testing.assert_array_equal(got[-1], call(x).info.numpy())
    got = _exported(lambda x: torch.linalg.solve_ex(x, x), x)
    np.testing.assert_array_equal(got[1], [0, 1])


# ---- polyop.export ---------------------------------------------------------------------------------


class Convolution(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 8, 3)
        self.linear = torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.convolution(x).relu().mean((2, 3)))


def test_export_of_a_program_that_pt2e_quantized(tmp_path: Path) -> None:
    pt2e = pytest.importorskip("torchao.quantization.pt2e.quantize_pt2e")
    quantizers = importlib.import_module("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    quantizer = quantizers.X86InductorQuantizer().set_global(quantizers.get_default_x86_inductor_quantization_config())
    x = normal(2, 3, 8, 8)
    prepared = pt2e.prepare_pt2e(torch.export.export(Convolution().eval(), (x,)).module(), quantizer)
    prepared(x)
    report = polyop.export(pt2e.convert_pt2e(prepared), x, tmp_path / "q.onnx", exporter="dynamo", verbose=False)
    assert report.nodes["QuantizeLinear"] == 2  # before the convolution and before the linear layer
    assert report.nodes["DequantizeLinear"] == 4  # with those of the weights


@torch.library.custom_op("tests::unknown", mutates_args=())
def unknown(x: torch.Tensor) -> torch.Tensor:
    return x + 1


unknown.register_fake(torch.empty_like)


class Unknown(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.tests.unknown(x)


class Sparse(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to_sparse() @ x


def test_export_lists_what_it_translated(tmp_path: Path) -> None:
    report = polyop.export(Running(), normal(5), tmp_path / "running.onnx", verbose=False)
    assert report.translated == {"aten::cummax": 1, "aten::special_erfcx": 1}
    assert "translated: aten::cummax x1, aten::special_erfcx x1" in report.summary()


def test_export_says_which_line_has_no_onnx_form(tmp_path: Path) -> None:
    with pytest.raises(polyop.ExportError) as error:
        polyop.export(Unknown(), normal(4, 4), tmp_path / "unknown.onnx", exporter="dynamo", verbose=False)
    line = Unknown.forward.__code__.co_firstlineno + 1
    assert f"tests::unknown has no ONNX form, called at {__file__}:{line}" in str(error.value)
    assert "\n  write a kernel for it: `polyop new unknown`" in str(error.value)


def test_export_offers_no_kernel_for_sparse_tensors(tmp_path: Path) -> None:
    with pytest.raises(polyop.ExportError) as error:
        polyop.export(Sparse(), normal(4, 4), tmp_path / "sparse.onnx", exporter="dynamo", verbose=False)
    assert "write instead: a dense tensor: ONNX Runtime has no kernels for sparse ones" in str(error.value)
    assert "polyop new" not in str(error.value)


class Eigenvalues(torch.nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(x) * scale


def test_export_compares_complex_inputs_and_outputs(tmp_path: Path) -> None:
    x, scale = normal(2, 3, 3), torch.complex(normal(3), normal(3).flip(0))
    report = polyop.export(Eigenvalues(), (x, scale), tmp_path / "e.onnx", exporter="dynamo", verbose=False)
    assert set(report.translated) == {"aten::linalg_eigvals"}
    assert report.nodes["polyop::Eig"] == 1


class Comparison(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> bool:
        return torch.equal(x, y)


@pytest.mark.parametrize("rows", [2, 3])
def test_export_of_equal(tmp_path: Path, rows: int) -> None:
    x = normal(3, 2)
    report = polyop.export(Comparison(), (x, x[:rows]), tmp_path / "e.onnx", exporter="dynamo", verbose=False)
    assert [output.agrees for output in report.outputs] == [True]


class Branching(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x - 1


def test_export_says_which_line_depends_on_values(tmp_path: Path) -> None:
    with pytest.raises(polyop.ExportError) as error:
        polyop.export(Branching(), normal(4), tmp_path / "branching.onnx", exporter="dynamo", verbose=False)
    line = Branching.forward.__code__.co_firstlineno + 1
    assert f"a Python condition depends on values of a tensor, at {__file__}:{line}" in str(error.value)
    assert "write instead: torch.where for `if`" in str(error.value)


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / (x * x + 1e-9) * 1.00001


def test_numbers_near_zero_and_one_are_kept(tmp_path: Path) -> None:
    x = normal(5) * 1e-5
    report = polyop.export(Scaled(), x, tmp_path / "s.onnx", exporter="dynamo", verbose=False, rtol=2e-6, atol=0)
    assert report.outputs[0].agrees


class Clipped(torch.nn.Module):
    """Clips one tensor several times, as linear layers with limits of their input do."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("limits", torch.tensor([[-1.0, 1.0], [-0.5, 0.25], [-torch.inf, 0.75]]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        doubled = x * 2
        return torch.cat([doubled.clamp(low, high) for low, high in self.limits])


def test_clips_of_one_tensor_have_limits_of_their_own(tmp_path: Path) -> None:
    report = polyop.export(Clipped(), normal(7), tmp_path / "c.onnx", exporter="dynamo", verbose=False)
    assert report.outputs[0].largest_difference == 0


class Switch(torch.nn.Module):
    """Asks for an element of a buffer, and counts its calls in another one."""

    enabled: torch.Tensor
    calls: torch.Tensor

    def __init__(self, enabled: list[float]) -> None:
        super().__init__()
        self.register_buffer("enabled", torch.tensor(enabled))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x + 1 if self.enabled[1] > 0 else x - 1


@pytest.mark.parametrize("enabled", [0.0, 1.0])
def test_export_of_a_condition_on_a_buffer(tmp_path: Path, enabled: float) -> None:
    model = Switch([0.5, enabled])
    report = polyop.export(model, normal(4), tmp_path / "switch.onnx", exporter="dynamo", verbose=False)
    assert report.outputs[0].agrees
    assert not report.assumes_sizes
    assert model.calls.item() == 1  # the call that gives the expected outputs


class Found(torch.nn.Module):
    """Returns the positive elements, or a zero if there are none."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = x[x > 0]
        return x.new_zeros(1) if found.shape[0] == 0 else found.sort().values


def test_export_assumes_that_sizes_of_results_are_2_or_more(tmp_path: Path) -> None:
    path = tmp_path / "found.onnx"
    report = polyop.export(Found(), torch.tensor([2.0, -1.0, 1.0]), path, exporter="dynamo", verbose=False)
    assert report.outputs[0].agrees
    assert report.assumes_sizes
    assert "assumed: sizes that depend on values of tensors are 2 or more" in report.summary()


class Count(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum().to(torch.int64).item() == 0 else -x


def test_export_assumes_nothing_of_numbers_that_are_no_sizes(tmp_path: Path) -> None:
    with pytest.raises(polyop.ExportError, match="a Python condition depends on values of a tensor"):
        polyop.export(Count(), normal(4), tmp_path / "count.onnx", exporter="dynamo", verbose=False)


# ---- functions of complex numbers -------------------------------------------------------------------


_COMPLEX_FUNCTIONS = (
    "sqrt", "rsqrt", "log2", "log10", "exp2", "expm1", "log1p", "tan", "acos", "asin", "atan", "acosh", "asinh",
    "atanh", "sinc",
)  # fmt: skip


def test_functions_of_complex_numbers() -> None:
    """Also on both sides of the branch cuts, which the sign of a zero tells apart."""
    cuts = [(real, zero) for real in (-3.0, -0.25, 0.25, 3.0) for zero in (0.0, -0.0)]
    points = torch.tensor([*cuts, *((zero, real) for real, zero in cuts), *(normal(9, 2) * 3).tolist()])

    def call(pairs: torch.Tensor) -> Any:
        z = torch.view_as_complex(pairs)
        return [
            *(torch.view_as_real(getattr(torch, name)(z)) for name in _COMPLEX_FUNCTIONS),
            torch.view_as_real(torch.pow(2.0, z)),
            torch.view_as_real(torch.full_like(z, 2 + 1j)),
            torch.view_as_real(torch.logaddexp(z, z * 0.5)),
            torch.logical_or(z, z * 0),
            torch.view_as_real(torch.where(z.real > 0, z, 2)),
            torch.view_as_real(torch.where(z.real > 0, 1j, z)),
            torch.isclose(z, z * (1 + 1e-6)),
            torch.isclose(z, z / 0, equal_nan=True),
        ]

    check(call, points, dynamic=[(0,)], rtol=1e-5, atol=1e-5)


# ---- PyTorch's test databases ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["index_reduce.mean", "masked_select", "grid_sampler_3d", "nn.Transformer", "matrix_exp"]
)
def test_sample(name: str) -> None:
    status, reason = outcome(name, "f32", "static")
    assert status == "right", reason


@pytest.mark.parametrize(
    ("name", "dtype", "shapes"),
    [
        ("chunk", "f32", "auto"), ("squeeze.multiple", "f32", "auto"), ("nn.functional.batch_norm", "f32", "auto"),
        ("model: sdpa of three dimensions", "f32", "auto"), ("model: flex_attention with a mask", "f32", "static"),
        ("model: flex_attention with a score", "f32", "auto"), ("model: packed LSTM", "f32", "auto"),
        ("model: packed LSTM, not sorted", "f64", "static"), ("model: packed GRU, both ways", "f32", "static"),
        ("model: packed RNN", "f32", "static"), ("model: LSTM with proj_size", "f32", "static"),
        ("model: FakeQuantize", "f32", "static"), ("model: _int_mm", "f32", "auto"),
        ("model: view of integers as floats", "f32", "auto"), ("model: grouped products of experts", "f32", "static"),
        ("model: _weight_int8pack_mm", "f32", "auto"), ("model: product of float8", "f32", "static"),
        ("model: fake_quantize", "f32", "auto"), ("model: quantized per token", "f32", "static"), ("model: quantized dynamically", "f32", "auto"),
        ("model: soft argmax", "f32", "auto"), ("model: window partition and shift", "f32", "static"),
        ("nn.LSTM", "f32", "auto"), ("nn.GRU", "f32", "auto"), ("nn.LSTM", "f64", "static"),
        ("nn.GRU", "f64", "static"), ("multinomial", "f64", "static"), ("native_layer_norm", "f64", "static"),
        ("geqrf", "f32", "auto"), ("std_mean.unbiased", "f64", "auto"), ("linalg.eig", "f64", "auto"),
        ("equal", "f32", "auto"), ("histogram", "f32", "auto"), ("histogramdd", "f64", "auto"), ("istft", "f32", "auto"),
        ("linalg.qr", "c64", "sizes"), ("linalg.svd", "c64", "sizes"), ("linalg.eig", "c64", "sizes"),
        ("linalg.solve", "c64", "sizes"), ("linalg.cholesky", "c64", "sizes"), ("linalg.det", "c64", "sizes"),
        ("linalg.lu_solve", "c64", "sizes"), ("linalg.householder_product", "c64", "sizes"),
        ("nn.functional.linear_cross_entropy#17", "f32", "sizes"),
        ("nn.functional.scaled_dot_product_attention#22", "f32", "sizes"),
    ],
)  # fmt: skip
def test_sample_of_types_and_shapes(name: str, dtype: str, shapes: str) -> None:
    status, reason = outcome(name, dtype, shapes)
    assert status == "right", reason
