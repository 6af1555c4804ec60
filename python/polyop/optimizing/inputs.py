# SPDX-License-Identifier: Apache-2.0
"""Generates values for the inputs of a model that the user does not set.

Patterns and checks infer facts from runs of the model, so dynamic dimensions of different names get different sizes:
equal ones would make dimensions equal that are not. Where a model rejects them, as operands that it adds, each of these
dimensions is 1 in a further run, which the model accepts if it broadcasts them.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd, prod

import numpy as np
import onnx_ir as ir

from polyop._base.extents import is_prime
from polyop._onnx import roles
from polyop.optimizing.errors import OptimizeError
from polyop.optimizing.running import Feeds

# Sizes to try for dynamic dimensions, after different ones near the first, and upper bounds of random integers.
_EXTENTS = (64, 32, 224, 16, 640, 8, 4, 1)
_INTEGERS_BELOW = (4, 2, 1)
# Factors of the dynamic sizes of the second and the third run: images keep their multiples of 16 and 32 if possible.
_FACTORS = {1: (1.5, 2.0, 3.0), 2: (0.5, 0.75, 2.5)}
_MAX_RUNS_OF_ONE = 16  # further runs that are tried
_MAX_ELEMENTS = 1 << 30
_MAX_LISTED = 8


def model_inputs(graph: ir.Graph) -> list[ir.Value]:
    """Returns the inputs, without those that have initializers."""
    return [value for value in graph.inputs if value.name not in graph.initializers]


def has_dynamic_sizes(graph: ir.Graph) -> bool:
    return any(value.shape is None or not value.shape.is_static() for value in model_inputs(graph))


def candidates(
    graph: ir.Graph, given: Mapping[str, np.ndarray], shapes: Mapping[str, Sequence[int]], seed: int
) -> Iterator[Feeds]:
    """Yields feeds to try, the most likely first. An input's values depend on its name and the seed."""
    known = {value.name for value in model_inputs(graph)}
    for name in [*given, *shapes]:
        if name not in known:
            raise OptimizeError(f"the model has no input '{name}'; it has {', '.join(sorted(known)) or 'none'}")
    stated = {name: array.shape for name, array in given.items()} | {n: tuple(s) for n, s in shapes.items()}
    for extent in (None, *_EXTENTS) if has_dynamic_sizes(graph) else _EXTENTS[:1]:
        yield from _feeds(graph, given if seed == 0 else {}, _shapes(graph, stated, extent), seed)


def of_other_sizes(graph: ir.Graph, given: Mapping[str, np.ndarray], first: Feeds, seed: int) -> Iterator[Feeds]:
    """Yields feeds of other sizes than `first`, the most likely first, for seed 1 and 2.

    Tries all dynamic dimensions together, then without those that many models only declare as dynamic (channels and the
    batch), first with different sizes, then with equal ones where `first` has these; then one by one. Given values are
    repeated or cut off.
    """
    sizes, kinds = _dynamic_sizes(graph, first)
    groups = [frozenset(kinds.values()) - kept for kept in (set(), {"channels"}, {"channels", "batch"})]
    chosen = [[s for s in reversed(sizes) if kinds[s] in group] for group in groups]
    options: list[dict[str, int]] = []
    for factor in _FACTORS[seed]:
        for group in chosen:
            different = _Different(size for symbol, size in sizes.items() if symbol not in group)
            units = {s: sizes[s] if kinds[s] == "size" else 1 for s in group}
            options.append({s: different.near(units[s], _target(sizes[s], kinds[s], factor, seed)) for s in group})
        options += [{s: _other(sizes[s], kinds[s], factor, seed) for s in group} for group in chosen]
    options += [{s: _other(sizes[s], kinds[s], _FACTORS[seed][0], seed)} for s in sizes]
    tried: list[dict[str, int]] = [{}]
    for changed in options:
        if changed not in tried:
            tried.append(changed)
            yield from _of_sizes(graph, given, first, changed, seed)


def of_size_one(graph: ir.Graph, given: Mapping[str, np.ndarray], runs: Sequence[Feeds]) -> Iterator[Iterator[Feeds]]:
    """Yields feeds for further runs: each dynamic dimension that had the size of another in all runs, or one size in
    all runs, is 1 in one of them."""
    like = runs[min(1, len(runs) - 1)]  # the batch is 1 in the first run
    sizes = _dynamic_sizes(graph, like)[0]
    symbols = list(dict.fromkeys([*itertools.chain(*equal_sizes(graph, runs)), *_constant_sizes(graph, runs)]))
    for seed, symbol in enumerate([s for s in symbols if sizes[s] != 1][:_MAX_RUNS_OF_ONE], 3):
        yield _of_sizes(graph, given, like, {symbol: 1}, seed)


def equal_sizes(graph: ir.Graph, runs: Sequence[Feeds]) -> list[list[str]]:
    """Returns groups of dynamic dimensions that had equal sizes in all runs."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for symbol, sizes in _sizes_of_runs(graph, runs).items():
        groups.setdefault(sizes, []).append(symbol)
    return [group for group in groups.values() if len(group) > 1]


def _constant_sizes(graph: ir.Graph, runs: Sequence[Feeds]) -> list[str]:
    return [symbol for symbol, sizes in _sizes_of_runs(graph, runs).items() if len(set(sizes)) == 1]


def _sizes_of_runs(graph: ir.Graph, runs: Sequence[Feeds]) -> dict[str, tuple[int, ...]]:
    sizes = [_dynamic_sizes(graph, feeds)[0] for feeds in runs]
    return {symbol: tuple(of_run[symbol] for of_run in sizes) for symbol in reversed(sizes[0])}


def describe_inputs(graph: ir.Graph, given: Mapping[str, np.ndarray], runs: Sequence[Feeds]) -> list[str]:
    """Returns lines that say which inputs were synthetic, the sizes that were chosen for dynamic dimensions, and how to
    give others."""
    roles_of = {v.name or "": roles.role_of(v) for v in model_inputs(graph) if v.name not in given}
    kinds = [f"{name} ({f'random {role}'.rstrip()})" for name, role in roles_of.items()]
    chosen = [f"{symbol} = {', '.join(map(str, sizes))}" for symbol, sizes in _sizes_of_runs(graph, runs).items()]
    lines = [f"synthetic inputs: {_listed(kinds)}; -i NAME=FILE or --set gives others"] if kinds else []
    if chosen:
        hint = "; --shape gives the first" if kinds else ""
        lines.append(f"dynamic sizes: {_listed(chosen, '; ')}{hint}")
    return lines


def _listed(parts: Sequence[str], separator: str = ", ") -> str:
    """Returns the parts as a text: the first ones, and how many follow."""
    more = [f"{len(parts) - _MAX_LISTED} more"] if len(parts) > _MAX_LISTED else []
    return separator.join([*parts[:_MAX_LISTED], *more])


def _symbols(value: ir.Value) -> Iterator[tuple[int, str, str]]:
    """Yields the axis, the symbol and the kind of each dynamic dimension. A dimension without a name is unique.

    The first dimension is the batch, except that of a table of boxes, RoIs or points.
    """
    if value.shape is None:
        return
    rank = len(value.shape)
    has_batch = rank > 2 or (rank == 2 and not roles.role_of(value))
    for axis, dim in enumerate(value.shape):
        if not isinstance(dim, int):
            kind = "batch" if axis == 0 and has_batch else "channels" if axis == 1 and rank > 2 else "size"
            yield axis, dim.value or f"{value.name}:{axis}", kind


def _dynamic_sizes(graph: ir.Graph, feeds: Feeds) -> tuple[dict[str, int], dict[str, str]]:
    """Returns the sizes and the kinds of the symbols."""
    found = [
        (symbol, feeds[v.name].shape[axis], kind) for v in model_inputs(graph) for axis, symbol, kind in _symbols(v)
    ]
    return {symbol: size for symbol, size, _ in reversed(found)}, {symbol: kind for symbol, _, kind in reversed(found)}


def _target(size: int, kind: str, factor: float, seed: int) -> int:
    return size + seed if kind != "size" else max(int(size * factor), 1)


def _other(size: int, kind: str, factor: float, seed: int) -> int:
    other = _target(size, kind, factor, seed)
    return other if other != size else size + seed


class _Different:
    """Chooses sizes that differ: primes, or their multiples where the sizes that they replace are multiples of 2 to 32,
    so that products and quotients differ, too."""

    def __init__(self, taken: Iterable[int] = ()) -> None:
        self._taken = {*taken}

    def near(self, size: int, target: int) -> int:
        """Returns a size of at least `target`, in place of `size`: of much smaller ones, tensors may be empty, which
        some kernels of runtimes do not survive."""
        unit = gcd(size, 32)
        while True:
            first = max(-(-target // unit), 1)
            for number in range(first, max(4 * first, 64 // unit) + 1):
                chosen = number * unit
                if (
                    (number == 1 or is_prime(number))
                    and chosen not in self._taken
                    and (chosen != size or size == target)
                ):
                    self._taken.add(chosen)
                    return chosen
            unit //= 2
            if unit == 0:  # more than all primes up to four times the size
                unit, target = 1, 4 * target


def _with_sizes(value: ir.Value, shape: Sequence[int], sizes: Mapping[str, int]) -> tuple[int, ...]:
    new = list(shape)
    for axis, symbol, _ in _symbols(value):
        new[axis] = sizes.get(symbol, new[axis])
    return tuple(new)


def _repeated(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Returns an array of this shape, cut off or repeated along each axis."""
    if 0 in array.shape:
        return np.zeros(shape, array.dtype)
    for axis, extent in enumerate(shape):
        if array.shape[axis] != extent:
            array = np.take(array, np.arange(extent) % array.shape[axis], axis)
    return array


def _of_sizes(
    graph: ir.Graph, given: Mapping[str, np.ndarray], like: Feeds, changed: Mapping[str, int], seed: int
) -> Iterator[Feeds]:
    """Yields feeds with the sizes of `like`, of which some are changed. Given values are repeated or cut off."""
    new = {v.name: _with_sizes(v, like[v.name].shape, changed) for v in model_inputs(graph)}
    yield from _feeds(graph, {name: _repeated(array, new[name]) for name, array in given.items()}, new, seed)


def _feeds(
    graph: ir.Graph, given: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]], seed: int
) -> Iterator[Feeds]:
    """Yields feeds of these shapes, each with smaller integers than the one before it."""
    before: Feeds = {}
    for below in _INTEGERS_BELOW:
        feeds = {v.name: _values(v, given, shapes, seed, below) for v in model_inputs(graph)}
        if not before or any(not np.array_equal(feeds[name], before[name]) for name in feeds):
            yield feeds
        before = feeds


def _values(
    value: ir.Value, given: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]], seed: int, below: int
) -> np.ndarray:
    if value.name in given:
        return given[value.name]
    shape = shapes[value.name]
    if value.dtype is None:
        raise OptimizeError(f"input '{value.name}': expected a known type: pass it with -i {value.name}=FILE.npy")
    dtype = value.dtype.numpy()
    if prod(shape) > _MAX_ELEMENTS or min(shape, default=0) < 0:
        what = f"input '{value.name}': expected at most {_MAX_ELEMENTS} elements to generate, got shape {list(shape)}"
        raise OptimizeError(what, "pass it with -i NAME=FILE.npy, or set its shape with --shape NAME=1x3x224x224")
    rng = np.random.default_rng([zlib.crc32((value.name or "").encode()), seed])
    if (drawn := roles.draw(roles.role_of(value), shape, below, rng)) is not None:
        return drawn.astype(dtype)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(0, below if dtype.itemsize > 1 else np.iinfo(dtype).max + 1, shape), dtype)
    if dtype.kind in "fV" or dtype.name == "bfloat16":
        return np.asarray(rng.random(shape), dtype)
    raise OptimizeError(
        f"input '{value.name}': expected a numeric type to generate, got {dtype}: pass it with -i {value.name}=FILE.npy"
    )


def _shapes(graph: ir.Graph, stated: Mapping[str, tuple[int, ...]], extent: int | None) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the inputs. Dimensions of the same name are equal, the first dimension is the batch, and
    images get 3 channels where possible. Others get this extent, or different ones if it is None."""
    sizes: dict[str, int] = {}
    for value in model_inputs(graph):
        if value.name in stated and value.shape is not None and len(value.shape) == len(stated[value.name]):
            sizes |= {symbol: stated[value.name][axis] for axis, symbol, _ in _symbols(value)}
    shapes = {}
    different = _Different(sizes.values())
    for value in model_inputs(graph):
        if value.name in stated:
            shapes[value.name] = stated[value.name]
            continue
        if value.shape is None:
            raise OptimizeError(
                f"input '{value.name}': expected a known rank: set its shape with --shape {value.name}=…"
            )
        for axis, symbol, kind in _symbols(value):
            is_image = axis == 1 and len(value.shape) == 4
            if kind == "batch" or is_image:
                sizes.setdefault(symbol, 1 if kind == "batch" else 3)
            elif symbol not in sizes:
                sizes[symbol] = extent or different.near(_EXTENTS[0], _EXTENTS[0])
        shapes[value.name] = _with_sizes(value, [d if isinstance(d, int) else 0 for d in value.shape], sizes)
    return shapes
