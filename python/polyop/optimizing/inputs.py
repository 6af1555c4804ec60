"""Values for a model's inputs where the user gives none."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from polyop.optimizing.errors import OptimizeError
from polyop.optimizing.running import Feeds

# Extents that are tried where a dimension may be anything, and integers below which values are drawn.
_EXTENTS = (64, 32, 224, 16, 640, 8, 4, 1)
_INTEGERS_BELOW = (4, 2, 1)
_MOST_ELEMENTS = 1 << 30


def model_inputs(graph: ir.Graph) -> list[ir.Value]:
    """Without initializers that may be overridden."""
    return [value for value in graph.inputs if value.name not in graph.initializers]


def has_dynamic_sizes(graph: ir.Graph) -> bool:
    return any(value.shape is None or not value.shape.is_static() for value in model_inputs(graph))


def candidates(
    graph: ir.Graph, given: Mapping[str, np.ndarray], shapes: Mapping[str, Sequence[int]], seed: int
) -> Iterator[Feeds]:
    """Feeds that may run, likely ones first. Each input has values of its own, by its name and the seed."""
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
            raise OptimizeError(f"the type of input '{value.name}' is unknown: give it with -i {value.name}=FILE.npy")
        dtype = value.dtype.numpy()
    if prod(shape) > _MOST_ELEMENTS or min(shape, default=0) < 0:
        what = f"input '{value.name}' would be of shape {list(shape)}: nothing is made up that large"
        raise OptimizeError(what, "give it with -i NAME=FILE.npy, or other sizes with --shape NAME=1x3x224x224")
    rng = np.random.default_rng([zlib.crc32((value.name or "").encode()), seed])
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(0, below if dtype.itemsize > 1 else np.iinfo(dtype).max + 1, shape), dtype)
    if dtype.kind in "fV" or dtype.name == "bfloat16":
        return np.asarray(rng.random(shape), dtype)
    raise OptimizeError(f"input '{value.name}' is of type {dtype}: give it with -i {value.name}=FILE.npy")


def _shape(value: ir.Value, extent: int, seed: int) -> tuple[int, ...]:
    """Dimensions of the same name are the same; a first one, of whatever name, is taken for the batch; pictures get as
    many channels as pictures have. The second run has other sizes."""
    if value.shape is None:
        raise OptimizeError(f"the rank of input '{value.name}' is unknown: give its shape with --shape {value.name}=…")
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
