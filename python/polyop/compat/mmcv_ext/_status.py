# SPDX-License-Identifier: Apache-2.0
"""A table of what provides each function of `mmcv._ext`."""

from __future__ import annotations

from typing import NamedTuple

import torch

from polyop._torch.operators import OPERATORS
from polyop.compat.mmcv_ext._registry import FUNCTIONS, Provided

__all__ = ["Row", "markdown", "rows", "status"]

# Functions that MMCV differentiates by calling them again, and one that returns its gradient with the value.
_OWN_GRADIENT = {"bias_act", "convex_giou", "filtered_lrelu_act_", "fused_bias_leakyrelu", "upfirdn2d"}


class Row(NamedTuple):
    function: str
    provided_by: str
    devices: str
    gradient: str
    node: str


def _provider(provided: Provided) -> str:
    return f"polyop: {', '.join(provided.operators)}" if provided.operators else "torch"


def _devices(provided: Provided) -> str:
    if provided.missing():
        return "none: not in this build"
    if not provided.operators:
        return "any"
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return "cpu, cuda" if all(has(f"polyop::{name}", "CUDA") for name in provided.operators) else "cpu"


def _gradient(name: str) -> str:
    if name in _OWN_GRADIENT:
        return "itself"
    stem = name.removesuffix("forward")
    own = [n for n in FUNCTIONS if n != name and n.startswith(f"{stem}backward")]
    if name.startswith(("get_indice_pairs", "sync_bn_")):
        own = []
    if name == "sync_bn_forward_output":
        own = [n for n in FUNCTIONS if n.startswith("sync_bn_backward")]
    if name == "prroi_pool_forward":
        own.append("prroi_pool_coor_backward")
    return ", ".join(own) or "-"


def _node(provided: Provided) -> str:
    known = [OPERATORS[name].nodes for name in provided.operators if name in OPERATORS]
    return known[0][0]["name"] if known and known[0] else "-"


def rows() -> list[Row]:
    """Returns a row per function. Functions that compute gradients are part of the row of their forward function."""
    return [
        Row(name, _provider(provided), _devices(provided), _gradient(name), _node(provided))
        for name, provided in sorted(FUNCTIONS.items())
        if "backward" not in name
    ]


def status() -> None:
    """Prints the table."""
    table = [Row("function", "provided by", "devices", "gradient", "ONNX node"), *rows()]
    widths = [max(len(row[i]) for row in table) for i in range(len(Row._fields))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def markdown() -> str:
    """Returns the columns that are the same in every build, for the documentation."""
    lines = ["| function | provided by | gradient | ONNX node |", "| --- | --- | --- | --- |"]
    for row in rows():
        gradient = ", ".join(f"`{name}`" if "_" in name else name for name in row.gradient.split(", "))
        node = f"`{row.node}`" if row.node != "-" else row.node
        lines.append(f"| `{row.function}` | {row.provided_by} | {gradient} | {node} |")
    return "\n".join(lines)
