"""Both of PyTorch's ONNX exporters write polyop's operators as its nodes: no table for the user to pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.onnx import symbolic_helper

from polyop._torch import OPERATORS, Operator

_domain = "mmcv"
_JIT_SUFFIX = {int: "i", float: "f", str: "s"}


@contextmanager
def node_domain(domain: str) -> Iterator[None]:
    """Within, exporters write the node names of this domain ("mmcv", "mmdeploy", "custom") where an operator has one."""
    global _domain
    before, _domain = _domain, domain
    try:
        yield
    finally:
        _domain = before


# ---- torch.onnx.export(…, dynamo=True) -------------------------------------------------------------


def _decompose(operator: Operator) -> None:
    """The exporter takes operators apart before it translates them: this one becomes a call of an ONNX node."""

    def decomposition(*args: Any, **given: Any) -> Any:
        flat = operator.flatten(args)
        while flat and flat[-1] is None:
            flat.pop()

        def new_size() -> torch.SymInt:
            """A size that only the kernel finds. The exporter wants to know each from the sizes of inputs."""
            if torch.onnx.is_in_onnx_export():
                raise NotImplementedError(
                    f"polyop::{operator.name} has outputs of a size that only its kernel finds, which PyTorch's new exporter "
                    "cannot write yet: use torch.onnx.export(…, dynamo=False)"
                )
            return detect_fake_mode(flat).shape_env.create_unbacked_symint()

        values = operator.values(given)
        name, attributes = operator.node(values, _domain)
        outputs = operator.outputs(args, given, new_size)
        types, shapes = [t for t, _ in outputs], [s for _, s in outputs]
        if len(outputs) == 1:
            return torch.onnx.ops.symbolic(name, flat, attributes, dtype=types[0], shape=shapes[0], version=1)
        return torch.onnx.ops.symbolic_multi_out(name, flat, attributes, dtypes=types, shapes=shapes, version=1)

    torch._decomp.register_decomposition(operator.overload)(decomposition)


# ---- torch.onnx.export(…, dynamo=False) ------------------------------------------------------------


def _symbolic(operator: Operator) -> None:
    """What the TorchScript exporter calls for a node of its graph."""
    inputs = operator.signatures[0].inputs
    outputs = operator.signatures[0].outputs

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
            value = symbolic_helper._maybe_get_const(arg, _kind(attribute)) if value is None else value
            given[attribute["name"]] = None if symbolic_helper._is_none(arg) else _plain(value)
        name, attributes = operator.node(operator.values(given), _domain)
        written = {f"{k}_{_suffix(v)}": v for k, v in attributes.items()}
        made = g.op(name, *flat, **written, outputs=len(outputs))
        return made

    torch.onnx.register_custom_op_symbolic(f"polyop::{operator.name}", symbolic, 9)


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


for _operator in OPERATORS.values():
    _decompose(_operator)
    _symbolic(_operator)
