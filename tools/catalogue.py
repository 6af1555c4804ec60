#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/operators/README.md. Reads the table of `polyop ops --markdown` from standard input, and adds links to
the operators' pages and two columns: where an operator runs, and whether it has a gradient or a function.

With --pages FOLDER, adds the signatures of the functions in Python to the operators' pages in the folder, each the text
of `polyop ops OPERATOR --markdown`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A kernel serves every runtime of its device: no adapter knows operators by name.
RUNTIMES = {"cpu.cc": ["ONNX Runtime", "PyTorch", "OpenVINO"], "cuda.cu": ["TensorRT"]}

HEAD = """# Operators

{count} operators, under {names} node names. A file with any of these nodes runs unchanged. A name without `::` has no
domain. Where two operators share a name, *with* an attribute says which nodes belong to which operator.

{gradients} operators have gradients in PyTorch, {kernels} of them by a
[gradient kernel](../training.md#what-computes-the-gradients) for the CPU. {functions} have a *function* of standard
operators, so that a [portable file](../portable-files.md) runs without polyop. The CUDA kernels also serve ONNX Runtime
and PyTorch; they were [tested on one GPU](../tensorrt.md#what-ran-on-a-gpu).

## Functions

`polyop` has the functions of PyTorch's tensors, [`polyop.numpy`](../onnxruntime.md#without-a-runtime) of NumPy's
arrays, [`polyop.jax`](../jax.md) of JAX's, and [`polyop.tvm_ffi`](../executorch.md#tvm-ffi) of any framework's. A
function has the same parameters in all of them; the operator's page states them. Names and defaults are torchvision's
or MMCV's where the function is theirs. Sizes such as `output_size` are a number or (height, width), choices are texts,
and flags are True or False. `polyop.numpy` also has `out=`.

## All operators

"""


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def row(values: list[str]) -> str:
    return f"| {' | '.join(values)} |\n"


def main() -> None:
    from polyop._onnx.catalogue import operators  # after the arguments, so that --help needs no library

    head, rule, *lines = [cells(line) for line in sys.stdin if line.startswith("|")]
    mirrors = {o["name"] for o in operators() if any(node["standards"] for node in o["nodes"])}
    gradients = {o["name"]: o["gradient"] for o in operators()}
    table = row([*head[:-1], "runs in", "has", head[-1]]) + row([*rule, "---", "---"])
    names: set[str] = set()
    has = []
    for name, nodes, types, summary in lines:
        folder = next(ROOT.glob(f"ops/*/{name}/"))
        runtimes = [r for end, served in RUNTIMES.items() if (folder / f"{name}_{end}").is_file() for r in served]
        formula = folder / f"{name}_formula.py"
        text = formula.read_text() if formula.is_file() else ""
        more = [
            word
            for word, there in (
                ("gradient kernel", gradients[name] and gradients[name]["kernels"]),
                ("gradient", gradients[name] and not gradients[name]["kernels"]),
                ("function", text or name in mirrors),
            )
            if there
        ]
        table += row([f"[{name}]({name}.md)", nodes, types, ", ".join(runtimes), ", ".join(more), summary])
        names |= {node.split()[0] for node in nodes.split("<br>")}  # without the condition of a shared name
        has += more
    counts = {
        "count": len(lines),
        "names": len(names),
        "gradients": has.count("gradient") + has.count("gradient kernel"),
        "kernels": has.count("gradient kernel"),
        "functions": has.count("function"),
    }
    print(HEAD.format(**counts) + table, end="")


def add_functions(folder: Path) -> None:
    from polyop._arrays.calls import operators  # after the arguments, so that --help needs no library
    from polyop._arrays.composites import NEEDS
    from polyop._arrays.functions import functions, signature_of

    for operator in operators():
        page = folder / f"{operator}.md"
        of_operator = [
            f"polyop.{name}{signature_of(function)}"
            for name, function in functions(operators()).items()
            if operator in NEEDS.get(name, (function.record["name"],))
        ]
        before, signature, after = page.read_text(encoding="utf-8").split("\n```\n", 2)
        section = "\n".join(["\n## Functions", "", "```", *of_operator])
        page.write_text("\n```\n".join([before, signature, section, after]), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, metavar="FOLDER")
    pages = parser.parse_args().pages
    if pages is None:
        main()
    else:
        add_functions(pages)
