# SPDX-License-Identifier: Apache-2.0
"""Synthetic values for the inputs of a model whose meaning an operator states: boxes, RoIs, image indices, points.

core/input_role.h has the roles.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from polyop._arrays import calls
from polyop._onnx.catalogue import find_node

_STANDARD_DOMAINS = ("", "ai.onnx")
_OF_STANDARD = {"RoiAlign": ("", "boxes", "batch_index"), "NonMaxSuppression": ("boxes", "probability")}
_PASS_ON = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")


def role_of(value: ir.Value) -> str:
    """Returns the role of a tensor: of the first reader that states one, also through nodes that keep the elements."""
    for node, index in value.uses():
        role = _role_of_input(node, index)
        if not role and index == 0 and node.domain in _STANDARD_DOMAINS and node.op_type in _PASS_ON:
            role = role_of(node.outputs[0])
        if role:
            return role
    return ""


def _role_of_input(node: ir.Node, index: int) -> str:
    values = {name: attribute.value for name, attribute in node.attributes.items()}
    found = find_node(node.domain, node.op_type, values)
    if found is not None:
        roles: Sequence[str] = [i.get("role", "") for i in found[0]["inputs"]]  # absent in libraries of an older SDK
        return roles[min(index, len(roles) - 1)] if roles else ""
    of_standard = _OF_STANDARD.get(node.op_type, ()) if node.domain in _STANDARD_DOMAINS else ()
    return of_standard[index] if index < len(of_standard) else ""


def draw(role: str, shape: Sequence[int], below: int, rng: np.random.Generator) -> np.ndarray | None:
    """Returns values of a role; image indices are below `below`. None if there is no such role, or another number of
    columns. adapters/synthetic_rows.h has the ranges."""
    rows = calls.library().polyop_draw_rows
    columns = rows(role.encode(), ctypes.c_int64(0), ctypes.c_int64(below), ctypes.c_uint32(0), None)
    if columns == 0 or (columns > 1 and (not shape or shape[-1] != columns)):
        return None
    values, seed = np.empty(shape), int(rng.integers(1 << 32))
    count = values.size // columns
    rows(role.encode(), ctypes.c_int64(count), ctypes.c_int64(below), ctypes.c_uint32(seed), values.ctypes)
    return values
