#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times calls of PyTorch's operators: the exported file in ONNX Runtime, and eager PyTorch.

python bench/pytorch_operators.py [--only REGEX] [--threads 1,2] [--direct] [--optimize] [--keep]

Prints a table in Markdown. Results are compared before they are timed. A time is the minimum of single calls, which
are interleaved: on one thread the time that the processor spends, otherwise the time that passes, so that other
programs of a shared machine count little. --keep writes the rows into results/pytorch_operators.json, of which
docs/pytorch-operators.md has a summary, which tools/pytorch_operators.py writes; rows of calls that were not timed
stay. --direct also times the translated program in PyTorch, --optimize the file that `polyop optimize` writes. All
calls take some eight minutes on idle cores.
"""

from __future__ import annotations

import argparse
import io
import logging
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import harness
import numpy as np
import onnx
import records
import torch
from timing import interleaved, once
from torch import Tensor

import polyop
from polyop.optimizing import optimize

RESULTS = Path(__file__).with_name("results") / "pytorch_operators.json"
FFT, SMALL, LARGE = 1.3, 1 / 3, 1.2  # targets: time of the file, divided by that of eager PyTorch
MANY = 10_000
SECONDS, MIN_ROUNDS, MAX_ROUNDS = 0.4, 4, 80  # of a call

Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    group: str
    title: str
    function: Function
    inputs: tuple[Tensor, ...]
    target: float = LARGE
    compared: int | None = None  # the number of outputs that have one right value; None: all
    tolerance: float = 1e-3


class Module(torch.nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def uniform(*shape: int, low: float = 0, high: float = 1, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) * (high - low) + low


def integers(high: int, *shape: int) -> Tensor:
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(0))


# ---- Fourier transforms ----------------------------------------------------------------------------


def transforms() -> Iterator[Case]:
    lines = {64: 2000, 100: 1000, 256: 500, 400: 300, 401: 300, 480: 300, 512: 256, 1000: 100, 1024: 128}
    lines |= {2048: 64, 4096: 32, 6000: 16, 10_007: 4, 16_000: 8, 65_536: 2, 100_000: 1, 1 << 20: 1}
    for length, count in lines.items():
        yield Case("FFT", f"rfft {count} x {length}", torch.fft.rfft, (normal(count, length),), FFT)
    for length in (256, 400, 1000, 1024, 16_000, 65_536):
        z = normal(lines[length], length, dtype=torch.complex64)
        yield Case("FFT", f"fft {lines[length]} x {length}", torch.fft.fft, (z,), FFT)
    for length in (400, 1024, 16_000):
        half = torch.fft.rfft(normal(lines[length], length))
        yield Case("FFT", f"irfft {lines[length]} x {length}", torch.fft.irfft, (half,), FFT)
    yield Case("FFT", "rfft2 8 x 3 x 224 x 224", torch.fft.rfft2, (normal(8, 3, 224, 224),), FFT)
    yield Case("FFT", "fft2 16 x 128 x 128", torch.fft.fft2, (normal(16, 128, 128, dtype=torch.complex64),), FFT)
    yield Case("FFT", "fft2 1 x 1000 x 1000", torch.fft.fft2, (normal(1, 1000, 1000, dtype=torch.complex64),), FFT)
    yield Case("FFT", "fftn 2 x 32 x 48 x 64", torch.fft.fftn, (normal(2, 32, 48, 64),), FFT)
    yield Case("FFT", "rfftn 64 x 64 x 64", torch.fft.rfftn, (normal(64, 64, 64),), FFT)
    yield Case("FFT", "rfft 200 x 400, float64", torch.fft.rfft, (normal(200, 400, dtype=torch.float64),), FFT)
    window = torch.hann_window(400)

    def spectrogram(x: Tensor) -> Tensor:
        return torch.stft(x, 400, 160, window=window, return_complex=True).abs()

    yield Case("FFT", "stft of 10 s, 400 by 160", spectrogram, (normal(1, 160_000),), FFT)


# ---- matrices --------------------------------------------------------------------------------------


def positive(*shape: int) -> Tensor:
    a = normal(*shape)
    return a @ a.mT / shape[-1] + torch.eye(shape[-1])


def matrix_functions(a: Tensor, b: Tensor, p: Tensor, target: float, title: str) -> Iterator[Case]:
    linalg = torch.linalg
    for name, function, inputs, compared in (
        ("inverse", linalg.inv, (p,), None),
        ("solve", linalg.solve, (p, b), None),
        ("cholesky", linalg.cholesky, (p,), None),
        ("cholesky_solve", torch.cholesky_solve, (b, linalg.cholesky(p)), None),
        ("solve_triangular", lambda x, y: linalg.solve_triangular(x, y, upper=False), (linalg.cholesky(p), b), None),
        ("lu_factor", linalg.lu_factor, (p,), None),
        ("slogdet", linalg.slogdet, (p,), None),
        ("qr", linalg.qr, (a,), None),
        ("eigvals", lambda x: linalg.eigvals(x).abs().sum(-1), (a,), None),
        ("eig", lambda x: linalg.eig(x).eigenvectors.abs().square().sum(-2), (a,), None),
        ("eigh", linalg.eigh, (a + a.mT,), 1),
        ("eigvalsh", linalg.eigvalsh, (a + a.mT,), None),
        ("svd", lambda x: linalg.svd(x)[1:], (a,), 1),
        ("svdvals", linalg.svdvals, (a,), None),
    ):
        group = "small matrices" if target == SMALL else "large matrices"
        yield Case(group, f"{name} {title}", function, inputs, target, compared, 1e-2)


def matrices() -> Iterator[Case]:
    for size in (3, 4, 8, 16):
        a, b, p = normal(MANY, size, size), normal(MANY, size, 1, seed=1), positive(MANY, size, size)
        yield from matrix_functions(a, b, p, SMALL, f"{MANY:,} x {size} x {size}")
    for size in (128, 512):
        a, b, p = normal(size, size), normal(size, 8, seed=1), positive(size, size)
        yield from matrix_functions(a, b, p, LARGE, f"{size} x {size}")


def matrices_of_lower_rank() -> Iterator[Case]:
    """Matrices whose singular values are 0 but for rounding errors, or differ by orders of magnitude."""
    for size, count in ((512, 1), (8, MANY)):
        shape, target = ((size, size), LARGE) if count == 1 else ((count, size, size), SMALL)
        a, decay = normal(*shape), 0.9 ** torch.arange(size)[:, None]
        half = torch.arange(size)[:, None] < size // 2
        group = "large matrices" if count == 1 else "small matrices"
        for title, matrix in (
            ("of rank 5", normal(*shape[:-1], 5) @ normal(*shape[:-2], 5, size, seed=1)),
            ("half of whose rows are 0", a * half),
            ("of graded rows", a * decay),
            ("near the unit matrix", torch.eye(size) + 1e-3 * a),
        ):
            where = f"{' x '.join(f'{n:,}' for n in shape)} {title}"
            yield Case(group, f"svd {where}", lambda x: torch.linalg.svd(x)[1], (matrix,), target, None, 1e-2)
            yield Case(group, f"svdvals {where}", torch.linalg.svdvals, (matrix,), target, None, 1e-2)
            yield Case(group, f"pinv {where}", lambda x: torch.linalg.pinv(x, rtol=1e-4), (matrix,), target, None, 1e-2)


# ---- search, order, histograms ---------------------------------------------------------------------


def searches() -> Iterator[Case]:
    edges, values = torch.sort(normal(1000))[0], normal(100_000, seed=1)
    rows = normal(1000, 1000)
    labels = integers(1000, 100_000)
    for name, function, inputs, compared in (
        ("searchsorted 100,000 in 1,000", torch.searchsorted, (edges, values), None),
        ("bucketize 100,000 in 1,000", lambda x, e: torch.bucketize(x, e), (values, edges), None),
        ("median 1000 x 1000", lambda x: torch.median(x, 1), (rows,), 1),
        ("median of 100,000", torch.median, (values,), None),
        ("nanmedian 1000 x 1000", lambda x: torch.nanmedian(x, 1), (rows,), 1),
        ("kthvalue 1000 x 1000", lambda x: torch.kthvalue(x, 100, 1), (rows,), 1),
        ("mode 1000 x 1000", lambda x: torch.mode(x, 1), (integers(50, 1000, 1000),), 1),
        ("quantile 1000 x 1000", lambda x: torch.quantile(x, 0.3, 1), (rows,), None),
        ("histc 100,000", lambda x: torch.histc(x, 100, -3.0, 3.0), (values,), None),
        ("histogram 100,000", lambda x: torch.histogram(x, 100, range=(-3.0, 3.0))[0], (values,), None),
        ("bincount 100,000", lambda x: torch.bincount(x, minlength=1000), (labels,), None),
        ("sort 1000 x 1000", lambda x: torch.sort(x, 1), (rows,), 1),
        ("sort 100,000, stable", lambda x: torch.sort(x, stable=True), (values,), 1),
        ("argsort 100,000, int64", lambda x: torch.argsort(x, stable=True), (labels,), None),
        ("topk 1000 x 1000, 10", lambda x: torch.topk(x, 10, 1), (rows,), 1),
        ("unique 100,000", lambda x: torch.unique(x, return_inverse=True), (labels,), None),
        ("unique_consecutive 100,000", torch.unique_consecutive, (torch.sort(labels)[0],), None),
        ("isin 100,000 in 1,000", torch.isin, (labels, integers(2000, 1000)), None),
        ("masked_select 1,000,000", lambda x: x[x > 0], (normal(1_000_000),), None),
        (
            "masked_scatter 1000 x 1000",
            lambda x, y: x.masked_scatter(x > 0, y),
            (rows, normal(1000, 1000, seed=1)),
            None,
        ),
        ("nonzero 1000 x 1000", lambda x: torch.nonzero(x > 0), (rows,), None),
    ):
        yield Case("search and order", name, function, inputs, compared=compared)


# ---- special functions -----------------------------------------------------------------------------


def special_functions() -> Iterator[Case]:
    special, count = torch.special, 100_000
    centre, above, unit = normal(count) * 3, uniform(count, low=0.1, high=20), uniform(count, low=0.01, high=0.99)
    unary = {
        "erfinv": (torch.erfinv, unit), "lgamma": (torch.lgamma, centre), "digamma": (torch.digamma, centre),
        "trigamma": (lambda x: torch.polygamma(1, x), above), "ndtri": (special.ndtri, unit),
        "log_ndtr": (special.log_ndtr, centre), "erfcx": (special.erfcx, above), "erfc": (torch.erfc, centre),
        "i0": (special.i0, centre), "i0e": (special.i0e, centre), "i1": (special.i1, centre),
        "i1e": (special.i1e, centre), "bessel_j0": (special.bessel_j0, above), "bessel_j1": (special.bessel_j1, above),
        "bessel_y0": (special.bessel_y0, above), "bessel_y1": (special.bessel_y1, above),
        "modified_bessel_k0": (special.modified_bessel_k0, above),
        "scaled_modified_bessel_k1": (special.scaled_modified_bessel_k1, above),
        "spherical_bessel_j0": (special.spherical_bessel_j0, above), "airy_ai": (special.airy_ai, centre),
        "entr": (special.entr, unit), "sinc": (torch.sinc, centre), "logit": (torch.logit, unit),
    }  # fmt: skip
    for name, (function, x) in unary.items():
        yield Case("special functions", f"{name} {count:,}", function, (x,), tolerance=1e-2)
    degree = integers(8, count).float()
    binary = {
        "igamma": (special.gammainc, above, uniform(count, low=0.1, high=20, seed=1)),
        "igammac": (special.gammaincc, above, uniform(count, low=0.1, high=20, seed=1)),
        "zeta": (special.zeta, above + 1.1, uniform(count, low=0.5, high=20, seed=1)),
        "hermite_polynomial_h": (special.hermite_polynomial_h, unit, degree),
        "legendre_polynomial_p": (special.legendre_polynomial_p, unit, degree),
        "chebyshev_polynomial_t": (special.chebyshev_polynomial_t, unit, degree),
        "hypot": (torch.hypot, centre, above),
        "nextafter": (torch.nextafter, centre, above),
        "xlogy": (torch.xlogy, above, above),
        "copysign": (torch.copysign, above, centre),
        "atan2": (torch.atan2, centre, above),
        "logaddexp": (torch.logaddexp, centre, above),
        "fmod": (torch.fmod, centre, above),
        "gcd": (torch.gcd, integers(1000, count), integers(777, count)),
    }
    for name, (function, x, y) in binary.items():
        yield Case("special functions", f"{name} {count:,}", function, (x, y), tolerance=1e-2)


# ---- others ----------------------------------------------------------------------------------------


def others() -> Iterator[Case]:
    a, b = normal(500, 64), normal(700, 64, seed=1)
    table, bags = normal(10_000, 64), torch.arange(0, 20_000, 20)
    words, rows = integers(10_000, 20_000), normal(1000, 1000)
    repeats = integers(5, 10_000)
    indices = integers(1000, 1000, 1000)
    kernels = normal(64, 1, 7, 7)  # constant, as in a model: ONNX Runtime is four times as slow if they are an input
    for name, function, inputs in (
        ("cdist 500 x 700 x 64", torch.cdist, (a, b)),
        ("cdist 500 x 700 x 64, p = 1", lambda x, y: torch.cdist(x, y, 1.0), (a, b)),
        ("cdist 500 x 700 x 64, p = 3", lambda x, y: torch.cdist(x, y, 3.0), (a, b)),
        ("pdist 500 x 64", torch.pdist, (a,)),
        ("embedding_bag 1,000 of 20", lambda t, w, o: torch.nn.functional.embedding_bag(w, t, o), (table, words, bags)),
        ("repeat_interleave 10,000 x 64", lambda t, r: t.repeat_interleave(r, 0), (table, repeats)),
        ("cumsum 1000 x 1000", lambda x: torch.cumsum(x, 1), (rows,)),
        ("cumprod 1000 x 1000", lambda x: torch.cumprod(x / 3 + 1, 1), (rows,)),
        ("cummax 1000 x 1000", lambda x: torch.cummax(x, 1), (rows,)),
        ("logcumsumexp 1000 x 1000", lambda x: torch.logcumsumexp(x, 1), (rows,)),
        ("scatter_add 1000 x 1000", lambda x, i: torch.zeros_like(x).scatter_add(1, i, x), (rows, indices)),
        ("gather 1000 x 1000", lambda x, i: torch.gather(x, 1, i), (rows, indices)),
        ("index_reduce 1000 x 1000", lambda x, i: x.index_reduce(0, i, x, "amax"), (rows, integers(1000, 1000))),
        ("softmax over channels 8 x 64 x 100 x 100", lambda x: torch.softmax(x, 1), (normal(8, 64, 100, 100),)),
        ("log_softmax over channels 8 x 64 x 100 x 100", lambda x: torch.log_softmax(x, 1), (normal(8, 64, 100, 100),)),
        ("matrix 2000 x 2000 times vector", torch.mv, (normal(2000, 2000), normal(2000))),
        ("matrix_exp 64 x 64", torch.matrix_exp, (normal(64, 64) / 8,)),
        (
            "depthwise 7 x 7 of 64 x 56 x 56",
            lambda x: torch.nn.functional.conv2d(x, kernels, padding=3, groups=64),
            (normal(1, 64, 56, 56),),
        ),
    ):
        yield Case("others", name, function, inputs, tolerance=1e-2)


def cases() -> Iterator[Case]:
    for part in (transforms, matrices, matrices_of_lower_rank, searches, special_functions, others):
        yield from part()


# ---- measurement -----------------------------------------------------------------------------------


def array(x: Tensor) -> np.ndarray:
    return (torch.view_as_real(x) if x.is_complex() else x).numpy()


def exported(case: Case) -> onnx.ModelProto:
    file = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad(), polyop.translations():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(Module(case.function), case.inputs, dynamo=True, verbose=False)
    program.save(file)
    return onnx.load_from_string(file.getvalue())


def translated(case: Case) -> Callable[[], Any] | None:
    """Returns the call with polyop's decompositions in PyTorch; None if PyTorch cannot run that program."""
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.export.export(Module(case.function), case.inputs).run_decompositions(polyop.translations())
            module = program.module()
            module(*case.inputs)
    except Exception:
        return None
    return lambda: module(*case.inputs)


def optimized(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        onnx.save(model, before)
        optimize(before, after, inputs=dict(feeds))
        return onnx.load(after)


def as_list(outputs: Any) -> list[Tensor]:
    return [outputs] if isinstance(outputs, Tensor) else list(outputs)


def check(case: Case, ours: Sequence[np.ndarray], theirs: Sequence[Tensor]) -> None:
    for got, expected in list(zip(ours, map(array, theirs), strict=True))[: case.compared]:
        scale = float(np.abs(expected[np.isfinite(expected)]).max(initial=1)) if expected.dtype.kind == "f" else 1
        np.testing.assert_allclose(got, expected, case.tolerance, case.tolerance * min(scale, 1e3), err_msg=case.title)


def milliseconds(runs: Mapping[str, Callable[[], Any]], threads: int) -> dict[str, float]:
    took = partial(once, clock=time.thread_time if threads == 1 else time.perf_counter)
    samples = interleaved(runs, SECONDS, MAX_ROUNDS, MIN_ROUNDS, turn=1e-6, took=took)  # a turn is a warm call
    return {name: min(times) for name, times in samples.items()}


def measure(case: Case, threads: Sequence[int], with_direct: bool, with_optimized: bool) -> Iterator[dict[str, Any]]:
    model = exported(case)
    feeds = {value.name: array(x) for value, x in zip(model.graph.input, case.inputs, strict=True)}
    direct = translated(case) if with_direct else None
    faster = optimized(model, feeds) if with_optimized else None
    for count in threads:
        torch.set_num_threads(count)
        ours = harness.model_run(model, feeds, count)
        eager = harness.with_torch(lambda: case.function(*case.inputs))
        check(case, harness.to_numpy(ours()), as_list(eager()))
        runs = {"file": ours, "eager": eager}
        if direct is not None:
            runs["direct"] = harness.with_torch(direct)
        if faster is not None:
            runs["optimized"] = harness.model_run(faster, feeds, count)
            check(case, harness.to_numpy(runs["optimized"]()), as_list(eager()))
        times = milliseconds(runs, count)
        yield {
            "group": case.group,
            "call": case.title,
            "threads": count,
            **{f"{name}_ms": round(value, 4) for name, value in times.items()},
            "ratio": round(times["file"] / times["eager"], 3),
            "target": round(case.target, 3),
            "nodes": len(model.graph.node),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="a regular expression for group and call")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, such as 1,2")
    parser.add_argument("--direct", action="store_true", help="time the translated program in PyTorch, too")
    parser.add_argument("--optimize", action="store_true", help="time the optimized file, too")
    parser.add_argument("--keep", action="store_true", help=f"write the rows into {RESULTS.name}")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    threads = [int(count) for count in options.threads.split(",")]
    rows = records.read(RESULTS) if RESULTS.exists() else []
    print("| Call | Threads | File, ms | Optimized, ms | In PyTorch, ms | Eager, ms | File / eager | Target | Nodes |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for case in cases():
        if not re.search(options.only, f"{case.group}: {case.title}"):
            continue
        try:
            timed = list(measure(case, threads, options.direct, options.optimize))
        except Exception as error:  # a call without a form, or with other results, is a row of the table
            reason = (str(error).strip().splitlines() or [""])[0][:100]
            timed = [{"group": case.group, "call": case.title, "threads": n, "failed": reason} for n in threads]
        for row in timed:
            if "failed" in row:
                print(f"| {row['call']} | {row['threads']} | {row['failed']} |", flush=True)
                continue
            more = [f"{row[name]:.3f}" if name in row else "" for name in ("optimized_ms", "direct_ms")]
            print(
                f"| {row['call']} | {row['threads']} | {row['file_ms']:.3f} | {more[0]} | {more[1]} "
                f"| {row['eager_ms']:.3f} | {row['ratio']:.2f} | {row['target']:.2f} | {row['nodes']} |",
                flush=True,
            )
        keys = {(row["call"], row["threads"]) for row in timed}
        rows = [row for row in rows if (row["call"], row["threads"]) not in keys] + timed
        if options.keep:
            records.write(RESULTS, harness.machine(), rows)


if __name__ == "__main__":
    main()
