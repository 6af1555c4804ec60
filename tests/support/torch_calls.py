# SPDX-License-Identifier: Apache-2.0
"""The exported nodes as calls of `torch.ops.polyop`."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from polyop._onnx.catalogue import find_node
from polyop._torch.operators import OPERATORS, Operator
from tests.support.exported_nodes import NODES, Node


def operator_of(node: Node) -> Operator:
    return OPERATORS[find_node(*node.name.split("::"), node.attributes)[0]["name"]]


def has_aliases(node: Node) -> bool:
    """Returns whether the node uses aliases of attribute names. Files have aliases, functions do not."""
    operator = operator_of(node)
    renames = next(n["renames"] for n in operator.nodes if n["name"] == node.name)
    others = [alias for a in operator.attributes if a["name"] not in renames for alias in a["aliases"]]
    return any(alias in node.attributes for alias in others)


NAMED = [node for node in NODES if not has_aliases(node)]


def call_of(node: Node) -> tuple[Operator, list[Any], dict[str, Any]]:
    """Returns the operator, its arguments and its attributes."""
    operator = operator_of(node)
    record = next(n for n in operator.nodes if n["name"] == node.name)
    types = {attribute["name"]: attribute["type"] for attribute in operator.attributes}
    given: dict[str, Any] = {k: int(v) if types[k] == "int" else v for k, v in record["presets"].items()}
    for attribute in operator.attributes:
        written = record["renames"].get(attribute["name"], attribute["name"])
        if written in node.attributes:
            value = node.attributes[written]
            value = next((ours for ours, theirs in record["spellings"].items() if theirs == value), value)
            coded = attribute["choices"] and isinstance(value, int)
            given[attribute["name"]] = attribute["choices"][value] if coded else value
    tensors = [None if array is None else torch.from_numpy(array) for array in node.inputs]
    specs = operator.inputs
    if specs[-1].variadic:
        tensors = [*tensors[: len(specs) - 1], tensors[len(specs) - 1 :]]
    return operator, tensors + [None] * (len(specs) - len(tensors)), given


def as_text(node: Node) -> str:
    """Returns a text that is the same for all names of one call: operator, attributes, types and shapes of tensors."""
    operator, _, given = call_of(node)
    return str((operator.name, sorted(given.items()), [a if a is None else (a.dtype, a.shape) for a in node.inputs]))


CALLS = list({as_text(node): node for node in reversed(NAMED)}.values())[::-1]


def one_per_operator_is_quick(nodes: list[Node]) -> list[Any]:
    """Returns the nodes as parameters: one for each operator and number of tensors; the others are marked slow."""
    seen: set[tuple[str, int]] = set()
    params = []
    for node in nodes:
        kind = (operator_of(node).name, len(node.inputs))
        params.append(pytest.param(node, id=name_of(node), marks=[pytest.mark.slow] if kind in seen else []))
        seen.add(kind)
    return params


def domain_of(node: Node) -> str:
    return node.name.split("::")[0]


def as_tuple(result: Any) -> tuple[torch.Tensor, ...]:
    return (result,) if isinstance(result, torch.Tensor) else tuple(result)


def name_of(node: Node) -> str:
    return f"{node.name}-{len(node.inputs)}"
