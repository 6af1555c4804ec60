# SPDX-License-Identifier: Apache-2.0
"""Corner pooling, as ops/feature_maps/patterns/corner_pool.cc finds it."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from polyop.optimizing.finding import find_pattern
from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.scope import Scope

NAME = "corner pooling"
ORDER = 50


def find(scope: Scope) -> Iterator[Match]:
    for found in find_pattern(scope, NAME):

        def build(b: Builder, inputs: list[ir.Value], found=found) -> list[ir.Value]:
            (x,) = inputs
            if not found.parameters["is_minimum"]:
                return [b(found.node, x, **found.attributes)]
            return [b("Neg", b(found.node, b("Neg", x), **found.attributes))]

        yield found.match(build)
