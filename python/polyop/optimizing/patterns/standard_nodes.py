# SPDX-License-Identifier: Apache-2.0
"""Nodes of ONNX's own operators for which polyop has nodes with the same inputs, attributes and results.

polyop's definitions state the standard operator and its opset for each node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from math import prod

import numpy as np
import onnx
import onnx_ir as ir

from polyop._onnx.catalogue import operators
from polyop.optimizing.graph import is_standard
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope

NAME = "standard nodes"
ORDER = 90

Shape = tuple[int, ...]
_FLOAT = ir.DataType.FLOAT
_OF_FLOAT = ("Tan", "Sinh", "Cosh", "Atanh")
"""ONNX Runtime has no kernels of other types for these."""
# TensorRT has the others. Its RoiAlign is a plugin of NVIDIA's library, which TensorRT-RTX lacks.
_FOR_TENSORRT = ("DeformConv", "RoiAlign")


@cache
def _mirrors() -> dict[str, dict[int, dict[str, str]]]:
    """Returns by operator: the opsets since which polyop's node is equal, and the attributes that it needs then."""
    nodes = [node for operator in operators() for node in operator["nodes"] if node["standards"]]
    return {n["name"].partition("::")[2]: {s["since"]: s["preset"] for s in n["standards"]} for n in nodes}


def find(scope: Scope) -> Iterator[Match]:
    def match(node: ir.Node) -> Match | None:
        if node.op_type in _OF_FLOAT and {v.dtype for v in (*node.inputs, *node.outputs) if v} - {_FLOAT, None}:
            return None
        since = onnx.defs.get_schema(node.op_type, max_inclusive_version=scope.opset).since_version
        return _match(scope, node, _mirrors()[node.op_type].get(since))

    kinds = _FOR_TENSORRT if scope.target.is_tensorrt else tuple(_mirrors())
    yield from matches_of((n for n in scope.graph if is_standard(n, *kinds)), match)


def _match(scope: Scope, node: ir.Node, presets: dict[str, str] | None) -> Match:
    shapes = [scope.shape(v) for v in [*node.inputs, *node.outputs]]
    read = list(node.inputs)  # a copy: other replacements may change the node's inputs
    inputs = list(dict.fromkeys(v for v in read if v is not None))

    def build(b: Builder, given: list[ir.Value]) -> list[ir.Value]:
        now = dict(zip(inputs, given, strict=True))
        operands = [now[v] if v is not None else None for v in read]
        return b.node(f"polyop::{node.op_type}", operands, {**(presets or {}), **node.attributes})

    refused = "" if presets is not None else f"polyop has no {node.op_type} as of opset {scope.opset}"
    known = None not in [s for s, v in zip(shapes, [*node.inputs, *node.outputs], strict=True) if v is not None]
    work = _WORK.get(node.op_type, _elements)(shapes) if known else float("inf")
    match = Match(name_of(node), inputs, list(node.outputs[:1]), build, work, refused)
    match.what = node.op_type
    match.is_fix = node.op_type == "RoiAlign" and node.attributes.get_string("mode", "avg") == "max"
    match.feeds = FEEDS.get(node.op_type)
    return match


def _elements(shapes: list[Shape]) -> float:
    """Returns the number of elements of the result."""
    return prod(shapes[-1])


def _pairs(shapes: list[Shape]) -> float:
    """Returns the number of pairs of boxes in all classes of NonMaxSuppression."""
    return prod(shapes[1]) * shapes[1][-1]


def _share(shapes: list[Shape]) -> float:
    """Returns the ratio of the elements of the result and the image."""
    return prod(shapes[-1]) / max(prod(shapes[0]), 1)


_WORK: dict[str, Callable[[list[Shape]], float]] = {"NonMaxSuppression": _pairs, "RoiAlign": _share}


# ---- Values to compare with, for operators that need specific ones ----


def _grids(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Returns coordinates inside, at and outside the border."""
    image, grid = arrays
    return [
        rng.standard_normal(image.shape).astype(image.dtype),
        rng.uniform(-1.5, 1.5, grid.shape).astype(grid.dtype),
    ]


def _rois(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Returns boxes like those of the model, at positions close to theirs."""
    image, rois, indices = arrays
    finite = np.where(np.isfinite(rois), rois, 0)
    moved = finite + rng.uniform(-1, 1, rois.shape) * (1 + np.abs(finite) / 4)
    return [rng.standard_normal(image.shape).astype(image.dtype), moved.astype(rois.dtype), indices]


def _candidates(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Returns boxes, many of which overlap, and distinct scores."""
    boxes, scores, *rest = arrays
    corner = rng.uniform(0, 10, (*boxes.shape[:-1], 2))
    drawn = np.concatenate([corner, corner + rng.uniform(1, 10, corner.shape)], -1)
    order = rng.permuted(np.broadcast_to(np.arange(scores.shape[-1]), scores.shape), axis=-1)
    return [drawn.astype(boxes.dtype), ((order + 0.5) / max(scores.shape[-1], 1)).astype(scores.dtype), *rest]


FEEDS = {"GridSample": _grids, "RoiAlign": _rois, "NonMaxSuppression": _candidates}
