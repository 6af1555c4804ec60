# SPDX-License-Identifier: Apache-2.0
"""Calls of operators with arrays, from the calls of nodes: those of nodes whose attributes are the definition's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from polyop._arrays.calls import operators
from polyop._arrays.functions import Function, functions
from tests.support.exported_nodes import NODES, Node

_COUNTS = Counter(node["name"] for record in operators().values() for node in record["nodes"])
_PLAIN = {
    node["name"]: name
    for name, record in operators().items()
    for node in record["nodes"]
    if _COUNTS[node["name"]] == 1  # not shared by operators
    if not (node["renames"] or node["presets"] or node["spellings"] or node["when"])
    if not any(given["variadic"] for given in record["inputs"])
}


def plain_calls() -> list[tuple[str, Node]]:
    """Returns operators and calls of their nodes."""
    calls = [(_PLAIN[node.name], node) for node in NODES if node.name in _PLAIN]
    return [
        (op, node) for op, node in calls if {a["name"] for a in operators()[op]["attributes"]} >= set(node.attributes)
    ]


@cache
def _by_operator() -> dict[str, Function]:
    """Returns the function that has all attributes of an operator, if there is one."""
    found = [f for f in functions(operators()).values() if f.composite is None and not f.row.presets]
    return {f.record["name"]: f for f in found}


def call_of(module: ModuleType, op: str, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """Calls an operator by its function of polyop.numpy, polyop.jax or another such module, with a node's inputs and
    attributes."""
    function = _by_operator().get(op)
    if function is None or function.row.outputs is not None:
        return definition_call(module, op, inputs, attributes)
    defaults = {a["name"]: a["default"] for a in operators()[op]["attributes"]}
    given = {**defaults, **dict.fromkeys(i["name"] for i in operators()[op]["inputs"])}
    given |= dict(zip((i["name"] for i in operators()[op]["inputs"]), inputs, strict=False))
    given |= attributes
    values = {p.name: [given[source] for source in p.sources] for p in function.parameters}
    return getattr(module, function.name)(**{name: v if len(v) > 1 else v[0] for name, v in values.items()})


def definition_call(module: ModuleType, op: str, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """Calls an operator by what all functions of the module call, under the definition's names."""
    values = [attributes.get(attribute["name"]) for attribute in operators()[op]["attributes"]]
    return getattr(module, "_call", getattr(module, "call", None))(op, inputs, values)
