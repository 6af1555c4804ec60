# SPDX-License-Identifier: Apache-2.0
"""Results of tensors without elements, which need no operator.

To ONNX's operators and ONNX Runtime's kernels a size of 0 means something else than to PyTorch: Reshape copies the size
of the input, Gemm leaves its result as it finds it, a sum keeps the dimension.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

import sympy
import torch
from torch import Tensor

aten = torch.ops.aten

_FILLS: Mapping[str, float] = {
    **dict.fromkeys(("sum", "nansum", "mm", "bmm", "matmul", "dot", "vdot", "mv", "linalg_vector_norm"), 0),
    **dict.fromkeys(("mean", "var", "std", "var_mean", "std_mean"), math.nan),
    "count_nonzero": 0,
    "any": 0,
    "all": 1,
    "prod": 1,
    "logsumexp": -math.inf,
}
"""The elements of a result that is computed from no elements, by operator."""


def replace_empty(graph: torch.fx.Graph, *, decomposed: bool) -> None:
    """Makes constants of the tensors without elements, and of the results of reductions of them.

    A decomposed graph has no operator for constants of complex numbers.
    """
    changed = False
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, Tensor) or value.layout != torch.strided:
            continue
        if not _is_pure(node.target) or node.target is aten.full.default or (decomposed and value.is_complex()):
            continue
        fill = 0 if _is_empty(value) else _fill(node)
        if fill is None:
            continue
        sizes = _sizes(node)
        if any(not isinstance(size, int) and size.node.expr not in sizes for size in value.shape):
            continue
        with graph.inserting_before(node):
            shape = [size if isinstance(size, int) else _size(graph, size, sizes) for size in value.shape]
        exact = not value.dtype.is_floating_point and not value.is_complex()
        fill = bool(fill) if value.dtype == torch.bool else int(fill) if exact else fill
        node.target, node.args = aten.full.default, (shape, fill)
        node.kwargs, changed = {"dtype": value.dtype, "device": value.device}, True
    if changed:
        graph.eliminate_dead_code()


def _is_pure(target: Any) -> bool:
    return target is operator.getitem or (isinstance(target, torch._ops.OpOverload) and not target._schema.is_mutable)


def _is_empty(value: Any) -> bool:
    return isinstance(value, Tensor) and any(isinstance(size, int) and size == 0 for size in value.shape)


def _fill(node: torch.fx.Node) -> float | None:
    source: Any = node.args[0] if node.target is operator.getitem else node
    name = getattr(source.target, "_opname", "")
    return _FILLS.get(name) if any(_is_empty(n.meta.get("val")) for n in source.all_input_nodes) else None


def _sizes(node: torch.fx.Node) -> dict[sympy.Expr, tuple[torch.fx.Node, int]]:
    """Returns an input and an axis for each size of the inputs that a node is computed from and that is not constant.

    Leaves out sizes of several of these inputs: of tensors without elements, torch.export takes sizes that broadcast
    for equal ones.
    """
    found: dict[sympy.Expr, tuple[torch.fx.Node, int]] = {}
    shared: set[sympy.Expr] = set()
    for source in _inputs_of(node):
        value = source.meta.get("val")
        for axis, size in enumerate(value.shape if isinstance(value, Tensor) else ()):
            if not isinstance(size, int) and found.setdefault(size.node.expr, (source, axis))[0] is not source:
                shared.add(size.node.expr)
    return {expression: axis for expression, axis in found.items() if expression not in shared}


def _inputs_of(node: torch.fx.Node) -> list[torch.fx.Node]:
    """Returns the inputs of the graph that a node is computed from."""
    seen, open_nodes = {node}, [node]
    while open_nodes:
        new = [n for n in open_nodes.pop().all_input_nodes if n not in seen]
        seen.update(new)
        open_nodes += new
    return [n for n in seen if n.op == "placeholder"]


def _size(graph: torch.fx.Graph, size: Any, sizes: Mapping[sympy.Expr, tuple[torch.fx.Node, int]]) -> torch.fx.Node:
    node = graph.call_function(aten.sym_size.int, sizes[size.node.expr])
    node.meta["val"] = size
    return node
