# SPDX-License-Identifier: Apache-2.0
"""The definitions of operators, read from the libraries for ONNX Runtime. Needs no other package."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

from polyop._libraries import get_onnxruntime_op_path, read_catalogue
from polyop._packages import libraries

PLUGIN_DOMAIN = "trt.plugins"
"""The domain of all plugins in ONNX Runtime's provider for TensorRT, as in core/node_resolution.h."""

WITHOUT_EFFECT = {"plugin_version": "string", "plugin_namespace": "string", "im2col_step": "int", "bias": "int"}
"""Attributes that are valid on every node, and their types, as in cli/base/model_check.cc."""


@cache
def operators() -> list[dict[str, Any]]:
    """Returns the records of polyop's operators and those of packages, as adapters/catalogue.cc writes them: name,
    signatures, attributes, node names and more. "package" is the name of the package, or "polyop"."""
    result = _of_library(get_onnxruntime_op_path(), "polyop")
    for package, library in libraries("onnxruntime"):
        result += _of_library(str(library), package.name)
    return result


def _of_library(path: str, package: str) -> list[dict[str, Any]]:
    records = read_catalogue(ctypes.CDLL(path))
    return [{**record, "package": package} for record in records if not record.get("gradient_of")]


def is_node(domain: str, op_type: str) -> bool:
    """Returns True if an operator has nodes of this name."""
    return bool(_candidates(domain, op_type))


def find_node(domain: str, op_type: str, attributes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Returns the operator that a node resolves to and its node name, or None if there is none.

    Operators may share a node name; then the node's attributes decide, as in core/node_resolution.h.
    """
    candidates = _candidates(domain, op_type)
    conditional = [(o, n) for o, n in candidates if n.get("when") is not None]
    chosen = next((c for c in conditional if _fulfils(*c, attributes)), None)
    return chosen or next((c for c in candidates if c not in conditional), None)


def spellings(attribute: dict[str, Any], node: dict[str, Any]) -> list[str]:
    """Returns the names that the attribute may have on nodes of this name, the preferred one first."""
    return [node["renames"].get(attribute["name"], attribute["name"]), *attribute["aliases"]]


@cache
def _candidates(domain: str, op_type: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Returns the operators with nodes of this name, all of one package: the first that has any, polyop before
    others."""
    if domain == PLUGIN_DOMAIN:
        own = ((o, n) for o in operators() if o["package"] == "polyop" for n in o["nodes"] if n["plugin"])
        return [(o, n) for o, n in own if n["name"].endswith(f"::{op_type}")]
    name = f"{domain}::{op_type}"
    found = [(o, n) for o in operators() for n in o["nodes"] if n["name"] == name]
    return [(o, n) for o, n in found if o["package"] == found[0][0]["package"]]


def _fulfils(operator: dict[str, Any], node: dict[str, Any], attributes: Mapping[str, Any]) -> bool:
    when = node["when"]
    attribute = next(a for a in operator["attributes"] if a["name"] == when["attribute"])
    value = next((attributes[name] for name in spellings(attribute, node) if name in attributes), None)
    return value is not None and (when["least"] is None or (isinstance(value, int) and value >= when["least"]))
