"""The operators' definitions, as the libraries for ONNX Runtime tell them: nothing but the libraries is needed."""

from __future__ import annotations

import ctypes
import json
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


def find_node(domain: str, op_type: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The operator and its node name for a node of a model, or None."""
    for operator in operators():
        for node in operator["nodes"]:
            if node["name"] == f"{domain}::{op_type}":
                return operator, node
    return None
