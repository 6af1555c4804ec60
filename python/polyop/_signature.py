"""Output shapes from an operator's signature, for sizes that may be symbols.

The grammar is that of core/signature.h. The library has checked the text when it was compiled; here it is only read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Size = Any  # int, or a symbol of torch


@dataclass(frozen=True)
class Tensor:
    """One tensor as the signature writes it: "bias?: T[O]"."""

    name: str
    optional: bool
    variadic: bool
    dtype: str
    dims: tuple[str, ...]

    @property
    def rank(self) -> int | None:
        """None where "..." stands for any number of extents."""
        return None if any(d.startswith("...") for d in self.dims) else len(self.dims)


def _split(text: str) -> list[str]:
    """Parts between commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _tensor(text: str) -> Tensor:
    match = re.fullmatch(r"(\w+)(\?)?\s*:\s*(\w+)\[(.*)\](\.\.\.)?", text, re.DOTALL)
    assert match, text
    name, optional, dtype, dims, variadic = match.groups()
    return Tensor(name, bool(optional), bool(variadic), dtype, tuple(_split(dims)))


class _UnknownError(Exception):
    """A size that depends on a value inside of a tensor."""


class _Value:
    """An input in the place of a number: only its values would say."""

    def __getitem__(self, index: int) -> _Value:
        raise _UnknownError

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __getitem__


class Signature:
    """A parsed signature: "input: T[N, C, H, W] -> output: T[N, C, 2*H, 2*W]"."""

    def __init__(self, text: str) -> None:
        inputs, outputs = text.split("->")
        self.inputs = [_tensor(part) for part in _split(inputs)]
        self.outputs = [_tensor(part) for part in _split(outputs)]

    def matches(self, shapes: Sequence[Sequence[Size] | None]) -> bool:
        """True if the ranks are those of the inputs. A variadic input's tensors come one by one."""
        for i, shape in enumerate(shapes):
            spec = self.inputs[min(i, len(self.inputs) - 1)]
            if shape is None:
                continue
            if spec.rank is None:
                if len(shape) < len(spec.dims) - 1:
                    return False
            elif len(shape) != spec.rank and not (spec.rank == 0 and len(shape) == 1):
                return False
        return True

    @property
    def sizes_are_known(self) -> bool:
        """False if the kernel or a value inside of an input decides an output's size."""
        named = [self._named(d) for spec in self.inputs for d in spec.dims if self._named(d)[1]]
        expressions = [e for _, _, e in named] + [d for spec in self.outputs for d in spec.dims]
        names = {t.name for t in self.inputs}
        return not any("<=" in e or names & set(re.findall(r"\w+", e)) for e in expressions if "broadcast" not in e)

    def finds_size_of(self, output: Tensor) -> bool:
        """True if the kernel finds an extent of this output, which another output may share."""
        found = {dim.split("<=")[0].strip() for spec in self.outputs for dim in spec.dims if "<=" in dim}
        return any(dim.split("<=")[0].strip() in found for dim in output.dims)

    def output_shapes(
        self,
        shapes: Sequence[Sequence[Size] | None],
        attributes: Mapping[str, Any],
        new_size: Callable[[], Size],
        functions: Mapping[str, Callable],
    ) -> list[tuple[Size, ...]]:
        """Extents of the outputs; `new_size` makes one that only the kernel finds. `functions`: min and max."""
        env: dict[str, Any] = {**attributes, **{t.name: _Value() for t in self.inputs}}
        env |= {"ceil_div": lambda a, b: (a + b - 1) // b, "floor": math.floor, **functions}
        bound, rests = self._bind(shapes, env)
        env |= bound
        for spec in self.inputs:
            for dim in spec.dims:
                name, sign, expression = self._named(dim)
                if sign in ("?=", "=") and name not in bound:
                    env[name] = bound[name] = self._evaluate(expression, env, new_size)
        found: dict[str, Size] = {}
        return [tuple(self._output(spec, env, rests, found, new_size)) for spec in self.outputs]

    def _bind(
        self, shapes: Sequence[Sequence[Size] | None], env: Mapping[str, Any]
    ) -> tuple[dict[str, Size], dict[str, list[Size]]]:
        bound: dict[str, Size] = {}
        rests: dict[str, list[Size]] = {}
        defined = {self._named(d)[0] for spec in self.inputs for d in spec.dims if self._named(d)[1] == "="}
        for i, shape in enumerate(shapes):
            spec = self.inputs[min(i, len(self.inputs) - 1)]
            if shape is None or (spec.rank == 0 and len(shape) == 1):
                continue
            at = 0
            for dim in spec.dims:
                if dim.startswith("..."):
                    rest = len(shape) - (len(spec.dims) - 1)
                    rests.setdefault(dim[3:].strip(), list(shape[at : at + rest]))
                    at += rest
                    continue
                name, sign, _ = self._named(dim)
                if name.isidentifier() and name not in env and name not in defined and sign in ("", "?="):
                    bound.setdefault(name, shape[at])
                at += 1
        return bound, rests

    @staticmethod
    def _named(dim: str) -> tuple[str, str, str]:
        """("K", "<=", "N") of "K<=N"; a mere expression has no sign."""
        match = re.match(r"(\w+)\s*(\?=|<=|=)\s*(.*)", dim, re.DOTALL)
        return match.groups() if match else (dim, "", dim)

    @staticmethod
    def _evaluate(expression: str, env: Mapping[str, Any], new_size: Callable[[], Size]) -> Size:
        try:
            value = eval(expression.replace("/", "//"), {"__builtins__": {}}, dict(env))
        except _UnknownError:
            return new_size()
        return new_size() if isinstance(value, _Value) else value

    def _output(
        self,
        spec: Tensor,
        env: Mapping[str, Any],
        rests: Mapping[str, list[Size]],
        found: dict[str, Size],
        new_size: Callable[[], Size],
    ) -> list[Size]:
        extents: list[Size] = []
        for dim in spec.dims:
            broadcast = re.fullmatch(r"\.\.\.\s*broadcast\((\w+),\s*(\w+)\)", dim)
            name, sign, expression = self._named(dim)
            if broadcast:
                extents += _broadcast(rests[broadcast[1]], rests[broadcast[2]])
            elif dim.startswith("..."):
                extents += rests[dim[3:].strip()]
            elif sign == "<=":
                if name not in found:
                    found[name] = new_size()
                extents.append(found[name])
            else:
                extents.append(self._evaluate(expression, {**env, **found}, new_size))
        return extents


def _broadcast(a: Sequence[Size], b: Sequence[Size]) -> list[Size]:
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + list(a), [1] * (rank - len(b)) + list(b)
    return [y if isinstance(x, int) and x == 1 else x for x, y in zip(a, b, strict=True)]
