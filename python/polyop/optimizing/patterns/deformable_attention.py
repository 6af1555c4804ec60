# SPDX-License-Identifier: Apache-2.0
"""Multi-scale deformable attention (Zhu et al., 2021) as transformers, MMCV and the DETR repositories write it in
torch:

    grids = 2 * locations - 1
    for each level: grid_sample(value of the level as [N * M, D, height, width], grids of the level)
    output = (samples of all levels * weights).sum(-1)

value is [N, S, M, D], locations [N, Q, M, L, P, 2] and weights [N, Q, M, L, P] (first variant), or [N, Q, M, sum of P,
2] and [N, Q, M, sum of P] (second variant, where levels may have different numbers of points).

The second variant's method "discrete" (RT-DETRv2) takes one pixel of each level instead, by an index:

    x, y = clamp(int(locations * (width, height) + 0.5), 0, (width, height) - 1)

For polyop's node such a location is moved to the centre of its pixel, where bilinear sampling returns that pixel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import constant, is_standard, moved_on, operands, producer, scalar, trail
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "deformable attention"
ORDER = 10
TARGETS = tuple(Target)
NODE = "mmdeploy::MMCVMultiScaleDeformableAttention"
NVIDIAS_NODE = "::MultiscaleDeformableAttnPlugin_TRT"  # of TensorRT's plugin library


@dataclass
class _Level:
    """The sampling of one level."""

    image: ir.Value  # [N * M, D, height, width]; if is_discrete, a reshaped form
    grid: ir.Value  # [N * M, Q, P, 2]: 2 * locations - 1; if is_discrete, the locations themselves
    is_discrete: bool = False


@dataclass
class _Attention:
    """The nodes of an attention, before shapes are checked."""

    sum: ir.Node
    levels: list[_Level]
    weights: ir.Value  # as multiplied


def find(scope: Scope) -> Iterator[Match]:
    def match(node: ir.Node) -> Match | None:
        return _match(scope, found) if (found := _recognise(node)) else None

    yield from matches_of((n for n in scope.graph if is_standard(n, "ReduceSum")), match)


def _recognise(node: ir.Node) -> _Attention | None:
    product = producer(node.inputs[0], "Mul")
    if product is None:
        return None
    for samples, weights in (product.inputs, reversed(product.inputs)):
        levels = _levels_of(samples)
        if levels:
            return _Attention(node, levels, weights)
    return None


def _levels_of(samples: ir.Value) -> list[_Level]:
    """Returns the levels that the samples were gathered from; empty unless all are of the same kind."""
    source = trail(samples)[-1]
    joined = producer(source, "Concat")
    ends = list(joined.inputs) if joined else [samples]
    for sampled in (_bilinear, _discrete):
        levels = [sampled(end) for end in ends]
        if None not in levels:
            return levels
    return []


def _bilinear(samples: ir.Value) -> _Level | None:
    sampler = producer(trail(samples)[-1], "GridSample")
    if sampler is None:
        return None
    plain = {"mode": ("bilinear", "linear"), "padding_mode": ("zeros",), "align_corners": (0,)}
    defaults = {"mode": "bilinear", "padding_mode": "zeros", "align_corners": 0}
    given = {**defaults, **{name: attribute.value for name, attribute in sampler.attributes.items()}}
    is_plain = all(given[name] in values for name, values in plain.items())
    return _Level(sampler.inputs[0], sampler.inputs[1]) if is_plain else None


def _discrete(samples: ir.Value) -> _Level | None:
    """Recognizes pixels that are gathered by an index."""
    for value in trail(samples):
        gather = producer(value, "Gather", "GatherND")
        if gather is not None and constant(gather.inputs[1]) is None:
            grid = _rounded(gather.inputs[1])
            return _Level(gather.inputs[0], grid, is_discrete=True) if grid is not None else None
    return None


def _rounded(index: ir.Value, max_nodes: int = 60) -> ir.Value | None:
    """Returns x of int(x * sizes + 0.5), the integer that the index is computed from, or None."""
    open_ = [index]
    seen: set[ir.Value] = set()
    while open_ and len(seen) < max_nodes:
        value = open_.pop(0)
        node = value.producer()
        if value in seen or node is None or is_standard(node, "Shape", "Size"):
            continue
        seen.add(value)
        if not is_standard(node, "Cast"):
            open_ += [v for v in node.inputs if v is not None]
            continue
        added = producer(node.inputs[0], "Add")
        shifted = operands(added) if added is not None else None
        product = producer(shifted[0], "Mul") if shifted is not None and shifted[1] == 0.5 else None
        factors = [v for v in product.inputs if constant(v) is None] if product is not None else []
        if len(factors) == 1:
            return factors[0]
    return None


def _match(scope: Scope, found: _Attention) -> Match:
    where = name_of(found.sum)

    def refused(why: str) -> Match:
        return Match(where, [], [found.sum.outputs[0]], lambda b, i: [], 0, why)

    is_discrete = found.levels[0].is_discrete
    maps = [_image(scope, level) for level in found.levels]
    images = [scope.shape(v) for v in maps]
    grids = [scope.shape(level.grid) for level in found.levels]
    if None in images or None in grids or any(len(p) != 4 or len(g) != 4 for p, g in zip(images, grids, strict=True)):
        return refused("expected known shapes of its levels")
    points = [g[2] for g in grids]
    levels, queries, depth = len(points), grids[0][1], images[0][1]
    sizes = [p[2:] for p in images]
    pixels = sum(h * w for h, w in sizes)
    value = _common(scope, maps, lambda s: len(s) == 4 and s[1] == pixels and s[3] == depth)
    if value is None:
        return refused("expected a tensor [batch, pixels, heads, depth] with the values of all levels")
    batch, _, heads, _ = scope.shape(value)
    grid = _common(
        scope, [level.grid for level in found.levels], lambda s: s[:3] == (batch, queries, heads) and s[-1] == 2
    )
    locations = _locations(grid) if grid is not None and not is_discrete else grid
    if locations is None:
        how = "" if is_discrete else ", as 2 * it - 1"
        return refused(f"expected a tensor [batch, queries, heads, …, 2] with the locations of all levels{how}")
    flat = (batch, queries, heads, sum(points))
    weights = _last(scope, found.weights, lambda s: s == flat or (s[:3] == flat[:3] and s[3:] == (levels, points[0])))
    if weights is None:
        return refused("expected a tensor [batch, queries, heads, …] with the weights of all levels")
    output = next(
        (v for v in moved_on(found.sum.outputs[0], 4) if scope.shape(v) == (batch, queries, heads * depth)), None
    )
    if output is None:
        return refused("expected a result of shape [batch, queries, heads * depth]")
    if scope.target is Target.TENSORRT and value.dtype not in (None, ir.DataType.FLOAT, ir.DataType.FLOAT16):
        return refused(f"expected values of float32 or float16 for NVIDIA's plugin, got {value.dtype.name.lower()}")
    targets = [_level_size(scope, v) for v in maps]
    if None in targets:
        return refused("expected recognizable sizes of its levels")

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        value, locations, weights, *computed = inputs
        spatial, start = _levels(b, targets, computed)
        locations, weights = _by_level(b, locations, weights, scope.shape(locations), scope.shape(weights), points)
        if is_discrete:
            locations = _pixel_centres(b, locations, spatial, len(points))
        if scope.target is not Target.TENSORRT:
            return [b(NODE, value, spatial, start, locations, weights)]
        spatial, start = (b("Cast", v, to=ir.DataType.INT32.value) for v in (spatial, start))
        by_head = b(NVIDIAS_NODE, value, spatial, start, locations, weights)
        return [b("Reshape", by_head, b.constant([0, 0, -1]))]

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Returns locations inside, at and outside the border."""
        value, locations, weights, *rest = arrays
        drawn = rng.uniform(-0.3, 1.3, locations.shape)
        drawn = np.where(rng.random(locations.shape) < 0.1, rng.choice([0.0, 0.5, 1.0], locations.shape), drawn)
        values = [rng.standard_normal(value.shape), drawn, rng.standard_normal(weights.shape)]
        return [*(v.astype(a.dtype) for v, a in zip(values, arrays, strict=False)), *rest]

    inputs = [value, locations, weights, *(t for t in targets if isinstance(t, ir.Value))]
    work = batch * queries * heads * sum(points) * depth
    return Match(where, inputs, [output], build, work, feeds=feeds)


def _image(scope: Scope, level: _Level) -> ir.Value | None:
    """Returns the level's values as [N * M, D, height, width], or None."""
    if not level.is_discrete:
        return level.image
    reshaped = (v for v in trail(level.image) if producer(v, "Reshape") is not None)
    return next((v for v in reshaped if len(scope.shape(v) or ()) == 4), None)


def _common(scope: Scope, ends: list[ir.Value], fits: Callable[[tuple[int, ...]], bool]) -> ir.Value | None:
    """Returns the last tensor that fits among those that all ends were moved from, or None."""
    trails = [trail(end) for end in ends]
    for value in trails[0]:
        shape = scope.shape(value)
        if shape is not None and fits(shape) and all(value in t for t in trails[1:]):
            return value
    return None


def _last(scope: Scope, end: ir.Value, fits: Callable[[tuple[int, ...]], bool]) -> ir.Value | None:
    """Returns the first tensor that fits among those that `end` was moved from: later ones may be transposed."""
    return next((v for v in reversed(trail(end)) if (s := scope.shape(v)) is not None and fits(s)), None)


def _locations(grid: ir.Value) -> ir.Value | None:
    """Returns x of 2 * x - 1, or None."""
    for value in trail(grid):
        shifted = producer(value, "Sub", "Add")
        if shifted is None:
            continue
        if shifted.op_type == "Sub":
            by = scalar(shifted.inputs[1])
            scaled = shifted.inputs[0]
            by = -by if by is not None else None
        else:
            scaled, by = operands(shifted) or (None, None)
        product = producer(scaled, "Mul") if by == -1 else None
        found = operands(product) if product is not None else None
        if found is not None and found[1] == 2:
            return found[0]
    return None


def _level_size(scope: Scope, image: ir.Value) -> tuple[int, int] | ir.Value | None:
    """Returns (height, width) if they are fixed, else the shape of the Reshape that produces the image."""
    for value in trail(image):
        reshape = producer(value, "Reshape")
        if reshape is None or len(scope.shape(value) or ()) != 4:
            continue
        target = scope.numbers(reshape.inputs[1])
        if scope.sizes_are_fixed or scope.fixed(reshape.inputs[1]) is not None:
            height, width = scope.shape(value)[2:]
            return height, width
        if target is None or len(target) != 4 or min(target[2:]) <= 0:
            return None
        return reshape.inputs[1]
    return None


def _levels(
    b: Builder, targets: list[tuple[int, int] | ir.Value], computed: list[ir.Value]
) -> tuple[ir.Value, ir.Value]:
    """Returns spatial_shapes [L, 2] and level_start_index [L]."""
    if not computed:
        sizes = np.array(targets, np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes.prod(1))[:-1]])
        return b.constant(sizes), b.constant(starts)
    left = iter(computed)
    rows = [
        b("Slice", next(left), b.constant([2]), b.constant([4])) if isinstance(t, ir.Value) else b.constant(t)
        for t in targets
    ]
    spatial = b("Reshape", b("Concat", *rows, axis=0), b.constant([len(rows), 2]))
    height, width = (b("Gather", spatial, b.constant(i), axis=1) for i in range(2))
    return spatial, b("CumSum", b("Mul", height, width), b.constant(0), exclusive=1)


def _by_level(
    b: Builder,
    locations: ir.Value,
    weights: ir.Value,
    location_shape: tuple[int, ...],
    weight_shape: tuple[int, ...],
    points: list[int],
) -> tuple[ir.Value, ir.Value]:
    """Returns locations [N, Q, M, L, P, 2] and weights [N, Q, M, L, P], padded with points of weight 0."""
    levels, max_points = len(points), max(points)
    if len(set(points)) > 1:
        first = np.concatenate([[0], np.cumsum(points)[:-1]])
        indices = np.array([[f + min(p, n - 1) for p in range(max_points)] for f, n in zip(first, points, strict=True)])
        counts = np.array([[float(p < n) for p in range(max_points)] for n in points])
        index = b.constant(indices)
        taken = b("Gather", weights, index, axis=3)
        real = _real(b, b.constant(counts, np.float32), weights)
        return b("Gather", locations, index, axis=3), b("Mul", taken, real)
    if len(location_shape) == 5:
        locations = b("Reshape", locations, b.constant([0, 0, 0, levels, max_points, 2]))
    if len(weight_shape) == 4:
        weights = b("Reshape", weights, b.constant([0, 0, 0, levels, max_points]))
    return locations, weights


def _pixel_centres(b: Builder, locations: ir.Value, spatial: ir.Value, levels: int) -> ir.Value:
    """Returns the centre of the pixel of each location, rounded and clamped like the index, with integers."""
    sizes = b("Reshape", b("Gather", spatial, b.constant([1, 0]), axis=1), b.constant([levels, 1, 2]))
    as_real, half = _real(b, sizes, locations), _real(b, b.constant(0.5, np.float32), locations)
    pixel = b("Cast", b("Add", b("Mul", locations, as_real), half), to=ir.DataType.INT64.value)
    pixel = b("Min", b("Max", pixel, b.constant(0)), b("Sub", sizes, b.constant(1)))
    return b("Div", b("Add", _real(b, pixel, locations), half), as_real)


def _real(b: Builder, value: ir.Value, like: ir.Value) -> ir.Value:
    """Casts a value to the other's type; to f32 before opset 15, which has no CastLike."""
    return b("CastLike", value, like) if b.opset >= 15 else b("Cast", value, to=ir.DataType.FLOAT.value)
