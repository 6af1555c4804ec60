#!/usr/bin/env python3
"""Prints docs/operators/README.md. Reads the table of `polyop ops --markdown` from standard input, and adds links to
the operators' pages and two columns: where an operator runs, and whether it has a gradient or a function.

catalogue.py --gradients FOLDER   appends to each operator's page in the folder which inputs have gradients
"""

from __future__ import annotations

import argparse
import ast
import re
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
and PyTorch, but have [not yet been tested on a GPU](../../README.md#what-runs-where).

"""


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def row(values: list[str]) -> str:
    return f"| {' | '.join(values)} |\n"


def differentiable(name: str) -> list[int]:
    """Returns the indices of the inputs that have gradients, which the operator's formula states."""
    formula = ROOT / "ops" / name / f"{name}_formula.py"
    found = re.search(r"^DIFFERENTIABLE = (.*)$", formula.read_text(), re.MULTILINE) if formula.is_file() else None
    return list(ast.literal_eval(found[1])) if found else []


def has_gradient_kernel(name: str) -> bool:
    return (ROOT / "ops" / name / f"{name}_backward_cpu.cc").is_file()


def gradients_section(name: str, inputs: list[str]) -> str:
    """Returns the section of an operator's page about its gradients in PyTorch; "" if it has none."""
    chosen = differentiable(name)
    if not chosen:
        return ""
    listed = ", ".join(f"`{inputs[i]}`" for i in chosen)
    formula = "the [formula](../training.md#what-computes-the-gradients)"
    how = f"the kernel `polyop::{name}_backward` on the CPU, else {formula}" if has_gradient_kernel(name) else formula
    return f"\n## Gradients\n\nIn PyTorch, of {listed}: by {how}.\n"


def append_gradients(folder: Path) -> None:
    from polyop._onnx.catalogue import operators

    for operator in operators():
        page = folder / f"{operator['name']}.md"
        if page.is_file():
            section = gradients_section(operator["name"], [i["name"] for i in operator["inputs"]])
            page.write_text(page.read_text() + section)


def main() -> None:
    from polyop._onnx.catalogue import operators  # after the arguments, so that --help needs no library

    head, rule, *lines = [cells(line) for line in sys.stdin if line.startswith("|")]
    mirrors = {o["name"] for o in operators() if any(node["standards"] for node in o["nodes"])}
    table = row([*head[:-1], "runs in", "has", head[-1]]) + row([*rule, "---", "---"])
    names: set[str] = set()
    has = []
    for name, nodes, types, summary in lines:
        folder = ROOT / "ops" / name
        runtimes = [r for end, served in RUNTIMES.items() if (folder / f"{name}_{end}").is_file() for r in served]
        formula = folder / f"{name}_formula.py"
        text = formula.read_text() if formula.is_file() else ""
        more = [
            word
            for word, there in (
                ("gradient kernel", differentiable(name) and has_gradient_kernel(name)),
                ("gradient", differentiable(name) and not has_gradient_kernel(name)),
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gradients", type=Path, metavar="FOLDER", help="the folder of the operators' pages")
    arguments = parser.parse_args()
    main() if arguments.gradients is None else append_gradients(arguments.gradients)
