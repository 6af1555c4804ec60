# SPDX-License-Identifier: Apache-2.0
"""What torch.onnx.export(…, dynamo=True) does in a `with polyop.translations():` block.

The exporter captures a program and decomposes it into operators that have an ONNX form. In the block, polyop adds its
translations (polyop/_aten, onnx_translations.py) to the tables that it uses for that, where a user's
`custom_translation_table` has priority, and replaces functions whose checks of values stop the capture.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import onnx_ir
import torch
from torch._guards import detect_fake_mode
from torch.export.graph_signature import ConstantArgument, TensorArgument
from torch.fx.traceback import annotate
from torch.onnx._internal.exporter import _decomp, _registration
from torch.utils import _pytree as pytree

from polyop._aten import TRANSLATIONS, overload, packages
from polyop._aten.attention import encode, flex_attention
from polyop._aten.capturing import Capturing, known_buffers, sizes_above_one
from polyop._aten.complex_numbers import is_complex
from polyop._aten.detection import detectors_without_counts
from polyop._aten.guards import Lines, guards_of, guards_of_failure, noting
from polyop._aten.integers import SymbolicIntegers
from polyop._aten.patches import replaced
from polyop._aten.quantized import fixed_switches
from polyop._torch.export_record import Record, current_record
from polyop._torch.onnx_translations import OPERATOR_KEY, add_nodes, as_single, resize


def _counted(
    target: str, function: Callable[..., Any], default: Callable[..., Any] | None
) -> Callable[..., Any]:  # fmt: skip
    """Returns the translation; PyTorch's own decomposition, if there is one, has the calls that it leaves."""

    def call(*args: Any, **given: Any) -> Any:
        with annotate({OPERATOR_KEY: target}):
            result = function(*args, **given)
        if result is NotImplemented:
            return result if default is None else default(*args, **given)
        record = current_record()
        if record is not None and result is not None:  # None: a check, which is left out
            record.translated[target] += 1
        return result

    return call


def _decompose(
    _: Any, program: torch.export.ExportedProgram, registry: _registration.ONNXRegistry
) -> torch.export.ExportedProgram:  # fmt: skip
    """Replaces the exporter's function `decompose_with_registry`."""
    add_nodes(registry)
    table = _decomp.create_onnx_friendly_decomposition_table(set(_decomp.get_onnx_implemented_overloads(registry)))
    _add_complex(table, registry)
    for target, translation in TRANSLATIONS.items():
        op = overload(target)
        if op is None or any(meta.is_custom for meta in registry.get_decomps(op)):
            continue
        table[op] = _counted(target, translation.function, table.get(op))
    with replaced({"torch._higher_order_ops.flex_attention:trace_flex_attention": _attend}):
        program = program.run_decompositions(table)
    _separate_paddings(program.graph_module.graph)
    _make_results_tensors(program)
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            _compute_in_double(module.graph)
    record = current_record()
    if record is not None:
        _note_unknown(program, registry, record)
    return program


def _add_complex(table: dict[Any, Callable[..., Any]], registry: _registration.ONNXRegistry) -> None:
    """Adds PyTorch's own decompositions of the operators that the exporter writes for real numbers alone."""
    for op, own in torch._decomp.decomposition_table.items():
        if op in table or not isinstance(op, torch._ops.OpOverload):
            continue
        written = registry.get_decomps(op)
        if written and not any(meta.is_complex for meta in written) and not op._can_decompose():
            table[op] = functools.partial(_of_complex, own)


def _of_complex(own: Callable[..., Any], *args: Any, **given: Any) -> Any:
    return own(*args, **given) if any(map(is_complex, pytree.tree_leaves((args, given)))) else NotImplemented


def _attend(_: Any, mode: Any, *args: Any) -> Any:
    """Replaces the node of flex_attention by the operators that it consists of."""
    record = current_record()
    if record is not None:
        record.translated["higher_order::flex_attention"] += 1
    with mode, annotate({OPERATOR_KEY: "higher_order::flex_attention"}):
        return flex_attention(*args)


def _separate_paddings(graph: torch.fx.Graph) -> None:
    """Puts a dimension before a constant padding and removes it before the maximum pool that follows.

    ONNX Runtime (1.31) fuses a Pad of zeros with the MaxPool after it, as if it padded with the lowest number.
    """
    aten = torch.ops.aten
    pools = {getattr(aten, f"max_pool{n}d{kind}").default for n in (2, 3) for kind in ("", "_with_indices")}
    pools.add(aten.max_pool1d.default)
    for pool in graph.nodes:
        pad = pool.args[0] if pool.target in pools else None
        if not isinstance(pad, torch.fx.Node) or pad.target not in (aten.constant_pad_nd.default, aten.pad.default):
            continue
        if pad.target is aten.pad.default and len(pad.args) > 2 and pad.args[2] != "constant":
            continue
        with graph.inserting_before(pool):
            value: Any = pad.args[0]
            steps = ((aten.unsqueeze.default, (0,)), (pad.target, pad.args[1:]), (aten.squeeze.dim, (0,)))
            for target, arguments in steps:
                node = graph.call_function(target, (value, *arguments))
                node.meta = {**pool.meta, "val": target(value.meta["val"], *arguments)}
                value = node
        pool.replace_input_with(pad, value)
        if not pad.users:
            graph.erase_node(pad)


def _make_results_tensors(program: torch.export.ExportedProgram) -> None:
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


def _of_python(node: torch.fx.Node) -> bool:
    """Returns True for Python's operators, which compute with sizes and numbers."""
    kinds = (torch._ops.OpOverload, torch._ops.HigherOrderOperator)
    return node.op == "call_function" and not isinstance(node.target, kinds) and node.target is not operator.getitem


def _compute_in_double(graph: torch.fx.Graph) -> None:
    """Converts numbers between Python's operators, whose numbers are float64 (`_describe`), and all others."""
    for node in list(graph.nodes):
        if not isinstance(node.meta.get("val"), torch.SymFloat):
            continue
        others = [user for user in node.users if _of_python(user) != _of_python(node)]
        if not others:
            continue
        with graph.inserting_after(node):
            converted = graph.call_function(as_single if _of_python(node) else torch.sym_float, (node,))
        converted.meta = dict(node.meta)
        for user in others:
            user.replace_input_with(node, converted)


def _note_unknown(
    program: torch.export.ExportedProgram, registry: _registration.ONNXRegistry, record: Record
) -> None:  # fmt: skip
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            target = node.target
            if node.op != "call_function" or target is operator.getitem or registry.is_registered(target):
                continue
            if not isinstance(target, torch._ops.OpOverload) or target.name().startswith("aten::_assert"):
                continue  # the exporter removes assertions
            if target.namespace not in ("onnx", "onnx_symbolic"):
                record.unknown.setdefault(target.name(), node.meta.get("stack_trace") or "")


def _capture(
    capture: Callable[..., torch.export.ExportedProgram], strategy: Any, *args: Any, **given: Any
) -> torch.export.ExportedProgram:  # fmt: skip
    """Replaces the method `_capture` of the exporter's first strategy.

    The example's tensors are contiguous, as those of files are: a program must not depend on other strides.
    """
    args = (args[0], pytree.tree_map_only(torch.Tensor, _contiguous, args[1]), *args[2:])
    with (
        Capturing(),
        fixed_switches(args[0]),
        known_buffers(args[0]),
        sizes_above_one(_note_assumption),
        detectors_without_counts(),
        replaced(_WHILE_CAPTURING),
        SymbolicIntegers() as integers,
    ):
        record, lines = current_record() or Record(), Lines()
        while True:
            try:
                with noting(lines):
                    program = capture(strategy, *args, **given)
            except Exception as error:
                if integers.add(error):
                    continue
                record.guards = guards_of_failure(error, lines)  # the exporter's second strategy may succeed
                raise
            record.guards = guards_of(program, lines)
            return program


def _contiguous(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous() if tensor.layout == torch.strided else tensor


def _prepare(prepare: Callable[..., Any], *args: Any, **given: Any) -> Any:
    """Replaces the exporter's function `_prepare_exported_program_for_export`, which asks for sizes again. It leaves
    what only assertions used, such as a position in memory, for which there is no translation."""
    with sizes_above_one(_note_assumption):
        program = prepare(*args, **given)
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            module.graph.eliminate_dead_code()
            module.recompile()
    return program


def _note_assumption() -> None:
    if (record := current_record()) is not None:
        record.assumes_sizes = True


def _is_causal(_: Any, mask: torch.Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Replaces nn.Transformer's comparison of a mask with the causal one: the mask itself is applied anyway."""
    return is_causal is True


def _encode(
    forward: Callable[..., torch.Tensor], encoder: torch.nn.TransformerEncoder, *args: Any, **given: Any
) -> torch.Tensor:  # fmt: skip
    """Replaces the method `forward`: while PyTorch captures a program, it computes masked tokens as in training."""
    result = encode(encoder, *args, **given)
    return forward(encoder, *args, **given) if result is NotImplemented else result


def _no_check(*args: Any) -> None:
    """Replaces a check of the sizes of recurrent layers' inputs, which reads the size of a batch from a packed sequence
    as a constant."""


_WHILE_CAPTURING: dict[str, Callable[..., Any]] = {
    "torch.nn.modules.transformer:_detect_is_causal_mask": _is_causal,
    "torch.nn.modules.transformer:TransformerEncoder.forward": _encode,
    "torch.nn.modules.rnn:RNNBase.check_forward_args": _no_check,
    "torch.nn.modules.rnn:LSTM.check_forward_args": _no_check,
    **packages.REPLACED,
}


def _describe(describe: Callable[..., None], fx_node: torch.fx.Node, ir_node: onnx_ir.Node) -> None:
    """Replaces the exporter's function `_set_node_metadata`."""
    describe(fx_node, ir_node)
    if isinstance(fx_node.meta.get("val"), torch.SymFloat) and _of_python(fx_node) and fx_node.target is not as_single:
        for value in ir_node.outputs:
            if value.name == fx_node.name:
                value.dtype = onnx_ir.DataType.DOUBLE
    if target := fx_node.meta.get("custom", {}).get(OPERATOR_KEY):
        ir_node.metadata_props[OPERATOR_KEY] = target


def _match_constant(match: Callable[..., bool], matcher: Any, pattern: Any, value: Any) -> bool:
    """Makes the exporter's optimizer remove additions of 0 and products with 1 only: it takes 1e-8 for 0, and 1.00001
    for 1. Then it removes the small number that a program adds to a variance.
    """
    exact = not isinstance(pattern.value, list) and pattern.value in (0, 1)
    return match(matcher, type(pattern)(pattern.value, 0.0, 0.0) if exact else pattern, value)


def _onnx_type(find: Callable[..., Any], dtype: torch.dtype) -> Any:
    """Knows complex32: the exporter looks up a type of complex numbers before it replaces it by that of the parts."""
    return onnx_ir.DataType.COMPLEX64 if dtype == torch.complex32 else find(dtype)


def _keep_initializers(
    try_rewrite: Callable[..., Any], rule: Any, model: Any, graph: Any, *args: Any, **given: Any
) -> Any:  # fmt: skip
    """Makes the exporter's optimizer keep the initializers of earlier replacements: it names those of a Clip after the
    input, so that two Clips of one tensor have the same. Then the first Clip has lost its bounds.
    """
    replacement = try_rewrite(rule, model, graph, *args, **given)
    if added := getattr(replacement, "new_initializers", ()):
        taken = set(getattr(graph, "initializers", ()))
        for value in added:
            value.name = next(name for name in _numbered(value.name) if name not in taken)
            taken.add(value.name)
    return replacement


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in itertools.count(1))


REPLACED: dict[str, Callable[..., Any]] = {
    "onnxscript.function_libs.torch_lib.ops.nn:_aten_upsample_scales": resize,
    "onnxscript.rewriter:RewriteRule.try_rewrite": _keep_initializers,
    "onnxscript.rewriter._matcher:SimplePatternMatcher._match_constant": _match_constant,
    "torch.onnx._internal.exporter._core:_prepare_exported_program_for_export": _prepare,
    "torch.onnx._internal.exporter._core:_set_node_metadata": _describe,
    "torch.onnx._internal.exporter._core:torch_dtype_to_onnx_dtype": _onnx_type,
    "torch.onnx._internal.exporter._capture_strategies:TorchExportNonStrictStrategy._capture": _capture,
    "torch.onnx._internal.exporter._fx_passes:decompose_with_registry": _decompose,
}
"""What the exporter calls in the block instead of its own functions, by the name in PATCHES."""
