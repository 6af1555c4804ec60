#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/pytorch-operators.md: PyTorch's operators that polyop writes into ONNX files.

It is computed from the table of translations (python/polyop/_aten) and from the measured tables of calls and of whole
models (tests/data/pytorch_operators.json, tests/data/whole_models.json).
"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections import Counter
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from polyop._aten import TRANSLATIONS, Translation

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "data" / "pytorch_operators.json"
MODELS = ROOT / "tests" / "data" / "whole_models.json"
TIMES = ROOT / "bench" / "results" / "pytorch_operators.json"
THEMES = {
    "corrections": "Corrected numbers",
    "elementary": "Functions of elements",
    "special": "Special functions",
    "cumulative": "Scans",
    "indexing": "Indices",
    "shapes": "Shapes, padding, random numbers",
    "pooling": "Pooling",
    "recurrent": "Recurrent layers",
    "attention": "Attention",
    "quantized": "Quantized numbers",
    "random_numbers": "Random numbers of distributions",
    "resampling": "Sampling and resizing",
    "statistics": "Order, search, histograms, distances",
    "linear": "Linear equations",
    "linalg": "Factorizations of matrices",
    "fft": "Fourier transforms",
    "complex_numbers": "Complex numbers",
    "types": "Types that ONNX Runtime lacks",
    "integer_types": "Integers that ONNX Runtime computes otherwise",
}
KINDS = {
    "f32 static": "float32, fixed sizes",
    "f32 auto": "float32, dynamic sizes",
    "f64 static": "float64, fixed sizes",
    "f64 auto": "float64, dynamic sizes",
}
HEAD = """# PyTorch operators that ONNX lacks

`polyop.export` and `with polyop.translations():` extend PyTorch's dynamo exporter: the operators below are written into
the file although it has no ONNX form for them, or one with wrong numbers. Programs without them keep their graphs.
[`polyop.export`](export.md) lists the operators that it translated; for one that it cannot write, it names the line of
your code that calls it, and what to write instead.

```
with polyop.translations():
    torch.onnx.export(model, args, "model.onnx", dynamo=True)
```

`import polyop` alone changes nothing of PyTorch: outside of such a block, and in other threads, `torch.onnx.export`
writes PyTorch's operators as it does without polyop.

Most are written as standard ONNX operators, which every runtime has. Some use a node of polyop, which runs where
polyop's library is registered, or anywhere in a [portable file](portable-files.md) if the node has a function. A call
that PyTorch's exporter writes with the right numbers keeps its standard operators, so that its file does not depend on
polyop's library. The exceptions compare all pairs of elements, or read a table one element at a
time (`bucketize`, `isin`, `embedding_bag`), and `torch.special.entr`. ONNX Runtime is slow at some standard
operators, such as CumSum or Softmax over channels: [`polyop optimize`](optimize.md) replaces them in a finished file.

Checks of values that stop PyTorch's capture are left out of the program: an `assert` of a tensor, an `if` that only
leads to a `raise`, and those of `gaussian_nll_loss`, `torch.cov`, `torch.corrcoef`, and of masks in `nn.Transformer`.
The file is right for inputs for which PyTorch raises no error. `int(index.max()) + 1` is a size that depends on values:
in the module that calls it, `int` returns what `item` does during the capture. `int(math.ceil(n / 4))` remains an
expression of the size `n`, and so does the number of a tensor that is computed from it, such as
`torch.ceil(torch.tensor(n) / 4).long()`, where it pads, is the end of a slice or becomes an integer. A function of
`torch.jit.script` is captured as one of Python. `torch.equal` and `torch.allclose` become tensors, but `torch.equal` of
different shapes is False.

Some functions of packages have a branch whose paths compute the same: `coalesce` of torch_geometric, detections of
effdet, keypoints of kornia's DISK. They are written without it. Layers of experts in transformers
(`experts_implementation="grouped_mm"`) become a Split of the rows and a product for each expert.

A `PackedSequence` becomes padded sequences and their lengths, which ONNX's LSTM, GRU and RNN take. Between packing and
padding a model may apply functions of single elements and linear layers to its `data`, but no sums over sequences.
LSTM, GRU and RNN with a dynamic number of steps become these nodes, too. An LSTM with `proj_size` and `ctc_loss` are
written step by step, so that their number of steps is fixed.
Windows such as `torch.hann_window`, `linspace`, `logspace`, `combinations`, the parts of `tensor_split` and the results
of `kron`, `affine_grid` and fractional pools may have a length that is a dynamic size. The number of tensors that
`split`, `chunk` and `unbind` return is that of the example: a file has a fixed number of outputs.
`torch.signal.windows` compare the length with 1, so that such a file is for windows of 2 or more elements.
`flex_attention` becomes products and a softmax. A query whose mask hides everything gets zeros. `nn.TransformerEncoder`
computes padded tokens as PyTorch does in inference: they are zeros before the last norm if all are at the end. A
FakeQuantize module is exported if its observer is disabled, and so is a program that PT2E's `convert_pt2e` returns.
ONNX Runtime's CPU provider has no kernels for bfloat16: a file with operators of it is for GPUs. Sparse tensors have no
form, because ONNX Runtime has no kernels for them. PyTorch itself cannot capture `resize_as_` of sizes that are not
constant. `torch.broadcast_shapes` computes with sizes only: a program of nothing else has no tensors to export.

[RandomDistribution](operators/random_distribution.md) computes Poisson, gamma, Dirichlet and binomial random numbers,
and with them `torch.distributions`' Poisson, Gamma, Beta, Dirichlet and Binomial (with `validate_args=False`). ONNX's
RandomUniform draws its seed whenever the file runs: the numbers have PyTorch's distribution, but are not PyTorch's.

A matrix that has no inverse, solution or factors is an error of the file with PyTorch's words where PyTorch raises one;
on a GPU it gives NaN. Some limits: `torch.linalg.inv` of float32 gives NaN for a matrix that is singular by rounding
errors only; the index of a median or mode is one of those of equal elements; eigenvectors and singular vectors have
signs by a rule of [Eigh](operators/eigh.md), [Eig](operators/eig.md) and [SVD](operators/svd.md), and PyTorch's have
those that LAPACK happens to compute; the order of the eigenvalues of `torch.linalg.eig` is that of LAPACK in double
precision, from which PyTorch's may differ in float32 and for more than 75 rows; the residuals of `torch.linalg.lstsq`
are those of matrices of full rank. `torch.pdist` of float32 computes products in double precision (TensorRT in single
precision): distances below about 1e-8 of the coordinates are inexact unless they are 0, and infinite coordinates give
NaN. In float64, nodes that ONNX Runtime has only in float32 are computed in float32.

Special functions are computed in double precision by [SpecialUnary](operators/special_unary.md) and
[SpecialBinary](operators/special_binary.md), except `erfinv`, `i0e` and `i1e` of float32, which are computed in single
precision. Orthogonal polynomials of degrees above 1,024 give NaN; the limit of Hermite's is 512, Chebyshev's 2^53.

A complex number is a pair of real numbers, in a last dimension of 2: so are complex inputs and outputs of a file.
Complex matrices are computed in double precision as real ones of twice the size. Their vectors have a phase by a rule:
the largest element of each eigenvector and left singular vector is positive, and the diagonal of R is. Eigenvalues are
in another order than PyTorch's. LU and LDL factors and `geqrf` of complex matrices have no form. The
transforms of `torch.fft` are polyop's `DFT`, which is exact for any length. ONNX Runtime computes ONNX's DFT inexactly
for lengths that are no power of two: the error is about 4e-3 for 400 elements.
"""


SLOW = """## Slow forms

Times of `bench/translations.py` on a busy machine: the least of 200 rounds, float32, one thread. Ratios of this
table were measured in one run each; PyTorch's exporter alone was measured in an earlier run.

| Call | PyTorch | ONNX Runtime | Ratio | By PyTorch's exporter alone |
|---|---|---|---|---|
| `repeat_interleave` of 2,000 rows, 0 to 4 times | 0.06 ms | 0.09 ms | 1.5 | 1,100 ms |
| `embedding_bag`, sums of 500 bags of 20 | 0.05 ms | 0.06 ms | 1.3 | 114 ms |
| `embedding_bag`, means of 500 bags of 20 | 0.09 ms | 0.07 ms | 0.8 | 130 ms |
| `affine_grid` of 4 x 256 x 256 | 3.1 ms | 1.6 ms | 0.5 | not measured |
"""


def _measured() -> str:
    found: dict[str, dict[str, str]] = json.loads(TABLE.read_text(encoding="utf-8"))
    lines = [
        "## Measured",
        "",
        "One call of each operator and module of PyTorch's own test databases, and some 200 calls that models make,",
        "exported, run in ONNX Runtime, and compared with PyTorch (`python -m tests.support.pytorch_export`).",
        "",
        "| Calls | Number | Right | Without ONNX form | Other errors | Wrong |",
        "|---|---|---|---|---|---|",
    ]
    for of_models in (False, True):
        for kind, title in KINDS.items():
            counted = Counter(
                status[kind]
                for name, status in found.items()
                if kind in status and name.startswith("model: ") == of_models
            )
            total = sum(counted.values()) - counted["not run"]
            if total:
                others = sum(counted[s] for s in ("data", "error", "refused", "hangs"))
                share = f"{counted['right']} ({100 * counted['right'] / total:.1f} %)"
                title = f"models' calls, {title}" if of_models else title
                lines.append(f"| {title} | {total} | {share} | {counted['no form']} | {others} | {counted['wrong']} |")
    static = sorted(
        name for name, status in found.items() if status.get("f32 static") not in ("right", "not run", None)
    )
    names = "Not right with fixed sizes: " + ", ".join(f"`{name}`" for name in static) + "."
    return "\n".join([*lines, "", *textwrap.wrap(names, 120, break_on_hyphens=False)])


def _times() -> str:
    """Returns a row for each group of calls, and one for each call that takes more than 1.5 times as long."""
    rows = [row for row in json.loads(TIMES.read_text(encoding="utf-8"))["rows"] if "ratio" in row]
    lines = [
        "",
        "## Times",
        "",
        "Calls of PyTorch's operators as files in ONNX Runtime, next to eager PyTorch (`bench/pytorch_operators.py`;",
        "all rows are in [its results](../bench/results/pytorch_operators.json)). Times on one thread are those of the",
        "processor, on two threads the least that passed on idle cores. A ratio is the time of the file",
        "divided by PyTorch's. The targets are 1.3 for Fourier transforms, 1/3 for batches of 10,000 small matrices,",
        "otherwise 1.2. A hyphen: not timed with two threads.",
        "",
        "| Calls | Number | Geometric mean of the ratios, 1 and 2 threads | Within the target, 1 and 2 threads |",
        "|---|---|---|---|",
    ]
    for group in dict.fromkeys(row["group"] for row in rows):
        of_group = [[row for row in rows if row["group"] == group and row["threads"] == n] for n in (1, 2)]
        means = [f"{geometric_mean([row['ratio'] for row in of]):.2f}" if of else "-" for of in of_group]
        within = [str(sum(row["ratio"] <= row["target"] for row in of)) if of else "-" for of in of_group]
        lines.append(f"| {group} | {len(of_group[0])} | {', '.join(means)} | {', '.join(within)} |")
    lines += [
        "",
        "Calls that take more than 1.5 times as long as PyTorch on one or two threads, and their ratios after",
        "`polyop optimize`. A hyphen: not timed.",
        "",
        "| Call | Ratio, 1 and 2 threads | After `polyop optimize`, 1 and 2 threads |",
        "|---|---|---|",
    ]
    by_call: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows:
        by_call.setdefault(row["call"], {})[row["threads"]] = row
    for call, of in sorted(by_call.items(), key=lambda item: -max(row["ratio"] for row in item[1].values())):
        if any(row["ratio"] > 1.5 for row in of.values()):
            ratios = [f"{of[n]['ratio']:.1f}" if n in of else "-" for n in (1, 2)]
            lines.append(f"| {call} | {', '.join(ratios)} | {_after(of.get(1))}, {_after(of.get(2))} |")
    return "\n".join([*lines, ""])


def _after(row: dict[str, Any] | None) -> str:
    """Returns the ratio of the optimized file, if it was timed."""
    return f"{row['optimized_ms'] / row['eager_ms']:.1f}" if row and "optimized_ms" in row else "-"


def _whole_models() -> str:
    found: dict[str, list[str]] = json.loads(MODELS.read_text(encoding="utf-8"))
    tasks: dict[str, Counter[str]] = {}
    lines = []
    for name, (status, reason) in found.items():
        package, task, model = name.split("/")
        tasks.setdefault(f"{package}, {task.replace('_', ' ')}", Counter())[status] += 1
        if status not in ("right", "not built"):
            text = reason.replace("|", "\\|").replace("<", "&lt;")
            lines.append(f"| {package} | {model} | {status} | {text} |")
    rows = [
        f"| {task} | {sum(counted.values()) - counted['not built']} | {counted['right']} | {counted['rounding']} "
        f"| {counted['not built']} |"
        for task, counted in sorted(tasks.items())
    ]
    return "\n".join(
        [
            "",
            "## Whole models",
            "",
            "Models of Hugging Face's transformers and of timm with few layers and random weights, exported by",
            "`polyop.export` with the dynamo exporter, which compares the results",
            "(`python -m tests.support.whole_models`). Those that are not built need further inputs, packages or weights.",
            "The results in the column Rounding differ by more than the tolerance, but by at most twice as much as those of",
            "float32 and float64 in PyTorch.",
            "The weights of detectors are scaled so that each layer's results have a standard deviation of 1, and they",
            "have 20 queries: with the weights that the packages draw, RT-DETR's 300 best of 1,029 scores are 3e-11 apart,",
            "which is less than the rounding errors of float32. Float32 and float64 in PyTorch alone then have 128 of 300",
            "queries in common (D-FINE: 75). `polyop.export` reports such a model as different.",
            "",
            "| Models | Tried | Right | Rounding | Not built |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "| Package | Model | Result | Reason |",
            "|---|---|---|---|",
            *lines,
        ]
    )


def _row(translation: Translation) -> str:
    nodes = ", ".join(f"[`{node}`](operators/{node}.md)" for node in translation.nodes)
    written = f"polyop's {nodes}" if nodes else "standard operators"
    name = translation.target.removeprefix("aten::")
    return f"| `{name}` | {translation.when or 'all'} | {translation.without} | {written} |"


def page() -> str:
    parts = [HEAD, SLOW.rstrip("\n"), _times(), _measured(), _whole_models()]
    for theme, title in THEMES.items():
        rows = [_row(x) for x in sorted(TRANSLATIONS.values(), key=lambda x: x.target) if x.theme == theme]
        parts.append(
            "\n".join(
                ["", f"## {title}", "", "| Operator | Calls | PyTorch alone | Written as |", "|---|---|---|---|", *rows]
            )
        )
    return "\n".join(parts)


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    missing = {x.theme for x in TRANSLATIONS.values()} - set(THEMES)
    assert not missing, f"THEMES lacks {missing}"
    print(page())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
