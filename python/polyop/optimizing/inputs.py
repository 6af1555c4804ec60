"""Generates values for the inputs of a model that the user does not set."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from polyop.optimizing.errors import OptimizeError
from polyop.optimizing.running import Feeds

# Sizes to try for dynamic dimensions, and upper bounds of random integers.
_EXTENTS = (64, 32, 224, 16, 640, 8, 4, 1)
_INTEGERS_BELOW = (4, 2, 1)
_MAX_ELEMENTS = 1 << 30


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
    dynamic = has_dynamic_sizes(graph)
    for extent in _EXTENTS if dynamic else _EXTENTS[:1]:
        for below in _INTEGERS_BELOW:
            yield {v.name: _values(v, given, shapes, seed, extent, below) for v in model_inputs(graph)}


def _values(
    value: ir.Value,
    given: Mapping[str, np.ndarray],
    shapes: Mapping[str, Sequence[int]],
    seed: int,
    extent: int,
    below: int,
) -> np.ndarray:
    if seed == 0 and value.name in given:
        return given[value.name]
    if value.name in given:
        shape, dtype = given[value.name].shape, given[value.name].dtype
    else:
        shape = tuple(shapes[value.name]) if value.name in shapes else _shape(value, extent, seed)
        if value.dtype is None:
            raise OptimizeError(f"input '{value.name}': expected a known type: pass it with -i {value.name}=FILE.npy")
        dtype = value.dtype.numpy()
    if prod(shape) > _MAX_ELEMENTS or min(shape, default=0) < 0:
        what = f"input '{value.name}': expected at most {_MAX_ELEMENTS} elements to generate, got shape {list(shape)}"
        raise OptimizeError(what, "pass it with -i NAME=FILE.npy, or set its shape with --shape NAME=1x3x224x224")
    rng = np.random.default_rng([zlib.crc32((value.name or "").encode()), seed])
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(0, below if dtype.itemsize > 1 else np.iinfo(dtype).max + 1, shape), dtype)
    if dtype.kind in "fV" or dtype.name == "bfloat16":
        return np.asarray(rng.random(shape), dtype)
    raise OptimizeError(
        f"input '{value.name}': expected a numeric type to generate, got {dtype}: pass it with -i {value.name}=FILE.npy"
    )


def _shape(value: ir.Value, extent: int, seed: int) -> tuple[int, ...]:
    """Returns a shape. Dimensions of the same name are equal, the first dimension is the batch, and images get 3
    channels where possible. The second run has other sizes."""
    if value.shape is None:
        raise OptimizeError(f"input '{value.name}': expected a known rank: set its shape with --shape {value.name}=…")
    other = extent + extent // 2 if seed else extent
    shape = []
    for axis, dim in enumerate(value.shape):
        if isinstance(dim, int):
            shape.append(dim)
        elif axis == 0 and len(value.shape) > 1:
            shape.append(1 + seed)
        elif axis == 1 and len(value.shape) == 4:
            shape.append(3)
        else:
            shape.append(other)
    return tuple(shape)
