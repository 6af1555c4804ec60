# SPDX-License-Identifier: Apache-2.0
"""Searches sizes that break one condition of a captured program, and keep the others where that is possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice

from polyop.exporting.conditions import Condition
from polyop.exporting.dimensions import Dimension, Sizes

_FARTHEST = 1 << 24  # of a size
_BEYOND = 32  # a crossing, for sizes that keep other conditions
_OF_ONE_MOVE = 64  # sizes

Move = Callable[[int], Sizes]
"""Returns sizes that one number leads to: the size of a dimension, or of several in proportion to the example's."""


def breaking_sizes(
    conditions: Sequence[Condition], at: int, groups: Sequence[Sequence[Dimension]]
) -> Iterator[tuple[int, Sizes]]:
    """Yields sizes that break conditions[at], and how many of the conditions before it they break. Those that break the
    fewest come first, of these those small enough to run, and of these the nearest to the example's.

    `groups`: the dimensions; those of one group have one size.
    """
    condition, others = conditions[at], [*conditions[:at], *conditions[at + 1 :]]
    dimensions = {d.name: d for group in groups for d in group}

    def rank(sizes: Sizes) -> tuple[int, bool, int, float]:
        broken = [i for i, other in enumerate(others) if other.holds(sizes) is False]
        distance = sum(abs(math.log(size / dimensions[name].example)) for name, size in sizes.items())
        return sum(i < at for i in broken), not is_small(sizes, dimensions), len(broken), distance

    found: dict[tuple[int, ...], Sizes] = {}
    for move, start in _moves(condition, groups):
        valid = (sizes for sizes in map(move, _numbers(condition, move, start)) if _is_valid(sizes, dimensions))
        breaks = (sizes for sizes in valid if condition.holds(sizes) is False)
        found.update((tuple(sizes.values()), sizes) for sizes in islice(breaks, _OF_ONE_MOVE))
    ranked = sorted(((rank(sizes), sizes) for sizes in found.values()), key=lambda pair: pair[0])
    yield from ((ranks[0], sizes) for ranks, sizes in ranked)


def is_small(sizes: Mapping[str, int], dimensions: Mapping[str, Dimension]) -> bool:
    """Says whether tensors of such a program are small enough to run it, even if their elements are the square of a
    size, as those of attention."""
    example = math.prod(d.example for d in dimensions.values())
    largest = all(size <= max(1 << 12, 4 * dimensions[name].example) for name, size in sizes.items())
    return largest and math.prod(sizes.values()) <= max(1 << 22, 16 * example)


def _is_valid(sizes: Sizes, dimensions: Mapping[str, Dimension]) -> bool:
    return all(size >= 1 and dimensions[name].has(size) for name, size in sizes.items())


def _moves(condition: Condition, groups: Sequence[Sequence[Dimension]]) -> Iterator[tuple[Move, int]]:
    """Yields what moves the sizes of a condition, and the example's number: each group of dimensions alone, with the
    example's other sizes and with the least ones, and several groups together."""
    example = {d.name: d.example for group in groups for d in group}
    used = [group for group in groups if condition.dimensions & {d.name for d in group}]
    for group in used:
        least = {d.name: max(d.low, d.factor + d.offset) for other in used if other is not group for d in other}
        yield _together([group], example), group[0].example
        if least:
            yield _together([group], {**example, **least}), group[0].example
    for several in chain(combinations(used, 2), [used] if len(used) > 2 else []):
        yield _together(several, example), several[0][0].example


def _together(groups: Sequence[Sequence[Dimension]], sizes: Sizes) -> Move:
    first = groups[0][0].example

    def move(number: int) -> Sizes:
        moved = {d.name: _nearest(number * d.example / first, d) for group in groups for d in group}
        return {**sizes, **moved}

    return move


def _nearest(size: float, dimension: Dimension) -> int:
    return max(round((size - dimension.offset) / dimension.factor), 1) * dimension.factor + dimension.offset


def _numbers(condition: Condition, move: Move, start: int) -> Iterator[int]:
    """Yields numbers for a move: near ones, where a comparison's sides become equal and far beyond, and those of the
    text."""
    crossings = list(_crossings(condition, move, start))
    yield from (n for number in crossings if number > start for n in _far_beyond(number) if n <= _FARTHEST)
    yield from (start + sign * step for step in range(1, 2 * start + 66) for sign in (1, -1) if start + sign * step > 0)
    for number in crossings:
        away = 1 if number > start else -1
        yield from (n for n in range(number - away, number + _BEYOND * away, away) if 0 < n <= _FARTHEST)
    for number in sorted(condition.numbers):
        yield from (n for n in (number - 1, number, number + 1) if 0 < n <= _FARTHEST)


def _far_beyond(number: int) -> tuple[int, ...]:
    """The branch for these numbers may have branches on larger ones."""
    return 8 * number + 3, 64 * number + 5


def _crossings(condition: Condition, move: Move, start: int) -> Iterator[int]:
    """Yields the first numbers at which the condition does not hold, or the sides of a comparison are no longer in the
    order of the example's: sides that are rounded stay equal for many sizes."""

    def order(number: int) -> list[int | None]:
        signs = [None if d is None else (d > 0) - (d < 0) for d in condition.differences(move(number))]
        return [condition.holds(move(number)), *signs]

    def first_change(low: int, high: int, of: int) -> int:
        """low has the order of the example, high has another one."""
        while abs(high - low) > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if order(middle)[of] == known[of] else (low, middle)
        return high

    known = order(start)
    doubles = [start << i for i in range(1, 25) if start << i <= _FARTHEST]
    halves = [start >> i for i in range(1, start.bit_length())]
    for ladder in (doubles, halves):
        orders = [known, *map(order, ladder)]
        for of in range(len(known)):
            for i in range(1, len(orders)):
                if orders[i][of] != known[of]:
                    yield first_change([start, *ladder][i - 1], ladder[i - 1], of)
                    break
