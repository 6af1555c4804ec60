# SPDX-License-Identifier: Apache-2.0
"""Deformable convolution by gathers, as ops/deform/patterns/gathered_deform_conv.cc finds it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from polyop.optimizing.finding import Found, find_pattern
from polyop.optimizing.graph import constant
from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.scope import Scope

NAME = "deformable convolution"
ORDER = 15


def find(scope: Scope) -> Iterator[Match]:
    for found in find_pattern(scope, NAME):
        yield _match(found)


def _match(found: Found) -> Match:
    def build(b: Builder, given: list[ir.Value]) -> list[ir.Value]:
        operands = [given[i] if i >= 0 else None for i in found.parameters["roles"]]
        return b.node(found.node, operands, found.attributes)

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Returns offsets of a few pixels, also across the border."""
        drawn = [rng.standard_normal(a.shape).astype(a.dtype) for a in arrays]
        drawn[found.parameters["offset"]] *= 3
        return [a if constant(v) is not None else d for v, a, d in zip(found.inputs, arrays, drawn, strict=True)]

    return found.match(build, feeds)
