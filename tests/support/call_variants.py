# SPDX-License-Identifier: Apache-2.0
"""Further calls from a call of an operator: special values, zero extents, and calls that may be wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Arrays = list[np.ndarray | None]


@dataclass(frozen=True)
class Call:
    """A call under the definition's names, with the tensors of a variadic input one after another."""

    record: dict[str, Any]
    inputs: Arrays
    attributes: dict[str, Any]
    what: str = "plain"

    def name_of(self, i: int) -> str:
        names = [given["name"] for given in self.record["inputs"]]
        return names[min(i, len(names) - 1)]

    def with_input(self, i: int, array: np.ndarray, what: str) -> Call:
        inputs = [array if k == i else a for k, a in enumerate(self.inputs)]
        return replace(self, inputs=inputs, what=f"{what} of {self.name_of(i)}")


def special_values(call: Call) -> Iterator[Call]:
    for i, array in enumerate(call.inputs):
        if array is None or array.dtype.kind != "f" or array.size == 0:
            continue
        for value in (np.nan, np.inf, -np.inf, 3e38):
            changed = array.copy()
            changed.flat[[0, array.size // 2, -1]] = value
            yield call.with_input(i, changed, str(value))


def zero_extents(call: Call) -> Iterator[Call]:
    """Yields the call with each of the extents that the signature names as 0."""
    found = re.findall(r"(\w+)\??: \w+\[([^\]]*(?:\[\d\][^\]]*)*)\]", call.record["signatures"][0].partition(" -> ")[0])
    names = {name: re.split(r", ", extents) for name, extents in found}
    for extent in dict.fromkeys(e for extents in names.values() for e in extents if re.fullmatch(r"[A-Z]\w*", e)):
        inputs: Arrays = []
        for i, array in enumerate(call.inputs):
            extents = names.get(call.name_of(i), [])
            if array is not None and len(extents) == array.ndim:
                array = array[tuple(slice(0, 0) if e == extent else slice(None) for e in extents)]
            inputs.append(array)
        yield replace(call, inputs=inputs, what=f"{extent} = 0")


def halves(call: Call) -> Iterator[Call]:
    """Yields the call with f16 for f32, and no other call if there is nothing to change."""
    if any(a is not None and a.dtype == np.float32 for a in call.inputs):
        inputs = [a.astype(np.float16) if a is not None and a.dtype == np.float32 else a for a in call.inputs]
        yield replace(call, inputs=inputs, what="f16")


def wrong_inputs(call: Call) -> Iterator[Call]:
    for i, array in enumerate(call.inputs):
        if array is None:
            continue
        yield call.with_input(i, array[None], "rank + 1")
        if array.ndim > 0:
            yield call.with_input(i, np.zeros(array.shape[1:], array.dtype), "rank - 1")
            yield call.with_input(i, array[..., :-1], "a shorter last dimension")
            yield call.with_input(i, np.concatenate([array, array]), "twice the first dimension")
        yield call.with_input(i, array.reshape((1,) * (9 - array.ndim) + array.shape), "nine dimensions")
        for dtype in ("float64", "int32", "int64", "uint8", "bool"):
            if array.dtype != dtype:
                yield call.with_input(i, np.nan_to_num(array).astype(dtype), dtype)
        if array.dtype.kind == "i":
            for value in (-1, 2**31 - 1, np.iinfo(array.dtype).min):
                yield call.with_input(i, np.full_like(array, value), str(value))


def wrong_attributes(call: Call) -> Iterator[Call]:
    values: dict[str, list[Any]] = {
        "int": [-(2**40), -1, 0, 2**31, 2**40],
        "float": [np.nan, np.inf, -1.0, 0.0, 1e300],
        "ints": [[], [0], [-1, -1], [0, 0], [2**40, 2**40], [1] * 9],
        "floats": [[], [0.0], [np.nan, np.nan], [-1.0, np.inf], [1.0] * 20],
        "string": ["", "unknown"],
    }
    for attribute in call.record["attributes"]:
        kind = "string" if attribute["choices"] else attribute["type"]
        for value in values[kind]:
            attributes = {**call.attributes, attribute["name"]: value}
            yield replace(call, attributes=attributes, what=f"{attribute['name']} = {value}")
