"""The operators' definitions, as polyop's library for ONNX Runtime tells them: nothing but the library is needed."""

from __future__ import annotations

import ctypes
import json
from functools import cache
from typing import Any

from polyop import get_onnxruntime_op_path


@cache
def operators() -> list[dict[str, Any]]:
    """Name, signatures, attributes, node names and what else adapters/catalogue.cc writes of each operator."""
    library = ctypes.CDLL(get_onnxruntime_op_path())
    library.polyop_catalogue.restype = ctypes.c_char_p
    return json.loads(library.polyop_catalogue())


def find_node(domain: str, op_type: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The operator and its node name for a node of a model, or None."""
    for operator in operators():
        for node in operator["nodes"]:
            if node["name"] == f"{domain}::{op_type}":
                return operator, node
    return None
