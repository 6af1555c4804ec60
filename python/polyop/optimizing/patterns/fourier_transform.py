# SPDX-License-Identifier: Apache-2.0
"""ONNX's DFT of one axis, as ops/sequence/patterns/fourier_transform.cc finds it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import onnx_ir as ir

from polyop.optimizing.finding import find_pattern
from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.scope import Scope

NAME = "Fourier transform"
ORDER = 90
_MOST_PRODUCTS = 1 << 34
"""Of the reference kernel, with which transforms are compared for which ONNX Runtime's kernel is inexact."""


def find(scope: Scope) -> Iterator[Match]:
    for found in find_pattern(scope, NAME):

        def build(b: Builder, inputs: list[ir.Value], found=found) -> list[ir.Value]:
            axis, last = found.parameters["axis"], found.parameters["last"]
            order = [*range(last + 2)]
            order[axis], order[last] = last, axis
            given = b("Transpose", inputs[0], perm=order) if axis != last else inputs[0]
            result = b(found.node, given, **found.attributes)
            return [b("Transpose", result, perm=order) if axis != last else result]

        match = replace(found.match(build), is_fix=bool(found.parameters.get("is_inexact")))
        shape = scope.shape(found.inputs[0])
        if match.is_fix and prod(shape[:-1]) * shape[found.parameters["axis"]] > _MOST_PRODUCTS:
            match.refused = "it is too long to be compared with the reference"
        yield match
