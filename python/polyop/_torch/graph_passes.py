# SPDX-License-Identifier: Apache-2.0
"""Changes of a decomposed program that prepare it for the exporter (onnx_decompositions.py)."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.export.graph_signature import ConstantArgument, TensorArgument
from torch.onnx._internal.exporter import _registration

from polyop._torch.export_record import Record
from polyop._torch.onnx_translations import as_single


def graph_modules(program: torch.export.ExportedProgram) -> Iterator[torch.fx.GraphModule]:
    """Yields the program's graph, and those of its branches and loops."""
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield module


def separate_paddings(graph: torch.fx.Graph) -> None:
    """Puts a dimension before a constant padding and removes it before the maximum pool that follows.

    ONNX Runtime (1.31) fuses a Pad of zeros with the MaxPool after it, as if it padded with the lowest number.
    """
    aten = torch.ops.aten
    pools = {getattr(aten, f"max_pool{n}d{kind}").default for n in (1, 2, 3) for kind in ("", "_with_indices")}
    for pool in graph.nodes:
        pad = pool.args[0] if pool.target in pools else None
        if not isinstance(pad, torch.fx.Node) or pad.target not in (aten.constant_pad_nd.default, aten.pad.default):
            continue
        if pad.target is aten.pad.default and len(pad.args) > 2 and pad.args[2] != "constant":
            continue
        with graph.inserting_before(pool):
            value: Any = pad.args[0]
            padded = pad.meta["val"]  # not computed again here, which would make dynamic sizes constants
            steps = (
                (aten.unsqueeze.default, (0,), value.meta["val"].unsqueeze(0)),
                (pad.target, pad.args[1:], padded.unsqueeze(0)),
                (aten.squeeze.dim, (0,), padded),
            )
            for target, arguments, result in steps:
                node = graph.call_function(target, (value, *arguments))
                node.meta = {**pool.meta, "val": result}
                value = node
        pool.replace_input_with(pad, value)
        if not pad.users:
            graph.erase_node(pad)


def make_results_tensors(program: torch.export.ExportedProgram) -> None:
    """Makes the numbers that a program returns tensors: the exporter writes nothing else."""
    graph = program.graph_module.graph
    mode = detect_fake_mode([node.meta.get("val") for node in graph.nodes])
    output = graph.output_node()
    results = list(output.args[0])
    for at, spec in enumerate(program.graph_signature.output_specs):
        if mode is None or not isinstance(spec.arg, ConstantArgument) or spec.arg.value is None:
            continue
        with graph.inserting_before(output), mode:
            result = graph.call_function(torch.ops.aten.full.default, ([], spec.arg.value))
            result.kwargs = {"dtype": torch.tensor(spec.arg.value).dtype}
            result.meta["val"] = torch.ops.aten.full.default([], spec.arg.value, **result.kwargs)
        spec.arg = TensorArgument(name=result.name)
        results[at] = result
    output.args = (tuple(results),)


def name_results(program: torch.export.ExportedProgram) -> None:
    """Names the tensors that the graph returns in the program's signature, which the exporter forgets where it computes
    an operator in a larger type and puts a conversion after it."""
    results = program.graph_module.graph.output_node().args[0]
    for spec, result in zip(program.graph_signature.output_specs, results, strict=True):
        if isinstance(spec.arg, TensorArgument) and isinstance(result, torch.fx.Node):
            spec.arg.name = result.name


def of_python(node: torch.fx.Node) -> bool:
    """Returns True for Python's operators, which compute with sizes and numbers."""
    kinds = (torch._ops.OpOverload, torch._ops.HigherOrderOperator)
    return node.op == "call_function" and not isinstance(node.target, kinds) and node.target is not operator.getitem


def compute_in_double(graph: torch.fx.Graph) -> None:
    """Converts numbers between Python's operators, whose numbers are float64 (`_describe`), and all others."""
    for node in list(graph.nodes):
        if not isinstance(node.meta.get("val"), torch.SymFloat):
            continue
        others = [user for user in node.users if of_python(user) != of_python(node)]
        if not others:
            continue
        with graph.inserting_after(node):
            converted = graph.call_function(as_single if of_python(node) else torch.sym_float, (node,))
        converted.meta = dict(node.meta)
        for user in others:
            user.replace_input_with(node, converted)


def round_down(graph: torch.fx.Graph) -> None:
    """Makes quotients of numbers that may be negative, as in -(-n // 4), exact: the exporter writes ONNX's Div, which
    rounds towards zero."""
    for node in list(graph.nodes):
        if node.target is not operator.floordiv or not isinstance(node.meta.get("val"), torch.SymInt):
            continue
        dividend, divisor = node.args
        values: list[Any] = [arg.meta["val"] if isinstance(arg, torch.fx.Node) else arg for arg in node.args]
        value, by = values
        if isinstance(by, int) and by > 0 and not _may_be_negative(value):
            continue
        with graph.inserting_before(node):
            rest = graph.call_function(operator.mod, (dividend, divisor))
            whole = graph.call_function(operator.sub, (dividend, rest))
        rest.meta, whole.meta = {**node.meta, "val": value % by}, {**node.meta, "val": value - value % by}
        node.args = (whole, divisor)


def sum_in_double(graph: torch.fx.Graph) -> None:
    """Adds up numbers of float32 in float64, as PyTorch does on a CPU: ONNX Runtime's CumSum adds them in float32, in
    which the phase of an oscillator is wrong after a second. Sums of integers in float32 are exact, and stay, because
    TensorRT has no float64."""
    copy = torch.ops.aten._to_copy.default
    for node in list(graph.nodes):
        if node.target is not torch.ops.aten.cumsum.default or node.meta["val"].dtype != torch.float32:
            continue
        source, result = node.args[0], node.meta["val"]
        if source.meta["val"].dtype == torch.float64 or _has_integers(source):
            continue
        with graph.inserting_before(node):
            wide = graph.call_function(copy, (source,), {"dtype": torch.float64})
        with graph.inserting_after(node):
            rounded = graph.call_function(copy, (node,), {"dtype": torch.float32})
        node.replace_all_uses_with(rounded, delete_user_cb=lambda user, rounded=rounded: user is not rounded)
        node.args, node.kwargs = (wide, node.args[1]), {}
        wide.meta = {**node.meta, "val": source.meta["val"].to(torch.float64)}
        rounded.meta = dict(node.meta)
        node.meta["val"] = result.to(torch.float64)


_OF_INTEGERS = frozenset((
    "_to_copy", "convert_element_type", "view", "reshape", "_unsafe_view", "permute", "transpose", "unsqueeze",
    "squeeze", "expand", "clone", "alias", "slice", "select", "flip", "neg", "add", "sub", "rsub", "mul",
))  # fmt: skip
"""Operators of one tensor and numbers whose results are integers if these are."""


def _has_integers(node: torch.fx.Node) -> bool:
    """Returns True if a tensor was made of integers or booleans."""
    while True:
        kind = node.meta["val"].dtype
        if not kind.is_floating_point and not kind.is_complex:
            return True
        if not isinstance(node.target, torch._ops.OpOverload):
            return False
        name, given = node.target._opname, (*node.args, *node.kwargs.values())
        if name in ("ones", "zeros", "ones_like", "zeros_like"):
            return True
        if not all(number.is_integer() for number in given if isinstance(number, float)):
            return False
        if name in ("full", "full_like"):
            return isinstance(given[1], (int, float))
        tensors = [arg for arg in node.all_input_nodes if isinstance(arg.meta.get("val"), torch.Tensor)]
        if name not in _OF_INTEGERS or len(tensors) != 1:
            return False
        node = tensors[0]


def _may_be_negative(value: int | torch.SymInt) -> bool:
    if isinstance(value, int):
        return value < 0
    return bool(value.node.shape_env.bound_sympy(value.node.expr).lower < 0)


def note_unknown(program: torch.export.ExportedProgram, registry: _registration.ONNXRegistry, record: Record) -> None:
    """Notes the operators without an ONNX form in the record, with the lines that call them."""
    for module in graph_modules(program):
        for node in module.graph.nodes:
            target = node.target
            if node.op != "call_function" or target is operator.getitem or registry.is_registered(target):
                continue
            if not isinstance(target, torch._ops.OpOverload) or target.name().startswith("aten::_assert"):
                continue  # the exporter removes assertions
            if target.namespace not in ("onnx", "onnx_symbolic"):
                record.unknown.setdefault(target.name(), node.meta.get("stack_trace") or "")
