"""The operators' definitions, as the libraries for ONNX Runtime tell them: nothing but the libraries is needed."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from polyop import get_onnxruntime_op_path
from polyop.packages import libraries


@cache
def operators() -> list[dict[str, Any]]:
    """Name, signatures, attributes, node names and what else adapters/catalogue.cc writes of each operator, polyop's and
    those of packages; "package" says whose it is."""
    made = _of_library(get_onnxruntime_op_path(), "polyop")
    for package, library in libraries("onnxruntime"):
        made += _of_library(str(library), package.name)
    return made


def _of_library(path: str, package: str) -> list[dict[str, Any]]:
    library = ctypes.CDLL(path)
    library.polyop_catalogue.restype = ctypes.c_char_p
    return [{**record, "package": package} for record in json.loads(library.polyop_catalogue())]


def is_node(domain: str, op_type: str) -> bool:
    """Whether an operator answers to nodes of this name."""
    return bool(_candidates(domain, op_type))


def find_node(domain: str, op_type: str, attributes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The operator that a node of a model means, and its node name, or None. Operators may share a name: then the node's
    attributes tell, as in core/meaning.h."""
    candidates = _candidates(domain, op_type)
    conditional = [(o, n) for o, n in candidates if n.get("when") is not None]
    meant = next((c for c in conditional if _fulfils(*c, attributes)), None)
    return meant or next((c for c in candidates if c not in conditional), None)


def spellings(attribute: dict[str, Any], node: dict[str, Any]) -> list[str]:
    """The names under which nodes of this name write the attribute."""
    return [node["renames"].get(attribute["name"], attribute["name"]), *attribute["aliases"]]


@cache
def _candidates(domain: str, op_type: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Of one package: polyop's, if it has any."""
    name = f"{domain}::{op_type}"
    found = [(o, n) for o in operators() for n in o["nodes"] if n["name"] == name]
    return [(o, n) for o, n in found if o["package"] == found[0][0]["package"]]


def _fulfils(operator: dict[str, Any], node: dict[str, Any], attributes: Mapping[str, Any]) -> bool:
    when = node["when"]
    attribute = next(a for a in operator["attributes"] if a["name"] == when["attribute"])
    value = next((attributes[name] for name in spellings(attribute, node) if name in attributes), None)
    return value is not None and (when["least"] is None or (isinstance(value, int) and value >= when["least"]))
