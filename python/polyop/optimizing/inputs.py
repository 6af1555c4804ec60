"""Generates values for the inputs of a model that the user does not set."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from polyop.optimizing import roles
from polyop.optimizing.errors import OptimizeError
from polyop.optimizing.running import Feeds

# Sizes to try for dynamic dimensions, and upper bounds of random integers.
_EXTENTS = (64, 32, 224, 16, 640, 8, 4, 1)
_INTEGERS_BELOW = (4, 2, 1)
# Factors of the dynamic sizes of the second and the third run: images keep their multiples of 16 and 32 if possible.
_FACTORS = {1: (1.5, 2.0, 3.0), 2: (0.5, 0.75, 2.5)}
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
    for extent in _EXTENTS if has_dynamic_sizes(graph) else _EXTENTS[:1]:
        all_shapes = _shapes(graph, stated, extent)
        for below in _INTEGERS_BELOW:
            yield {v.name: _values(v, given if seed == 0 else {}, all_shapes, seed, below) for v in model_inputs(graph)}


def of_other_sizes(graph: ir.Graph, given: Mapping[str, np.ndarray], first: Feeds, seed: int) -> Iterator[Feeds]:
    """Yields feeds of other sizes than `first`, the most likely first, for seed 1 and 2.

    Tries all dynamic dimensions together, then without those that many models only declare as dynamic (channels and the
    batch), then one by one. Given values are repeated or cut off.
    """
    sizes, kinds = _dynamic_sizes(graph, first)
    groups = [frozenset(kinds.values()) - kept for kept in (set(), {"channels"}, {"channels", "batch"})]
    tried: set[tuple[tuple[str, int], ...]] = set()
    by_kind = [(f, {s for s in sizes if kinds[s] in group}) for f in _FACTORS[seed] for group in groups]
    for factor, chosen in [*by_kind, *((_FACTORS[seed][0], {symbol}) for symbol in sizes)]:
        changed = {s: _other(sizes[s], kinds[s], factor, seed) for s in sizes if s in chosen}
        key = tuple(sorted(changed.items()))
        if key in tried or not changed:
            continue
        tried.add(key)
        new = {v.name: _with_sizes(v, first[v.name].shape, changed) for v in model_inputs(graph)}
        repeated = {name: _repeated(array, new[name]) for name, array in given.items()}
        for below in _INTEGERS_BELOW:
            yield {v.name: _values(v, repeated, new, seed, below) for v in model_inputs(graph)}


def describe_inputs(graph: ir.Graph, given: Mapping[str, np.ndarray], runs: Sequence[Feeds]) -> list[str]:
    """Returns lines that say which inputs were synthetic, the sizes that were chosen for dynamic dimensions, and how to
    give others."""
    roles_of = {v.name or "": roles.role_of(v) for v in model_inputs(graph) if v.name not in given}
    kinds = [f"{name} ({f'random {role}'.rstrip()})" for name, role in roles_of.items()]
    sizes = [_dynamic_sizes(graph, feeds)[0] for feeds in runs]
    chosen = [f"{symbol} = {', '.join(str(size[symbol]) for size in sizes)}" for symbol in reversed(sizes[0])]
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


def _other(size: int, kind: str, factor: float, seed: int) -> int:
    other = size + seed if kind != "size" else max(int(size * factor), 1)
    return other if other != size else size + seed


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


def _shapes(graph: ir.Graph, stated: Mapping[str, tuple[int, ...]], extent: int) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the inputs. Dimensions of the same name are equal, the first dimension is the batch, and
    images get 3 channels where possible."""
    sizes: dict[str, int] = {}
    for value in model_inputs(graph):
        if value.name in stated and value.shape is not None and len(value.shape) == len(stated[value.name]):
            sizes |= {symbol: stated[value.name][axis] for axis, symbol, _ in _symbols(value)}
    shapes = {}
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
            sizes.setdefault(symbol, 1 if kind == "batch" else 3 if is_image else extent)
        shapes[value.name] = _with_sizes(value, [d if isinstance(d, int) else 0 for d in value.shape], sizes)
    return shapes
