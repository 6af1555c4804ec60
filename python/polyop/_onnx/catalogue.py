# SPDX-License-Identifier: Apache-2.0
"""The definitions of operators, read from the libraries for ONNX Runtime. Needs no other package."""

from __future__ import annotations

import ctypes
import json
import math
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from polyop._base.libraries import get_onnxruntime_op_path, read_catalogue
from polyop._base.packages import libraries

PLUGIN_DOMAIN = "trt.plugins"
"""The domain of all plugins in ONNX Runtime's provider for TensorRT, as in core/node_resolution.h."""

WITHOUT_EFFECT = {"plugin_version": "string", "plugin_namespace": "string", "im2col_step": "int", "bias": "int"}
"""Attributes that are valid on every node, and their types, as in cli/base/model_check.cc."""


class Resolved(NamedTuple):
    """The operator of a node, as adapters/resolve.cc determines it."""

    operator: dict[str, Any] | None
    """None: the node's attributes select none of the operators that share the node's name."""
    node: dict[str, Any]
    """The operator's entry of the node name."""
    values: dict[str, Any]
    """The values of all attributes, by the definition's names. Empty if there is an error."""
    error: str
    """Why a runtime refuses the node's attributes, or ""."""


@cache
def operators() -> list[dict[str, Any]]:
    """Returns the records of polyop's operators and those of packages, as adapters/catalogue.cc writes them: name,
    signatures, attributes, node names and more. "package" is the name of the package, or "polyop"."""
    return [record for records in _libraries().values() for record in records.values()]


@cache
def _libraries() -> dict[ctypes.CDLL, dict[str, dict[str, Any]]]:
    """Returns the libraries, polyop's first, each with its records by the operators' names."""
    paths = {"polyop": get_onnxruntime_op_path(), **{p.name: str(path) for p, path in libraries("onnxruntime")}}
    found = {}
    for package, path in paths.items():
        library = ctypes.CDLL(path)
        library.polyop_resolve_node.restype = ctypes.c_char_p
        records = [{**record, "package": package} for record in read_catalogue(library)]
        found[library] = {record["name"]: record for record in records if not record.get("gradient_of")}
    return found


@cache
def is_node(domain: str, op_type: str) -> bool:
    """Returns True if an operator has nodes of this name."""
    return resolve(domain, op_type, {}) is not None


def find_node(domain: str, op_type: str, attributes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Returns the operator that a node resolves to and its node name, or None if there is none."""
    found = resolve(domain, op_type, attributes)
    return None if found is None or found.operator is None else (found.operator, found.node)


def resolve(domain: str, op_type: str, attributes: Mapping[str, Any]) -> Resolved | None:
    """Returns what a node resolves to, or None if no operator has nodes of this name. Values that are neither numbers
    nor texts are as unknown as None, for an attribute whose value comes from the call of a function."""
    given = {name: _plain(value) for name, value in attributes.items()}
    found = _resolve(json.dumps({"domain": domain, "type": op_type, "attributes": given}))
    if found is None or found.operator is None or None not in found.values.values():
        return found
    for attribute in found.operator["attributes"]:  # JSON has no infinities
        names = [name for name in spellings(attribute, found.node) if name in attributes]
        if found.values[attribute["name"]] is None and names:
            found.values[attribute["name"]] = attributes[names[0]]
    return found


@lru_cache(maxsize=4096)
def _resolve(node: str) -> Resolved | None:
    for library, records in _libraries().items():
        reply = json.loads(library.polyop_resolve_node(node.encode()))
        if reply is None or (reply["operator"] is not None and reply["operator"] not in records):
            continue
        operator = records.get(reply["operator"])
        entry = operator["nodes"][reply["node"]] if operator is not None else {}
        return Resolved(operator, entry, reply.get("attributes", {}), reply.get("error", ""))
    return None


def _plain(value: Any) -> Any:
    """Returns a value for the request, where texts stand for infinities and NaN."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return int(value) if isinstance(value, bool) else value if isinstance(value, (int, float, str)) else None


def spellings(attribute: dict[str, Any], node: dict[str, Any]) -> list[str]:
    """Returns the names that the attribute may have on nodes of this name, the preferred one first."""
    return [node["renames"].get(attribute["name"], attribute["name"]), *attribute["aliases"]]
