# SPDX-License-Identifier: Apache-2.0
"""The guards of a capture, as conditions on dynamic dimensions."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Any

import torch

# What PyTorch's printer of guards uses.
_FUNCTIONS: dict[str, Any] = {
    "__builtins__": {}, "torch": torch, "math": math, "max": max, "min": min, "abs": abs, "int": int, "float": float,
    "round": round,
}  # fmt: skip
_EQUAL = re.compile(r"^\(?(\w+)\)? == \(?(\w+)\)?$")


@dataclass(frozen=True, eq=False)
class Condition:
    """A condition that the sizes of a captured program fulfil."""

    text: str
    """Python code in which s0, s1, … are sizes."""
    line: str
    """Where the program queried it; empty if PyTorch's own code did."""
    used: Mapping[str, str]
    """The dimension of each size."""
    is_number: bool = False
    """Whether the program made this number of sizes."""

    @cached_property
    def dimensions(self) -> frozenset[str]:
        return frozenset(self.used.values())

    @cached_property
    def equal(self) -> tuple[str, str] | None:
        """The two dimensions that have one size, if that is the condition."""
        match = _EQUAL.match(self.text)
        return (self.used[match[1]], self.used[match[2]]) if match and {match[1], match[2]} <= set(self.used) else None

    @property
    def is_equation(self) -> bool:
        return " == " in self.text and len(self.used) > 1

    def holds(self, sizes: Mapping[str, int]) -> bool | None:
        """None for sizes that it has no value for, such as those that divide by zero, and if it is not known how to
        evaluate it."""
        value = self._value(self._code, sizes)
        return None if value is None else bool(value)

    def differences(self, sizes: Mapping[str, int]) -> list[float | None]:
        """Returns the left side minus the right one of each of its comparisons. Their signs tell where it changes."""
        return [self._value(code, sizes) for code in self._differences]

    @cached_property
    def numbers(self) -> frozenset[int]:
        """The integers of its text."""
        tree = ast.walk(self._tree)
        return frozenset(node.value for node in tree if isinstance(node, ast.Constant) and type(node.value) is int)

    def readable(self) -> str:
        text = re.sub(r"\bs\d+\b", lambda match: self.used.get(match[0], match[0]), self.text)
        return f"{text}, at {self.line}" if self.line else text

    @cached_property
    def _tree(self) -> ast.Expression:
        return ast.parse(self.text, mode="eval")

    @cached_property
    def _code(self) -> CodeType:
        return compile(self._tree, self.text, "eval")

    @cached_property
    def _differences(self) -> list[CodeType]:
        found = []
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Compare):
                for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
                    code = f"({ast.unparse(left)}) - ({ast.unparse(right)})"
                    found.append(compile(code, code, "eval"))
        return found

    def _value(self, code: CodeType, sizes: Mapping[str, int]) -> Any:
        try:
            return eval(code, _FUNCTIONS, {name: sizes[dimension] for name, dimension in self.used.items()})
        except Exception:  # a division by zero, another function, or a dimension whose size is not given
            return None
