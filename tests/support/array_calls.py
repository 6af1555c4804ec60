"""Calls of operators with arrays, from the calls of nodes: those of nodes whose attributes are the definition's."""

from __future__ import annotations

from collections import Counter

from polyop._calls import operators
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
