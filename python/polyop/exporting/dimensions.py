# SPDX-License-Identifier: Apache-2.0
"""The dynamic dimensions of a model's inputs, and the sizes at which its file is compared with PyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any

from torch import Tensor

from polyop._base.extents import is_prime

_MAX_ELEMENTS = 1 << 26  # of an input


@dataclass(frozen=True)
class Dimension:
    """A dynamic dimension. Several inputs may have it."""

    name: str
    """The user's name, or one such as x[2]."""
    axes: tuple[tuple[str, int], ...]
    """The names of inputs, and an axis of each."""
    example: int
    low: int = 1
    high: int | None = None
    optional: bool = False
    """Whether the exporter may make it static: Dim.AUTO."""
    factor: int = 1
    """Sizes are multiples of it plus the offset, such as those of 8 * Dim(name)."""

    root: str = ""
    """The name of the Dim that it is computed from, such as n of 8 * Dim('n') + 2, which guards may have, too."""
    offset: int = 0
    """What is added to the factor times the root."""

    @property
    def of_size(self) -> str:
        """Python code that computes the root's size from {size}."""
        return f"(({{size}} - {self.offset}) // {self.factor})"

    def has(self, size: int) -> bool:
        is_multiple = (size - self.offset) % self.factor == 0
        return self.low <= size and (self.high is None or size <= self.high) and is_multiple

    def steps(self, rank: int) -> list[int]:
        """Returns distances of other sizes from the example's, after primes: models refuse sizes that their strides do
        not divide."""
        return [step * (rank + 1) for step in ((2, 8, 32) if self.factor == 1 else (self.factor, 4 * self.factor))]


Sizes = dict[str, int]
"""The size of each dynamic dimension."""


@dataclass(frozen=True)
class Comparison:
    """Sizes to compare at: the first of the options that PyTorch accepts."""

    options: tuple[tuple[tuple[str, int], ...], ...]
    breaks: str = ""
    """The condition that they break, if that is why they were chosen."""
    may_be_refused: bool = False
    """Whether it says nothing of the file if PyTorch accepts none."""
    may_fail: bool = False
    """Whether the file may fail with an error that PyTorch does not raise: few models are for such sizes."""

    def sizes(self) -> Iterator[Sizes]:
        yield from map(dict, self.options)


def read_dimensions(
    dynamic: Mapping[str, Mapping[int, Any]] | None, tensors: Mapping[str, Tensor]
) -> dict[str, Dimension]:
    """Returns the dimensions by name. Raises ValueError for an unknown input or axis, and for two sizes of one name."""
    found: dict[str, Dimension] = {}
    if unknown := set(dynamic or ()) - set(tensors):
        raise ValueError(f"dynamic: expected names of inputs ({', '.join(tensors)}), got {', '.join(sorted(unknown))}")
    for tensor, axes in (dynamic or {}).items():
        if not isinstance(axes, Mapping):
            raise ValueError(f"dynamic: '{tensor}': expected names by axis, such as {{0: 'batch'}}, got {axes!r}")
        for axis, stated in axes.items():
            rank = tensors[tensor].dim()
            if not isinstance(axis, int) or not 0 <= axis < rank:
                raise ValueError(f"dynamic: '{tensor}': expected an axis in [0, {rank}), got {axis!r}")
            size = tensors[tensor].shape[axis]
            dimension = _dimension(stated, tensor, axis, size)
            if dimension is None:
                continue
            known = found.setdefault(dimension.name, dimension)
            if known.example != size:
                where = f"'{tensor}'[{axis}] of {size} and '{known.axes[0][0]}'[{known.axes[0][1]}] of {known.example}"
                raise ValueError(f"dynamic: '{dimension.name}': expected one size, got {where}")
            if known is not dimension:
                found[dimension.name] = replace(known, axes=(*known.axes, (tensor, axis)))
    return found


def _dimension(stated: Any, tensor: str, axis: int, size: int) -> Dimension | None:
    """Reads a name, a torch.export.Dim, or a hint such as Dim.DYNAMIC. None if the dimension is static."""
    if stated is None or isinstance(stated, int):
        return None
    kind = getattr(getattr(stated, "type", None), "name", "")  # of hints
    if kind == "STATIC":
        return None
    name = stated if isinstance(stated, str) else getattr(stated, "__name__", "") or f"{tensor}[{axis}]"
    low, high = getattr(stated, "min", None), getattr(stated, "max", None)
    bound = high if isinstance(high, int) and high < 1 << 40 else None
    of = getattr(stated, "fn", None)  # of a product such as 8 * Dim(name), or of a sum
    offset, factor = (int(of(0)), int(of(1) - of(0))) if of is not None else (0, 1)
    root = getattr(getattr(stated, "root", None), "__name__", "") if of is not None else ""
    lowest = max(int(low or 0), 1)
    return Dimension(name, ((tensor, axis),), size, lowest, bound, kind == "AUTO", factor, root, offset)


def comparison(options: Iterable[Sizes], breaks: str = "") -> Comparison:
    return Comparison(tuple(dict.fromkeys(tuple(sizes.items()) for sizes in options)), breaks)


def standard_comparisons(dimensions: Mapping[str, Dimension], equal: Iterable[tuple[str, str]]) -> list[Comparison]:
    """Returns comparisons at larger sizes, at smaller ones, at one other size of each dimension, at single elements,
    and at the stated bounds. Many models refuse single pixels: only of first dimensions does a user need to know that.

    `equal`: the dimensions that must have one size. Others get different ones, so that none are equal by chance.
    """
    groups = list(groups_of(dimensions, equal))
    example = {d.name: d.example for d in dimensions.values()}
    larger = [list(_larger(group, rank)) for rank, group in enumerate(groups)]
    smaller = [list(_smaller(group, rank)) for rank, group in enumerate(groups)]
    found = [_together(groups, options, example) for options in (larger, smaller)] if len(groups) > 1 else []
    for group, up, down in zip(groups, larger, smaller, strict=True):
        found.append(comparison(_with(example, group, size) for size in up or down))
        if len(groups) == 1:
            found.append(comparison(_with(example, group, size) for size in down or up))
        bounds = [d.high for d in group if d.high is not None] + [d.low for d in group if d.low > 1]
        first = any(axis == 0 for d in group for _, axis in d.axes)
        for size in [*bounds, 1]:
            if size != group[0].example and all(d.has(size) for d in group):
                one = comparison([_with(example, group, size)])
                is_rare = size == 1 and not first
                found.append(replace(one, may_be_refused=is_rare, may_fail=is_rare))
    return list(dict.fromkeys(c for c in found if c.options))


def unequal_comparisons(group: Sequence[Dimension], example: Sizes, compared: Iterable[Sizes]) -> Iterator[Comparison]:
    """Yields comparisons at sizes that make dimensions unequal which have one size in the example and in all of
    `compared`: one of them has another of these sizes, and each in turn 1, of which a tensor may be expanded."""
    size = group[0].example
    other = next((sizes[group[0].name] for sizes in compared if sizes[group[0].name] != size), 1)
    options = [comparison(_with(example, [d], other) for d in group)]
    options += [comparison([_with(example, [d], 1)]) for d in group if size != 1 and d.has(1)]
    yield from (replace(each, may_be_refused=True) for each in options)


def coupled(sizes: Sizes, dimensions: Mapping[str, Dimension]) -> Sizes:
    """Gives dimensions that are computed from one Dim sizes of one Dim: its own, or that of the first of them which has
    another size than the example's."""
    result = dict(sizes)
    for root in dict.fromkeys(d.root for d in dimensions.values() if d.root):
        of_root = [d for d in dimensions.values() if root in (d.name, d.root)]
        first = next((d for d in of_root if sizes[d.name] != d.example), of_root[0])
        number = sizes[first.name] if first.name == root else (sizes[first.name] - first.offset) // first.factor
        for d in of_root:
            result[d.name] = number if d.name == root else number * d.factor + d.offset
    return result


def smaller_sizes(dimensions: Mapping[str, Dimension]) -> Iterator[Sizes]:
    """Yields sizes of which at least one is smaller than the example's, and none larger; those with the most first."""
    example = {d.name: d.example for d in dimensions.values()}
    groups = [[d] for d in dimensions.values()]
    smaller = [list(_smaller(group, rank)) for rank, group in enumerate(groups)]
    yield from _together(groups, smaller, example).sizes()
    yield from (_with(example, group, size) for group, of in zip(groups, smaller, strict=True) for size in of)


def given_comparisons(dimensions: Mapping[str, Dimension], sizes: Mapping[str, Sequence[int]]) -> list[Comparison]:
    """Returns comparisons at the user's sizes: the first of each dimension, the second, … Raises ValueError."""
    if unknown := set(sizes) - set(dimensions):
        names = ", ".join(dimensions) or "none"
        raise ValueError(f"sizes: expected names of dynamic dimensions ({names}), got {', '.join(sorted(unknown))}")
    for name, stated in sizes.items():
        if bad := [s for s in stated if not isinstance(s, int) or s < 0]:
            raise ValueError(f"sizes: '{name}': expected sizes of 0 or more, got {bad[0]!r}")
    example = {d.name: d.example for d in dimensions.values()}
    runs = max((len(stated) for stated in sizes.values()), default=0)
    return [
        comparison([{**example, **{name: of[min(i, len(of) - 1)] for name, of in sizes.items() if of}}])
        for i in range(runs)
    ]


def groups_of(dimensions: Mapping[str, Dimension], equal: Iterable[tuple[str, str]]) -> Iterator[list[Dimension]]:
    """Yields the dimensions in groups of one size."""
    leader = {name: name for name in dimensions}
    for a, b in equal:
        old, new = leader[b], leader[a]
        leader = {name: new if of == old else of for name, of in leader.items()}
    for name in dimensions:
        if leader[name] == name:
            yield [d for d in dimensions.values() if leader[d.name] == name]


def _larger(group: Sequence[Dimension], rank: int) -> Iterator[int]:
    size = group[0].example
    primes = (n for n in count(max(size + 1, 2)) if is_prime(n))
    steps = [size + step for step in group[0].steps(rank)]
    yield from (s for s in [next(islice(primes, rank, None)), *steps, 2 * size] if all(d.has(s) for d in group))


def _smaller(group: Sequence[Dimension], rank: int) -> Iterator[int]:
    size = group[0].example
    primes = [n for n in range(2, max(size, 2)) if is_prime(n) and n > size // 3][::-1]
    steps = [size - step for step in group[0].steps(rank)]
    options = [*primes[rank : rank + 1], *steps, size // 2]
    yield from (s for s in options if 0 < s < size and all(d.has(s) for d in group))


def _together(
    groups: Sequence[Sequence[Dimension]], options: Sequence[Sequence[int]], example: Mapping[str, int]
) -> Comparison:
    """Returns sizes for all groups: the first option of each, the second, … A group without options keeps its size."""
    if not any(options):
        return Comparison(())
    chosen = []
    for i in range(max(map(len, options))):
        sizes = dict(example)
        for group, of_group in zip(groups, options, strict=True):
            if of_group:
                sizes = _with(sizes, group, of_group[min(i, len(of_group) - 1)])
        chosen.append(sizes)
    return comparison(chosen)


def _with(sizes: Mapping[str, int], group: Iterable[Dimension], size: int) -> Sizes:
    return {**sizes, **{d.name: size for d in group}}


def fits(sizes: Mapping[str, int], dimensions: Mapping[str, Dimension], tensors: Mapping[str, Tensor]) -> bool:
    """Says whether inputs of these sizes have few enough elements for a comparison."""
    for name, tensor in tensors.items():
        shape = shape_at(name, tensor, sizes, dimensions)
        if math.prod(shape) > max(_MAX_ELEMENTS, 4 * tensor.numel()):
            return False
    return True


def shape_at(name: str, tensor: Tensor, sizes: Mapping[str, int], dimensions: Mapping[str, Dimension]) -> list[int]:
    """Returns the shape of an input at other sizes."""
    shape = list(tensor.shape)
    for dimension in dimensions.values():
        for of, axis in dimension.axes:
            if of == name:
                shape[axis] = sizes.get(dimension.name, dimension.example)
    return shape
