# SPDX-License-Identifier: Apache-2.0
"""The shapes that a file declares, which other runtimes believe, and those that it computes."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx

Shape = Sequence[int | str]
"""Numbers, symbols such as n, expressions such as 2*n + 1, and "" for a size of which nothing is declared."""

# What PyTorch's exporter writes in expressions.
_FUNCTIONS: dict[str, Any] = {
    "__builtins__": {}, "Max": max, "Min": min, "FloorToInt": math.floor, "CeilToInt": math.ceil, "ToFloat": float,
    "Mod": operator.mod, "PythonMod": operator.mod,
}  # fmt: skip


@dataclass(frozen=True)
class Declared:
    """The shapes of a file's inputs, by name, and of its outputs; None for an unknown rank."""

    inputs: Mapping[str, Shape | None]
    outputs: Sequence[Shape | None]

    @classmethod
    def by(cls, graph: onnx.GraphProto) -> Declared:
        """ONNX Runtime's sessions lack the sizes that contradict its own shape inference."""
        return cls({value.name: _shape(value) for value in graph.input}, [_shape(value) for value in graph.output])

    def contradictions(self, inputs: Mapping[str, Sequence[int]], outputs: Iterable[Sequence[int]]) -> list[str]:
        """Returns, for each output, what the file declares otherwise than it is; empty for a right shape.

        Symbols are not compared at sizes of inputs that have two values for one.
        """
        known = self._symbols(inputs)
        return [_contradiction(shape, got, known) for shape, got in zip(self.outputs, outputs, strict=True)]

    def wrong_expressions(self, inputs: Mapping[str, Sequence[int]], outputs: Iterable[Sequence[int]]) -> set[str]:
        """Returns the expressions of outputs, such as 2*n, that have another value at these sizes: PyTorch's exporter
        computes some with a size that only equals another one, but for a number, in the program."""
        known = self._symbols(inputs) or {}
        sizes = (
            pair
            for shape, got in zip(self.outputs, outputs, strict=False)
            for pair in zip(shape or (), got, strict=False)
        )
        return {
            s for s, got in sizes if isinstance(s, str) and s and s not in known and _value(s, known) not in (None, got)
        }

    def _symbols(self, inputs: Mapping[str, Sequence[int]]) -> dict[str, int] | None:
        """Returns the values of symbols; None if one has two."""
        known: dict[str, int] = {}
        for name, shape in self.inputs.items():
            for size, got in zip(shape or (), inputs.get(name, ()), strict=False):
                if isinstance(size, str) and size != "" and known.setdefault(size, got) != got:
                    return None
        return known


def clear(graph: onnx.GraphProto, expressions: set[str]) -> None:
    """Declares nothing of the sizes that have these expressions."""
    for value in (*graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in expressions:
                dim.Clear()


def _shape(value: onnx.ValueInfoProto) -> Shape | None:
    tensor = value.type.tensor_type
    sizes = (d.dim_value if d.WhichOneof("value") == "dim_value" else d.dim_param for d in tensor.shape.dim)
    return list(sizes) if tensor.HasField("shape") else None


def _contradiction(shape: Shape | None, got: Sequence[int], known: dict[str, int] | None) -> str:
    """`known`: the values of symbols and expressions, which those of this output join; None if they have none."""
    if shape is None:
        return ""
    if len(shape) != len(got):
        return f"is declared to have {len(shape)} dimensions, got {len(got)}"
    for axis, (size, actual) in enumerate(zip(shape, got, strict=True)):
        if isinstance(size, int):
            if size != actual:
                return f"is declared to have {size} in dimension {axis}, got {actual}"
        elif size and known is not None:
            if size not in known:
                value = _value(size, known)
                known[size] = actual if value is None else value
            if known[size] != actual:
                return f"is declared to have '{size}' in dimension {axis}, which is {known[size]}, got {actual}"
    return ""


def _value(text: str, known: Mapping[str, int]) -> int | None:
    """Returns the value of an expression. None if it has other symbols, such as sizes that depend on values."""
    try:
        value = eval(text, _FUNCTIONS, dict(known))
    except Exception:  # another symbol or function, or no expression
        return None
    return int(value) if isinstance(value, int | float) and value == int(value) else None
