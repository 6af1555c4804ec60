#!/usr/bin/env python3
"""catalogue.py   docs/operators/README.md: the table that `polyop ops --markdown` prints, read from standard input, with links
to the operators' pages and two more columns, where an operator runs and what it has besides, from its definition and its files."""

from __future__ import annotations

import sys
from pathlib import Path

from polyop._catalogue import operators

ROOT = Path(__file__).resolve().parent.parent
# A kernel serves every runtime of its device: no adapter knows operators by name.
RUNTIMES = {"cpu.cc": ["ONNX Runtime", "PyTorch", "OpenVINO"], "cuda.cu": ["TensorRT"]}

HEAD = """# Operators

{count} operators, under {names} node names. A file with one of these nodes runs as it is, a name without `::` is one without a domain.
{gradients} have gradients in PyTorch; {functions} have a *function* of standard operators, by which a [portable file](../portable-files.md)
runs where polyop is not. CUDA kernels serve ONNX Runtime and PyTorch, too; [what has been run where](../../README.md).

"""


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def row(values: list[str]) -> str:
    return f"| {' | '.join(values)} |\n"


def main() -> None:
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
            for word, there in (("gradient", "\nDIFFERENTIABLE =" in text), ("function", text or name in mirrors))
            if there
        ]
        table += row([f"[{name}]({name}.md)", nodes, types, ", ".join(runtimes), ", ".join(more), summary])
        names |= {node.split()[0] for node in nodes.split("<br>")}  # without what tells operators of a name apart
        has += more
    counts = {
        "count": len(lines),
        "names": len(names),
        "gradients": has.count("gradient"),
        "functions": has.count("function"),
    }
    print(HEAD.format(**counts) + table, end="")


if __name__ == "__main__":
    main()
