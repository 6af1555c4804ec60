# SPDX-License-Identifier: Apache-2.0
"""Synthetic values for the inputs of a model whose meaning an operator states: boxes, RoIs, image indices, points.

core/input_role.h has the roles. The program (cli/base/synthetic_input.cc) draws from the same ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import pi

import numpy as np
import onnx_ir as ir

from polyop._onnx.catalogue import find_node

Draw = Callable[[float, float, int], np.ndarray]
"""Returns columns of random numbers: from, below, the number of columns."""

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
    columns."""
    if role == "batch_index":
        return rng.integers(0, below, shape)
    if role == "points":
        return rng.random(shape) * 8
    if role == "decay_rates":
        return rng.random(shape) * -4
    if role == "step_sizes":
        return rng.random(shape) / 2
    if role not in _COLUMNS or not shape:
        return None
    rows = int(np.prod(shape[:-1]))
    columns = list(_COLUMNS[role](_uniform(rng, rows), rng.integers(0, below, (rows, 1))))
    table = np.concatenate(columns, axis=1)
    return table.reshape(shape) if table.shape[1] == shape[-1] else None


def _uniform(rng: np.random.Generator, rows: int) -> Draw:
    return lambda low, high, columns: rng.uniform(low, high, (rows, columns))


def _boxes(uniform: Draw) -> Iterator[np.ndarray]:
    corner = uniform(0, 32, 2)
    yield corner
    yield corner + uniform(1, 33, 2)


def _rotated_boxes(uniform: Draw) -> Iterator[np.ndarray]:
    yield uniform(16, 48, 2)
    yield uniform(1, 33, 2)
    yield uniform(-pi / 2, pi / 2, 1)


def _boxes3d(uniform: Draw) -> Iterator[np.ndarray]:
    yield uniform(0, 8, 3)
    yield uniform(1, 4, 3)
    yield uniform(-pi, pi, 1)


def _quadrilaterals(uniform: Draw) -> Iterator[np.ndarray]:
    box = np.concatenate(list(_boxes(uniform)), axis=1)
    yield box[:, [0, 1, 2, 1, 2, 3, 0, 3]]


_COLUMNS: Mapping[str, Callable[[Draw, np.ndarray], Iterator[np.ndarray]]] = {
    "boxes": lambda uniform, _: _boxes(uniform),
    "rotated_boxes": lambda uniform, _: _rotated_boxes(uniform),
    "boxes3d": lambda uniform, _: _boxes3d(uniform),
    "quadrilaterals": lambda uniform, _: _quadrilaterals(uniform),
    "rois": lambda uniform, index: iter([index, *_boxes(uniform)]),
    "rotated_rois": lambda uniform, index: iter([index, *_rotated_boxes(uniform)]),
    "bezier_rois": lambda uniform, index: iter([index, uniform(0, 64, 16)]),
}
