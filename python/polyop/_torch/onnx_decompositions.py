# SPDX-License-Identifier: Apache-2.0
"""What torch.onnx.export(…, dynamo=True) does in a `with polyop.translations():` block.

The exporter captures a program and decomposes it into operators that have an ONNX form. In the block, polyop adds its
translations (polyop/_aten, onnx_translations.py) to the tables that it uses for that, where a user's
`custom_translation_table` has priority, and replaces functions whose checks of values stop the capture.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import onnx_ir
import torch
from torch.fx.traceback import annotate
from torch.onnx._internal.exporter import _decomp, _registration
from torch.utils import _pytree as pytree

from polyop._aten import TRANSLATIONS, overload, packages
from polyop._aten.attention import encode, flex_attention
from polyop._aten.capturing import Capturing, known_buffers, sizes_above_one
from polyop._aten.complex_numbers import is_complex
from polyop._aten.detection import detectors_without_counts
from polyop._aten.guards import Queries, guards_of, guards_of_failure, noting
from polyop._aten.integers import SymbolicIntegers
from polyop._aten.patches import replaced
from polyop._aten.pooling import window_count
from polyop._aten.quantized import fixed_switches
from polyop._torch.empty_tensors import replace_empty
from polyop._torch.export_record import Record, current_record
from polyop._torch.graph_passes import (
    compute_in_double,
    graph_modules,
    make_results_tensors,
    name_results,
    note_unknown,
    of_python,
    round_down,
    separate_paddings,
    sum_in_double,
)
from polyop._torch.onnx_translations import OPERATOR_KEY, add_nodes, as_single, resize


def _counted(target: str, function: Callable[..., Any], default: Callable[..., Any] | None) -> Callable[..., Any]:
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
) -> torch.export.ExportedProgram:
    """Replaces the exporter's function `decompose_with_registry`."""
    add_nodes(registry)
    table = _decomp.create_onnx_friendly_decomposition_table(set(_decomp.get_onnx_implemented_overloads(registry)))
    _add_complex(table, registry)
    for target, translation in TRANSLATIONS.items():
        op = overload(target)
        if op is None or any(meta.is_custom for meta in registry.get_decomps(op)):
            continue
        table[op] = _counted(target, translation.function, table.get(op))
    replace_empty(program.graph_module.graph, decomposed=False)
    with replaced({"torch._higher_order_ops.flex_attention:trace_flex_attention": _attend}):
        program = program.run_decompositions(table)
    replace_empty(program.graph_module.graph, decomposed=True)
    separate_paddings(program.graph_module.graph)
    make_results_tensors(program)
    for module in graph_modules(program):
        compute_in_double(module.graph)
        round_down(module.graph)
        sum_in_double(module.graph)
    record = current_record()
    if record is not None:
        note_unknown(program, registry, record)
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


def _capture(
    capture: Callable[..., torch.export.ExportedProgram], strategy: Any, *args: Any, **given: Any
) -> torch.export.ExportedProgram:
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
        replaced({"torch:SymInt.__int__": integers.of_size}),
    ):
        record, queries = current_record() or Record(), Queries()
        while True:
            try:
                with noting(queries):
                    program = capture(strategy, *args, **given)
            except Exception as error:
                if integers.add(error):
                    continue
                record.guards = guards_of_failure(error, queries)  # the exporter's second strategy may succeed
                raise
            record.guards, record.texts = guards_of(program, queries), list(queries.texts)
            return program


def _contiguous(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous() if tensor.layout == torch.strided else tensor


def _prepare(prepare: Callable[..., Any], *args: Any, **given: Any) -> Any:
    """Replaces the exporter's function `_prepare_exported_program_for_export`, which asks for sizes again. It leaves
    what only assertions used, such as a position in memory, for which there is no translation."""
    with sizes_above_one(_note_assumption):
        program = prepare(*args, **given)
    name_results(program)
    for module in graph_modules(program):
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
) -> torch.Tensor:
    """Replaces the method `forward`: while PyTorch captures a program, it computes masked tokens as in training."""
    result = encode(encoder, *args, **given)
    return forward(encoder, *args, **given) if result is NotImplemented else result


def _attention(attend: Callable[..., torch.Tensor], *args: Any, **given: Any) -> torch.Tensor:
    """Takes a condition on sizes for `is_causal`, which PyTorch's function refuses before modes see the call."""
    values = pytree.tree_map_only(torch.SymBool, bool, (args, given))
    return attend(*values[0], **values[1])


def _no_check(*args: Any) -> None:
    """Replaces a check of the sizes of recurrent layers' inputs, which reads the size of a batch from a packed sequence
    as a constant."""


_WHILE_CAPTURING: dict[str, Callable[..., Any]] = {
    "torch.nn.functional:scaled_dot_product_attention": _attention,
    "torch.nn.modules.transformer:_detect_is_causal_mask": _is_causal,
    "torch.nn.modules.transformer:TransformerEncoder.forward": _encode,
    "torch.nn.modules.rnn:RNNBase.check_forward_args": _no_check,
    "torch.nn.modules.rnn:LSTM.check_forward_args": _no_check,
    **packages.REPLACED,
}


def _describe(describe: Callable[..., None], fx_node: torch.fx.Node, ir_node: onnx_ir.Node) -> None:
    """Replaces the exporter's function `_set_node_metadata`."""
    describe(fx_node, ir_node)
    if isinstance(fx_node.meta.get("val"), torch.SymFloat) and of_python(fx_node) and fx_node.target is not as_single:
        for value in ir_node.outputs:
            if value.name == fx_node.name:
                value.dtype = onnx_ir.DataType.DOUBLE
    if target := fx_node.meta.get("custom", {}).get(OPERATOR_KEY):
        ir_node.metadata_props[OPERATOR_KEY] = target


def _window_count(_: Any, *args: Any) -> Any:
    """Replaces the exporter's function of the size of a pool."""
    return window_count(*args)


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
) -> Any:
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
    "torch._meta_registrations:pooling_output_shape_pad_lr": _window_count,
    "torch.onnx._internal.exporter._core:_prepare_exported_program_for_export": _prepare,
    "torch.onnx._internal.exporter._core:_set_node_metadata": _describe,
    "torch.onnx._internal.exporter._core:torch_dtype_to_onnx_dtype": _onnx_type,
    "torch.onnx._internal.exporter._capture_strategies:TorchExportNonStrictStrategy._capture": _capture,
    "torch.onnx._internal.exporter._fx_passes:decompose_with_registry": _decompose,
}
"""What the exporter calls in the block instead of its own functions, by the name in PATCHES."""
