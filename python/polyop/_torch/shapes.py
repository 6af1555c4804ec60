# SPDX-License-Identifier: Apache-2.0
"""Computes output shapes from sizes that may be symbols. The library returns expressions and checks, evaluated here.

adapters/tree_domain.h defines the expressions.
"""

from __future__ import annotations

import ctypes
import json
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch

from polyop._base.extents import floor_scale

Size = Any  # int or torch.SymInt
Tree = Any  # int, None or [kind, …]

TYPES = {
    "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64, "i8": torch.int8,
    "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in TYPES.items()}


class Library:
    """Calls the library's polyop_shapes and caches its replies by operator, types, ranks and attributes."""

    def __init__(self, library: ctypes.CDLL, namespace: str) -> None:
        self.namespace = namespace
        library.polyop_shapes.restype = ctypes.c_char_p
        library.polyop_shapes.argtypes = [ctypes.c_char_p]
        self._function = library.polyop_shapes
        self._cached_request = lru_cache(4096)(self._request)

    def _request(self, request: str) -> dict[str, Any]:
        return json.loads(self._function(request.encode()))

    def outputs(
        self,
        operator: str,
        names: Sequence[str],
        tensors: Sequence[torch.Tensor | None],
        attributes: dict[str, Any],
        new_size: Callable[[int | None], Size],
    ) -> list[tuple[torch.dtype, tuple[Size, ...]]]:
        """Returns the type and shape of each output. `new_size(max_size)` creates a size that is unknown before the
        call.

        Raises RuntimeError with the kernel's message if types, ranks, attributes or sizes are invalid.
        """

        def request(shapes: Sequence[Sequence[int | str | None]]) -> str:
            inputs = [
                None if t is None else {"name": name, "type": _NAMES.get(t.dtype, str(t.dtype)), "shape": list(shape)}
                for name, t, shape in zip(names, tensors, shapes, strict=True)
            ]
            cuda = any(t is not None and t.device.type == "cuda" for t in tensors)
            call = {"operator": operator, "cuda": cuda, "attributes": plain, "inputs": inputs}
            return json.dumps(call, sort_keys=True)

        plain = {name: _plain(value) for name, value in attributes.items()}
        shapes = [() if t is None else tuple(t.shape) for t in tensors]

        def refusal() -> str:
            """Returns the kernel's message for these sizes."""
            answer = self._request(request([[_hint(size) for size in shape] for shape in shapes]))
            return (
                answer.get("error") or f"{self.namespace}::{operator}: expected inputs of matching shapes, got {shapes}"
            )

        # The library runs checks beyond the signature only on known sizes.
        known = all(isinstance(size, int) for shape in shapes for size in shape)
        answer = self._cached_request(request(shapes if known else [[None] * len(shape) for shape in shapes]))
        if "error" in answer:
            raise RuntimeError(refusal())
        sizes = _Sizes(shapes, new_size, refusal)
        for expected, got in answer["checks"]:
            _check(sizes.of(expected) == sizes.of(got), refusal)
        outputs = [(TYPES[o["type"]], tuple(sizes.of(tree) for tree in o["shape"])) for o in answer["outputs"]]
        for _, shape in outputs:
            if all(isinstance(size, int) for size in shape) and (min(shape, default=0) < 0 or _bytes(shape) >= 2**63):
                raise RuntimeError(refusal())
        return outputs


def _bytes(shape: Sequence[int]) -> int:
    """Returns an upper bound of the bytes of a tensor of any element type."""
    return 8 * math.prod(shape)


def _check(condition: bool | torch.SymBool, refusal: Callable[[], str]) -> None:
    """Raises RuntimeError if the condition is False. A symbolic condition becomes a guard of the compiled program."""
    if isinstance(condition, bool):
        if not condition:
            raise RuntimeError(refusal())
    else:
        torch._check(condition, refusal)


class _Sizes:
    """Evaluates expressions over the dimensions of one call."""

    def __init__(
        self,
        shapes: Sequence[Sequence[Size]],
        new_size: Callable[[int | None], Size],
        refusal: Callable[[], str],
    ) -> None:
        self._shapes, self._new_size, self._refusal = shapes, new_size, refusal
        self._found: dict[tuple, Size] = {}

    def of(self, tree: Tree) -> Size:
        if isinstance(tree, int):
            return tree
        if tree is None:
            return self._new_size(None)
        kind, *parts = tree
        if kind == "extent":
            return self._shapes[parts[0]][parts[1]]
        if kind == "value":
            return self._once(tuple(tree), None)
        if kind == "found":
            return self._once((kind, parts[0]), parts[1])
        left, right = self.of(parts[0]), parts[1] if kind == "scale" else self.of(parts[1])
        match kind:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "//":
                return left // right
            case "ceil_div":
                return -(-left // right)
            case "min":
                return torch.sym_min(left, right)
            case "max":
                return torch.sym_max(left, right)
            case "scale":
                return floor_scale(left, right)
            case "broadcast":
                return self._broadcast(left, right)
        raise AssertionError(f"expected an expression of adapters/tree_domain.h, got '{kind}'")

    def _once(self, key: tuple, bound: Tree) -> Size:
        """Returns the size of a key, which is created once."""
        if key not in self._found:
            max_size = None if bound is None else self.of(bound)
            size = self._new_size(max_size if isinstance(max_size, int) else None)
            if max_size is not None and not isinstance(max_size, int):
                torch._check(size <= max_size)
            self._found[key] = size
        return self._found[key]

    def _broadcast(self, a: Size, b: Size) -> Size:
        from torch.fx.experimental.symbolic_shapes import guard_or_false  # imports sympy

        if guard_or_false(a == 1):
            return b
        if guard_or_false(b == 1):
            return a
        _check(a == b, self._refusal)
        return a


def _plain(value: Any) -> Any:
    """Converts an attribute for JSON, which has neither symbols nor infinities."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        value = int(value) if isinstance(value, torch.SymInt) else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _hint(size: Size) -> int | str:
    """Returns the number behind a symbol if there is one, else the symbol's text."""
    if isinstance(size, int):
        return size
    return int(size.node.hint) if size.node.has_hint() else str(size)
