# SPDX-License-Identifier: Apache-2.0
"""Registers the ONNX nodes of polyop's operators and those of packages with both of PyTorch's exporters.

It adds entries for these operators and changes nothing else. exporters.py imports this module.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.onnx import symbolic_helper

from polyop._torch.node_domain import chosen_domain
from polyop._torch.operators import ALL_OPERATORS, Operator

_JIT_SUFFIX = {int: "i", float: "f", str: "s"}


# ---- torch.onnx.export(…, dynamo=True) -------------------------------------------------------------


def _node(operator: Operator, args: tuple[Any, ...], given: dict[str, Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """Returns the name, inputs and attributes of a call's ONNX node."""
    inputs = operator.flatten(args)
    while inputs and inputs[-1] is None:
        inputs.pop()
    name, attributes = operator.node(operator.values(given), chosen_domain())
    return name, inputs, attributes


def _translate(operator: Operator) -> None:
    """Registers a translation to the operator's node. Types and shapes come from the fake kernel.

    A decomposition into torch.onnx.ops.symbolic would affect others: inductor refuses operators with one if CI is set.
    """

    def translation(*args: Any, **given: Any) -> Any:
        name, inputs, attributes = _node(operator, args, given)
        domain, _, op_type = name.partition("::")
        result = onnx_ir.Node(
            domain,
            op_type,
            inputs,
            onnx_ir.convenience.convert_attributes(attributes),
            version=1,
            num_outputs=operator.num_outputs,
        )
        _core.current_tracer.nodes.append(result)
        return result.outputs[0] if len(result.outputs) == 1 else result.outputs

    onnx_impl(operator.overload, no_compile=True)(translation)


# ---- torch.onnx.export(…, dynamo=False) ------------------------------------------------------------


def _symbolic(operator: Operator) -> None:
    """Registers the function that the TorchScript exporter calls for a node of its graph."""
    inputs = operator.inputs

    def symbolic(g: Any, *args: Any) -> Any:
        flat = []
        for spec, arg in zip(inputs, args, strict=False):
            if spec.variadic:
                flat += symbolic_helper._unpack_list(arg)
            else:
                flat.append(arg)
        while flat and symbolic_helper._is_none(flat[-1]):
            flat.pop()
        given = {}
        for attribute, arg in zip(operator.attributes, args[len(inputs) :], strict=True):
            value = symbolic_helper._node_get(arg.node(), "value") if arg.node().kind() == "onnx::Constant" else None
            value = symbolic_helper._maybe_get_const(arg, cast(Any, _kind(attribute))) if value is None else value
            given[attribute["name"]] = None if symbolic_helper._is_none(arg) else _plain(value)
        name, attributes = operator.node(operator.values(given), chosen_domain())
        written = {f"{k}_{_suffix(v)}": v for k, v in attributes.items()}
        result = g.op(name, *flat, **written, outputs=operator.num_outputs)
        return result

    torch.onnx.register_custom_op_symbolic(f"{operator.namespace}::{operator.name}", symbolic, 9)


def _kind(attribute: dict[str, Any]) -> str:
    if attribute["choices"]:
        return "s"
    return {"int": "i", "float": "f", "ints": "is", "floats": "fs"}.get(attribute["type"], "s")


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return list(value) if isinstance(value, (list, tuple)) else value


def _suffix(value: Any) -> str:
    return _JIT_SUFFIX[type(value[0] if isinstance(value, list) else value)]


try:
    import onnx_ir
    from torch.onnx._internal.exporter import _core
    from torch.onnx._internal.exporter._torchlib._torchlib_registry import onnx_impl
except ImportError:  # without onnxscript there is no dynamo exporter
    onnx_impl = None

for _operator in ALL_OPERATORS:
    if onnx_impl is not None:
        _translate(_operator)
    _symbolic(_operator)
