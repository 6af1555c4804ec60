# SPDX-License-Identifier: Apache-2.0
"""What a capture assumed of the dynamic dimensions, and the sizes that test it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from polyop._aten.guards import Guard
from polyop.exporting.breaking import breaking_sizes, is_small
from polyop.exporting.conditions import Condition
from polyop.exporting.dimensions import Comparison, Dimension, Sizes, comparison, groups_of, unequal_comparisons

_HUGE = 1 << 20
_BEYOND = 1024  # sizes near the example's
_SIZE_OF = re.compile(r"L\['(\w+)'\]((?:\[\d+\])?)\.size\(\)\[(\d+)\]")


class Assumptions:
    """The guards of a capture, as conditions on dynamic dimensions."""

    def __init__(
        self,
        guards: Iterable[Guard],
        dimensions: Mapping[str, Dimension],
        names: Mapping[str, str],
        captured: Sizes | None = None,
    ) -> None:
        """`names`: the input of each parameter, as guards write it, such as x or args[0].
        `captured`: the sizes of the capture; the example's if not given."""
        self._captured = captured or {d.name: d.example for d in dimensions.values()}
        by_axis = {axis: d.name for d in dimensions.values() for axis in d.axes}
        found: dict[tuple[str, ...], Condition] = {}
        for guard in guards:
            used: dict[str, str] = {}

            def name_of(match: re.Match[str], used: dict[str, str] = used) -> str:
                axis = names.get(match[1] + match[2], ""), int(match[3])
                dimension = by_axis.get(axis, "")
                key = next((k for k, d in used.items() if d == dimension), f"s{len(used)}")
                used[key] = dimension
                return key

            text = _SIZE_OF.sub(name_of, guard.condition)
            for key, name in used.items():
                if name and dimensions[name].root:
                    text = re.sub(rf"\b{dimensions[name].root}\b", dimensions[name].of_size.format(size=key), text)
            condition = Condition(text, guard.line, used, guard.is_number)
            known = condition.text, *used.values()
            if used and all(used.values()) and (known not in found or not found[known].line):
                found[known] = condition
        self._all = list(found.values())

    def equal(self) -> Iterator[tuple[str, str]]:
        """Yields pairs of dimensions that have one size."""
        yield from (condition.equal for condition in self._all if condition.equal)

    def unequal(self, dimensions: Mapping[str, Dimension], compared: Sequence[Sizes]) -> Iterator[Comparison]:
        """Yields sizes at which dimensions are unequal that have one size in the program and two names: the user did
        not state that they are equal. The exporter may choose the sizes of optional ones.

        `compared`: sizes that PyTorch accepts.
        """
        example = {d.name: d.example for d in dimensions.values()}
        for group in groups_of(dimensions, self.equal()):
            named = [d for d in group if not d.optional]
            if len(named) > 1:
                yield from unequal_comparisons(named, example, compared)

    def numbers(self, dimensions: Mapping[str, Dimension]) -> list[str]:
        """Returns the numbers that the program made of sizes: what it did with them has no conditions. A number that
        all sizes from 2 on have, such as that of the chunks of a tensor, is none of them."""
        groups = list(groups_of(dimensions, self.equal()))

        def differs(at: int) -> bool:
            used = self._all[at].dimensions
            return any(min(sizes[n] for n in used) > 1 for _, sizes in breaking_sizes(self._all, at, groups))

        made = (
            (at, c)
            for at, c in enumerate(self._all)
            if c.is_number and c.line and not all(dimensions[n].optional for n in c.dimensions)
        )
        return [condition.readable() for at, condition in made if differs(at)]

    def not_evaluated(self) -> list[str]:
        """Returns the conditions that have no value for the sizes of the capture: it is not known how to evaluate
        them."""
        return [condition.readable() for condition in self._all if condition.holds(self._captured) is None]

    def with_fulfilled(self, each: Comparison, dimensions: Mapping[str, Dimension]) -> Comparison:
        """Appends options whose sizes fulfil the equations between dimensions, such as that of a mask: past + time.

        They come last: where PyTorch accepts larger sizes without, an equation holds for the example by chance. But
        what it accepts of smaller sizes may only be broadcast, such as a mask of one element.
        """

        def is_fulfilled(sizes: Sizes) -> bool:
            return all(condition.holds(sizes) is not False for condition in self._all if condition.is_equation)

        def is_larger(sizes: Sizes) -> bool:
            return all(sizes[name] >= dimension.example for name, dimension in dimensions.items())

        if each.may_be_refused:
            return replace(each, options=comparison(filter(is_fulfilled, each.sizes())).options)
        accepted = (sizes for sizes in each.sizes() if is_larger(sizes) or is_fulfilled(sizes))
        fulfilling = (self._fulfilling(sizes, dimensions) for sizes in each.sizes())
        return replace(each, options=comparison([*accepted, *fulfilling]).options)

    def _fulfilling(self, sizes: Sizes, dimensions: Mapping[str, Dimension]) -> Sizes:
        """Changes the dimensions that have the example's size, if that suffices, and otherwise another one."""
        for condition in self._all:
            if not condition.is_equation or condition.holds(sizes) is not False:
                continue
            names = sorted(condition.used.values(), key=lambda name: sizes[name] != dimensions[name].example)
            options = (
                {**sizes, name: size}
                for name in names
                for size in range(1, 4 * sum(sizes.values()))
                if dimensions[name].has(size)
            )
            sizes = next((other for other in options if condition.holds(other)), sizes)
        return sizes

    def broken(self, sizes: Mapping[str, int]) -> list[str]:
        """Returns the conditions that these sizes do not fulfil, those with a line of the program first."""
        found = [condition for condition in self._all if condition.holds(sizes) is False]
        return [condition.readable() for condition in sorted(found, key=lambda c: not c.line)]

    def unequal_at(self, sizes: Mapping[str, int]) -> list[str]:
        """Returns the dimensions that are unequal at these sizes, and have one size in the program."""
        pairs = [condition.equal for condition in self._all if condition.equal and condition.holds(sizes) is False]
        return [name for name in sizes if any(name in pair for pair in pairs)]

    def stated(self, sizes: Mapping[str, int], dimensions: Mapping[str, Dimension]) -> Iterator[str]:
        """Yields torch.export.Dim for sizes that fulfil all the conditions of one dimension which these sizes break,
        and what dimensions to give one name."""
        broken = [condition for condition in self._all if condition.holds(sizes) is False]
        if names := self.unequal_at(sizes):
            axes = " and ".join(f"'{tensor}'[{axis}]" for name in names for tensor, axis in dimensions[name].axes)
            yield f"one name for {' and '.join(names)}, of {axes}"
        for name in sorted({name for condition in broken for name in condition.dimensions}):
            of = [condition for condition in broken if condition.dimensions == {name}]

            def fulfils(size: int, of: list[Condition] = of, name: str = name) -> bool:
                return all(condition.holds({name: size}) for condition in of)

            numbers = {number for condition in of for number in condition.numbers}
            if of and (text := _dim_of(dimensions[name], fulfils, numbers)):
                yield text

    def not_tested(
        self, dimensions: Mapping[str, Dimension], compared: Sequence[Sizes], limit: int = 3
    ) -> Iterator[Comparison]:
        """Yields sizes that break a condition which none of `compared`, and of those yielded before, breaks without
        breaking a condition before it, or none breaks at all if there are no such sizes. At the nearest ones, both
        branches may agree, such as those that pad up to a size and do not: others follow, and the largest that are
        small enough.
        """
        captured = {name: replace(d, example=self._captured[name]) for name, d in dimensions.items()}
        groups = list(groups_of(captured, self.equal()))
        done = [*compared]
        for at, condition in enumerate(self._all):
            if condition.equal or not condition.holds(self._captured):  # inputs of one size
                continue
            breaking = [sizes for sizes in done if condition.holds(sizes) is False]
            if any(not self._breaks_before(at, sizes) for sizes in breaking):
                continue
            options = list(breaking_sizes(self._all, at, groups))
            if options and (not breaking or options[0][0] == 0):
                done.append(options[0][1])
                yield comparison((sizes for _, sizes in options[:limit]), condition.readable())
                others = [sizes for broken, sizes in options[limit:] if broken == options[0][0]]
                larger = (s for s in others[limit:] if all(s[name] >= size for name, size in self._captured.items()))
                far = [sizes for sizes in larger if is_small(sizes, dimensions)][-limit:]
                for chosen in (others[:limit], far[::-1]):
                    if chosen:
                        yield replace(comparison(chosen, condition.readable()), may_be_refused=True)

    def _breaks_before(self, at: int, sizes: Sizes) -> bool:
        return any(condition.holds(sizes) is False for condition in self._all[:at])


def _dim_of(dimension: Dimension, is_valid: Callable[[int], bool], numbers: Iterable[int]) -> str:
    """Returns the code of a Dim for valid sizes: all from one on, multiples, or some near the example's.

    `numbers`: those of the conditions, near which sizes may be invalid."""
    example, name = dimension.example, dimension.name
    low = next(size for size in range(example, 0, -1) if size == 1 or not is_valid(size - 1))
    far = [n for number in numbers for n in (number - 1, number, number + 1) if n >= low]
    if all(map(is_valid, (*range(example, 2 * example + _BEYOND), *far, _HUGE))):
        return f"torch.export.Dim('{name}', min={low})"
    for factor in range(2, example + 1):
        multiples = (*range(factor, 64 * factor, factor), *(n for n in far if n % factor == 0), factor * _HUGE)
        if example % factor == 0 and all(map(is_valid, multiples)):
            return f"{factor} * torch.export.Dim('{name}_{factor}')"
    high = next(size for size in count(example) if not is_valid(size + 1))
    least = f"min={low}, " if low > 1 else ""
    return f"torch.export.Dim('{name}', {least}max={high})" if high > low else ""
