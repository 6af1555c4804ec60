# SPDX-License-Identifier: Apache-2.0
"""Gradients, compared with finite differences in double precision.

The forward kernels are the reference kernels, the backward formulas are written in torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
import torch

import polyop.functional
from polyop import formulas
from polyop._torch.gradients import RULES
from polyop._torch.operators import OPERATORS
from tests.support.gradient_cases import (
    CASES,
    DIFFERENTIABLE,
    SIZED_BY_VALUES,
    call,
    differentiable,
    has_gradient,
    operator_of,
    small_rois,
)

torch.manual_seed(0)
COORS = CASES["dynamic_scatter"][1][1]


def rand(*shape: int, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
    return (torch.rand(*shape, dtype=torch.float64) * (high - low) + low).requires_grad_()


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [2, 0])
@pytest.mark.parametrize("aligned", [True, False])
def test_roi_align(mode: str, ratio: int, aligned: bool) -> None:
    boxes = small_rois(5).double()
    assert torch.autograd.gradcheck(
        lambda x: polyop.roi_align(x, boxes, (2, 3), 0.7, ratio, aligned, mode), rand(2, 2, 6, 5)
    )


@pytest.mark.parametrize("ratio", [2, 0])
@pytest.mark.parametrize("clockwise", [True, False])
def test_roi_align_rotated(ratio: int, clockwise: bool) -> None:
    boxes = small_rois(6).double()
    assert torch.autograd.gradcheck(
        lambda x: polyop.roi_align_rotated(x, boxes, (2, 3), 0.7, ratio, clockwise=clockwise), rand(2, 2, 6, 5)
    )


@pytest.mark.parametrize("ratio", [2, 0])
@pytest.mark.parametrize("mode", ["avg", "max", "rotated"])
def test_multi_level_roi_align(mode: str, ratio: int) -> None:
    """The boxes are 4, 10, 22 and 20 pixels wide and high, so each level has some."""
    corners = torch.tensor([[0, 1, 2, 5, 6], [1, 3, 1, 13, 11.5], [1, -4, 3, 18, 25], [0, 0.5, 0, 20, 21]])
    sizes = corners[:, 3:] - corners[:, 1:3]
    rotated = torch.cat([corners[:, :1], corners[:, 1:3] + sizes / 2, sizes, torch.tensor([[0.3, -2, 1, 3]]).T], 1)
    boxes = (rotated if mode == "rotated" else corners).double()
    name = "multi_level_rotated_roi_align" if mode == "rotated" else "multi_level_roi_align"
    attributes = {"output_height": 2, "output_width": 3, "sampling_ratio": ratio, "featmap_strides": [2.0, 4.0, 8.0]}
    attributes |= {} if mode == "rotated" else {"pool_mode": mode}
    levels = rand(2, 2, 9, 8), rand(2, 2, 5, 4), rand(2, 2, 3, 2)

    def pool(*feats: torch.Tensor) -> torch.Tensor:
        return getattr(torch.ops.polyop, name)(boxes, feats, **attributes, finest_scale=4)

    pool(*levels).sum().backward()
    assert all(level.grad.any() for level in levels)  # each has boxes
    assert torch.autograd.gradcheck(pool, levels)


@pytest.mark.parametrize("points", [1, 5])
def test_rotated_feature_align(points: int) -> None:
    boxes = rand(2, 4, 5, 5, low=-4, high=9).detach()
    assert torch.autograd.gradcheck(
        lambda x: torch.ops.polyop.rotated_feature_align(x, boxes, spatial_scale=0.7, points=points), rand(2, 3, 4, 5)
    )


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(mode: str, padding: str) -> None:
    x, grid = rand(2, 2, 4, 5), rand(2, 3, 3, 2, low=-1.3, high=1.3)
    assert torch.autograd.gradcheck(lambda a, b: polyop.grid_sample(a, b, mode, padding), (x, grid))


def test_grid_sample_of_volumes() -> None:
    x, grid = rand(1, 2, 3, 4, 5), rand(1, 2, 2, 2, 3, low=-1, high=1)
    assert torch.autograd.gradcheck(lambda a, b: polyop.grid_sample(a, b, align_corners=True), (x, grid))


def test_deform_conv2d() -> None:
    x, weight, offset = rand(2, 4, 5, 6), rand(2, 4, 3, 2), rand(2, 12, 3, 3, low=-1.4, high=1.4)
    assert torch.autograd.gradcheck(
        lambda a, b, c: polyop.deform_conv2d(a, b, c, stride=2, padding=(1, 0)), (x, offset, weight)
    )


@pytest.mark.parametrize("with_bias", [True, False])
def test_modulated_deform_conv2d(with_bias: bool) -> None:
    x, weight, bias = rand(1, 4, 3, 3), rand(4, 2, 2, 2), rand(4) if with_bias else None
    offset, mask = rand(1, 16, 3, 4, low=-1.4, high=1.4), rand(1, 8, 3, 4)

    def convolution(*given: torch.Tensor) -> torch.Tensor:
        return polyop.modulated_deform_conv2d(*given, padding=(1, 1), dilation=(2, 1), groups=2, deform_groups=2)

    inputs = (x, offset, mask, weight) + ((bias,) if with_bias else ())
    assert torch.autograd.gradcheck(convolution, inputs)


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("with_mask", [True, False])
def test_onnx_deform_conv(with_bias: bool, with_mask: bool) -> None:
    inputs = [rand(1, 4, 3, 3), rand(4, 2, 2, 2), rand(1, 16, 4, 4, low=-1.4, high=1.4)]
    optional = [rand(4) if with_bias else None, rand(1, 8, 4, 4) if with_mask else None]

    def convolution(*given: torch.Tensor) -> torch.Tensor:
        rest = iter(given[3:])
        full = [*given[:3], *(t if t is None else next(rest) for t in optional)]
        attributes = {"pads": [1, 2, 2, 0], "dilations": [2, 1], "group": 2, "offset_group": 2}
        return torch.ops.polyop.onnx_deform_conv(*full, **attributes)

    assert torch.autograd.gradcheck(convolution, [*inputs, *(t for t in optional if t is not None)])


def test_openvino_deform_conv2d() -> None:
    inputs = rand(1, 4, 4, 3), rand(1, 16, 5, 2, low=-1.4, high=1.4), rand(4, 2, 2, 2)
    attributes = {"pads": [1, 2, 2, 0], "dilations": [2, 1], "strides": [1, 2], "group": 2, "deformable_groups": 2}
    assert torch.autograd.gradcheck(lambda *t: torch.ops.polyop.openvino_deform_conv2d(*t, **attributes), inputs)


@pytest.mark.parametrize("mask", range(32))
def test_gradients_of_a_missing_mask(mask: int) -> None:
    """The formula's gradients of any selection are the kernel's, also those of an input that is missing."""
    gradient = OPERATORS["onnx_deform_conv"].gradient
    inputs = [rand(1, 4, 3, 3), rand(1, 4, 3, 3), rand(4, 2, 2, 2), rand(1, 16, 3, 3, low=-1.4, high=1.4), None]
    attributes = {"pads": [1, 0, 1, 1], "dilations": [2, 1], "group": 2, "offset_group": 2, "output_mask": mask}
    attributes = gradient.values(attributes)
    found = gradient.overload(*inputs, **attributes)
    expected = RULES["polyop::onnx_deform_conv_backward"].formula(*inputs, **attributes)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("mode", ["top", "bottom", "left", "right"])
def test_corner_pool(mode: str) -> None:
    assert torch.autograd.gradcheck(lambda x: polyop.corner_pool(x, mode), rand(2, 2, 4, 3))


@pytest.mark.parametrize("function", [polyop.cummax, polyop.cummin])
@pytest.mark.parametrize("dim", [0, -1])
def test_cumulative(function: object, dim: int) -> None:
    assert torch.autograd.gradcheck(lambda x: function(x, dim)[0], rand(3, 4, 5))


def test_ms_deform_attn() -> None:
    shapes, starts = torch.tensor([[4, 5], [2, 3]]), torch.tensor([0, 20])
    value, locations, weights = rand(2, 26, 2, 3), rand(2, 3, 2, 2, 2, 2, low=-0.2, high=1.2), rand(2, 3, 2, 2, 2)
    assert torch.autograd.gradcheck(
        lambda v, at, w: polyop.ms_deform_attn(v, shapes, starts, at, w), (value, locations, weights)
    )


def test_ms_deform_attn_of_offsets() -> None:
    shapes = torch.tensor([[4, 5], [2, 3]])
    value, references, offsets = rand(2, 26, 2, 3), rand(2, 3, 1, 4), rand(2, 3, 2, 16, low=-1.3, high=1.3)
    assert torch.autograd.gradcheck(
        lambda v, r, o, w: polyop.ms_deform_attn_of_offsets(v, shapes, r, o, w),
        (value, references, offsets, rand(2, 3, 2, 8, low=-2)),
    )


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
def test_rotate(interpolation: str) -> None:
    angle, center = torch.tensor(33.0, dtype=torch.float64), torch.tensor([2.2, 1.7], dtype=torch.float64)
    inputs = (rand(2, 5, 4), angle.requires_grad_(), center.requires_grad_())
    assert torch.autograd.gradcheck(lambda x, a, c: polyop.rotate(x, a, c, interpolation), inputs)


def test_rotate_by_an_angle_of_one_dimension() -> None:
    image, angle, center = torch.rand(2, 5, 6), torch.tensor([33.0], requires_grad=True), torch.tensor([2.6, 3.2])
    polyop.rotate(image, angle, center).sum().backward()
    assert angle.grad is not None
    assert angle.grad.shape == (1,)


def test_bev_pool() -> None:
    """Includes ranks without an interval, an interval without ranks, and one whose cell a later one overwrites."""
    starts, lengths = torch.tensor([0, 3, 7, 4], dtype=torch.int32), torch.tensor([2, 1, 0, 3], dtype=torch.int32)
    depth, feat = rand(2, 3, 2, 2), rand(2, 2, 2, 4)
    of_depth, of_feat = torch.randint(0, 24, (7,)).int(), torch.randint(0, 8, (7,)).int()
    cells = torch.tensor([5, 5, 9, 5, 2, 2, 2], dtype=torch.int32)
    assert torch.autograd.gradcheck(
        lambda d, f: polyop.bev_pool_v2(d, f, of_depth, of_feat, cells, starts, lengths, 2, 3), (depth, feat)
    )
    position = torch.stack([cells // 3 % 2, cells % 3, cells * 0, cells // 6], 1)
    assert torch.autograd.gradcheck(lambda x: polyop.bev_pool(x, position, lengths, starts, 2, 1, 2, 3), rand(7, 4))


def test_pillar_scatter() -> None:
    coors = torch.tensor([[0, 0, 1, 2], [1, 0, 0, 0], [0, 0, 1, 2]])  # the last wins
    assert torch.autograd.gradcheck(lambda f: polyop.pillar_scatter(f, coors, (2, 3), 2), rand(3, 4))


def test_gathers_of_points() -> None:
    features, idx = rand(2, 3, 5), torch.randint(0, 5, (2, 4, 3))
    assert torch.autograd.gradcheck(lambda f: polyop.grouping_operation(f, idx), features)
    assert torch.autograd.gradcheck(lambda f: polyop.gather_points(f, idx[:, :, 0].contiguous().int()), features)
    assert torch.autograd.gradcheck(lambda f, w: polyop.three_interpolate(f, idx, w), (features, rand(2, 4, 3)))


def test_dcn_v3() -> None:
    x, offset, mask = rand(1, 4, 5, 4), rand(1, 2, 3, 32, low=-1.4, high=1.4), rand(1, 2, 3, 16)
    assert torch.autograd.gradcheck(
        lambda *t: polyop.dcn_v3(*t, 3, 2, 1, 1, 2, 2, offset_scale=0.7, remove_center=True), (x, offset, mask)
    )


def test_dcn_v4() -> None:
    x, rows = rand(1, 4, 5, 4), rand(1, 4, 3, 40, low=-1.4, high=1.4)
    assert torch.autograd.gradcheck(lambda *t: polyop.dcn_v4(*t, (3, 2), (1, 2), (1, 1), 1, 2, 2), (x, rows))


def test_carafe() -> None:
    assert torch.autograd.gradcheck(lambda x, m: polyop.carafe(x, m, 3, 2, 2), (rand(1, 4, 2, 3), rand(1, 18, 4, 6)))


def test_border_align() -> None:
    corners = torch.rand(2, 3, 4, dtype=torch.float64) * 7 - 1
    assert torch.autograd.gradcheck(lambda x: polyop.border_align(x, corners, 3), rand(2, 8, 5, 6))


@pytest.mark.parametrize("ratio", [2, 0])
def test_deform_roi_pool(ratio: int) -> None:
    boxes, offset = small_rois(5).double(), rand(5, 2, 2, 3, low=-1, high=1)
    assert torch.autograd.gradcheck(
        lambda x, o: polyop.deform_roi_pool(x, boxes, o, (2, 3), 0.7, ratio, 0.3), (rand(2, 2, 6, 5), offset)
    )


@pytest.mark.parametrize(("on_pixels", "scale"), [(False, 0.7), (True, 1.0)])
def test_prroi_pool_of_features_and_boxes(on_pixels: bool, scale: float) -> None:
    boxes = small_rois(5).double()
    if on_pixels:
        boxes = torch.cat([boxes[:, :3].floor(), boxes[:, :3].floor()[:, 1:] + torch.tensor([3.0, 2])], 1)
    corners = boxes[:, 1:].clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x, c: polyop.prroi_pool(x, torch.cat([boxes[:, :1], c], 1), (2, 3), scale), (rand(2, 2, 6, 5), corners)
    )


@pytest.mark.parametrize("rounded", [True, False])
def test_roi_pool(rounded: bool) -> None:
    boxes = small_rois(5).double()
    assert torch.autograd.gradcheck(lambda x: polyop.roi_pool(x, boxes, (2, 3), 0.7, rounded), rand(2, 2, 6, 5))


@pytest.mark.parametrize("samples", [2, 0])
def test_riroi_align_rotated(samples: int) -> None:
    boxes = small_rois(6).double()
    assert torch.autograd.gradcheck(
        lambda x: polyop.riroi_align_rotated(x, boxes, (2, 3), 0.7, samples, 4), rand(2, 4, 6, 5)
    )


@pytest.mark.parametrize("ratio", [2, 0])
@pytest.mark.parametrize("aligned", [True, False])
def test_bezier_align(ratio: int, aligned: bool) -> None:
    beziers = small_rois(17).double()
    assert torch.autograd.gradcheck(
        lambda x: polyop.bezier_align(x, beziers, (2, 3), 0.7, ratio, aligned), rand(2, 2, 6, 5)
    )


def test_active_rotated_filter() -> None:
    """Some outputs have no entry, and some have two, of which the last wins."""
    positions = torch.randint(1, 13, (2, 3, 2, 4))
    assert torch.autograd.gradcheck(lambda x: polyop.active_rotated_filter(x, positions), rand(2, 3, 2, 3, 2))


def test_correlation() -> None:
    assert torch.autograd.gradcheck(
        lambda a, b: polyop.correlation(a, b, (3, 2), 1, (1, 2), 1, (1, 2), (2, 1)),
        (rand(2, 2, 4, 5), rand(2, 2, 4, 5)),
    )


def test_assign_score_withk() -> None:
    """Includes an invalid neighbour and an invalid centre."""
    index = torch.tensor([[[0, 1, -1], [5, 0, 1]], [[4, 4, 2], [3, 9, 0]]])
    assert torch.autograd.gradcheck(
        lambda *t: polyop.assign_score_withk(*t, index), (rand(2, 2, 3, 2), rand(2, 5, 2, 4), rand(2, 5, 2, 4))
    )


@pytest.mark.parametrize("coordinates", [2, 3])
def test_chamfer_distance(coordinates: int) -> None:
    a, b = rand(2, 5, coordinates), rand(2, 4, coordinates)
    assert torch.autograd.gradcheck(lambda *clouds: polyop.chamfer_distance(*clouds)[:2], (a, b))


@pytest.mark.parametrize("dimensions", [2, 3])
def test_diff_iou_rotated(dimensions: int) -> None:
    a, b = (rand(2, 12, 2 * dimensions + 1, low=0.3, high=2) for _ in range(2))
    function = polyop.functional.diff_iou_rotated_2d if dimensions == 2 else polyop.functional.diff_iou_rotated_3d
    assert torch.autograd.gradcheck(function, (a, b))
    assert torch.autograd.gradgradcheck(function, tuple(t[:, :3].detach().requires_grad_() for t in (a, b)))


@pytest.mark.parametrize("psa_type", ["collect", "distribute"])
def test_psa_mask(psa_type: str) -> None:
    assert torch.autograd.gradcheck(lambda x: polyop.psa_mask(x, psa_type, (3, 5)), rand(2, 15, 3, 4))


def test_masked_conv2d() -> None:
    where = torch.rand(1, 5, 4, dtype=torch.float64) - 0.5
    assert torch.autograd.gradcheck(
        lambda x, w, b: polyop.masked_conv2d(x, where, w, b, padding=1), (rand(1, 2, 5, 4), rand(3, 2, 3, 3), rand(3))
    )


def test_flash_deform_attn() -> None:
    shapes, starts = torch.tensor([[4, 5], [2, 3]]), torch.tensor([0, 20])
    value, rows = rand(2, 26, 2, 3), rand(2, 3, 2, 12, low=-0.2, high=1.2)
    assert torch.autograd.gradcheck(lambda v, r: polyop.flash_deform_attn(v, shapes, starts, r, 2), (value, rows))


@pytest.mark.parametrize("reduce", ["max", "mean", "sum"])
def test_dynamic_scatter(reduce: str) -> None:
    assert torch.autograd.gradcheck(lambda f: polyop.dynamic_scatter(f, COORS, reduce)[0], rand(6, 4))


def test_first_of_equal_points_gets_the_gradient() -> None:
    feats = torch.tensor([[1.0], [2], [1], [9], [1], [2]], requires_grad=True)
    polyop.dynamic_scatter(feats, COORS)[0].sum().backward()
    assert feats.grad.flatten().tolist() == [1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("reduce", ["sum", "mean", "mul", "div", "min", "max"])
def test_segment_csr(reduce: str) -> None:
    indptr = torch.tensor([1, 3, 3, 6])
    assert torch.autograd.gradcheck(lambda x: polyop.segment_csr(x, indptr, reduce), rand(7, 3, low=0.5, high=1.5))


@pytest.mark.parametrize("mode", ["max", "avg"])
@pytest.mark.parametrize("max_points", [128, 3])
def test_roiaware_pool3d(mode: str, max_points: int) -> None:
    torch.manual_seed(0)
    rois = torch.tensor([[0.5, 0.5, -0.5, 2, 2, 2, 0.3], [1, 1, 0, 1.5, 1, 2, -1], [0, 1, 0.5, 1, 2, 1, 2]]).double()
    points = rand(40, 3).detach() * 3 - 1
    pooled = polyop.roiaware_pool3d(rois, points, torch.ones(40, 1, dtype=torch.float64), (2, 1, 3), max_points, mode)
    assert pooled.any()
    assert torch.autograd.gradcheck(
        lambda f: polyop.roiaware_pool3d(rois, points, f, (2, 1, 3), max_points, mode), rand(40, 2, low=-1)
    )


# ---- every formula: wherever the tensors are, whichever gradients are requested -----------------------


def gradients(name: str, tensors: list[torch.Tensor], requested: Sequence[bool]) -> list[torch.Tensor | None]:
    leaves = [t.detach().requires_grad_(w) for t, w in zip(tensors, requested, strict=True)]
    out = call(name, leaves)
    out = out if isinstance(out, torch.Tensor) else out[0]
    assert out.requires_grad == any(requested)
    if out.requires_grad:
        out.backward(torch.ones_like(out))
    return [leaf.grad for leaf in leaves]


def test_every_formula_has_a_case() -> None:
    assert {operator_of(name) for name in CASES} == set(DIFFERENTIABLE)


@pytest.mark.parametrize("name", CASES)
def test_every_combination_of_requested_gradients(name: str) -> None:
    """Each combination gives the same gradients as all together, and none for inputs that did not request one or have
    none.
    """
    tensors = CASES[name][1]
    can = [t.is_floating_point() for t in tensors]
    everything = gradients(name, tensors, can)
    assert [g is not None for g in everything] == has_gradient(name)
    for requested in product(*([False, True] if c else [False] for c in can)):
        got = gradients(name, tensors, requested)
        for i, (all_, own) in enumerate(zip(everything, got, strict=True)):
            assert (own is not None) == (requested[i] and all_ is not None)
            if own is not None:
                torch.testing.assert_close(own, all_, rtol=0, atol=0)


# ---- gradient kernels ---------------------------------------------------------------------------------

KERNELS = [name for name in CASES if OPERATORS[operator_of(name)].gradient is not None]
TOLERANCES = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}
NAMES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}


def formula_gradients(name: str, tensors: list[torch.Tensor], grads: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Returns the formula's gradients of the differentiable inputs, in double precision."""
    operator = operator_of(name)
    leaves = [t.double() if t.is_floating_point() else t for t in tensors]
    chosen = [leaves[i].requires_grad_() for i in differentiable(name)]
    leaves += [None] * (len(OPERATORS[operator].inputs) - len(leaves))
    outputs = formulas.find(operator).formula(*leaves, **OPERATORS[operator].values(CASES[name][0]))
    outputs = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
    pairs = [(o, g.double()) for o, g in zip(outputs, grads, strict=True) if o.requires_grad]
    return list(torch.autograd.grad([o for o, _ in pairs], chosen, [g for _, g in pairs]))


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_equal_the_formula(name: str, dtype: torch.dtype) -> None:
    """Coordinates are rounded to the type first, so that both see the same."""
    torch.manual_seed(1)
    specs = OPERATORS[operator_of(name)].inputs
    takes = [
        t.is_floating_point() and NAMES[dtype] in specs[min(i, len(specs) - 1)].types
        for i, t in enumerate(CASES[name][1])
    ]
    tensors = [t.to(dtype) if taken else t for taken, t in zip(takes, CASES[name][1], strict=True)]
    leaves = [t.detach().requires_grad_(t.is_floating_point()) for t in tensors]
    outputs = call(name, leaves)
    outputs = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
    grads = [torch.rand_like(o) if o.is_floating_point() else torch.zeros_like(o) for o in outputs]
    torch.autograd.backward(
        [o for o in outputs if o.requires_grad], [g for o, g in zip(outputs, grads, strict=True) if o.requires_grad]
    )
    expected = formula_gradients(name, tensors, grads)
    for i, e in zip(differentiable(name), expected, strict=True):
        g = leaves[i].grad
        assert g.dtype == tensors[i].dtype
        scale = max(float(e.abs().max()), 1.0) if e.numel() else 1.0
        torch.testing.assert_close(g.double(), e, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype] * scale)


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives(name: str) -> None:
    specs = OPERATORS[operator_of(name)].inputs
    # An input that gives sizes, such as scales, has one type.
    sizes = [specs[min(i, len(specs) - 1)].value for i in range(len(CASES[name][1]))]
    tensors = [
        t.double() if t.is_floating_point() and not is_size else t
        for t, is_size in zip(CASES[name][1], sizes, strict=True)
    ]
    # The first column of boxes is a batch index, which has no neighbours.
    names = [spec.name for spec in specs]
    indices = [i for i in differentiable(name) if names[min(i, len(names) - 1)] != "rois"]

    def squares(*given: torch.Tensor) -> torch.Tensor:
        leaves = list(tensors)
        for i, leaf in zip(indices, given, strict=True):
            leaves[i] = leaf
        out = call(name, leaves)
        return (out if isinstance(out, torch.Tensor) else out[0]).square()

    leaves = [tensors[i].detach().requires_grad_() for i in indices]
    if any(leaf.numel() == 0 for leaf in leaves) or squares(*leaves).numel() == 0:
        return
    assert torch.autograd.gradgradcheck(squares, leaves, fast_mode=True, nondet_tol=1e-9)


def test_a_gradient_penalty_matches_torch() -> None:
    x = torch.rand(1, 2, 6, 6, requires_grad=True)
    grid = torch.rand(1, 4, 4, 2) * 2 - 1
    penalties = []
    for sample in (polyop.grid_sample, lambda a, g: torch.nn.functional.grid_sample(a, g, align_corners=False)):
        (grad,) = torch.autograd.grad(sample(x, grid).square().sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(grad.square().sum(), x)
        penalties.append(second)
    torch.testing.assert_close(*penalties)


@pytest.mark.parametrize("name", [name for name in CASES if name not in SIZED_BY_VALUES])
def test_on_meta(name: str) -> None:
    """Creates nothing on a device other than that of the inputs."""
    tensors = [t.to("meta") for t in CASES[name][1]]
    got = gradients(name, tensors, [t.is_floating_point() for t in tensors])
    for tensor, gradient, has in zip(tensors, got, has_gradient(name), strict=True):
        assert (gradient is not None) == has
        if gradient is not None:
            assert (gradient.shape, gradient.dtype, gradient.device) == (tensor.shape, tensor.dtype, tensor.device)


def test_a_network_learns() -> None:
    """A deformable convolution learns to shift an image by a pixel, which a plain 1x1 convolution cannot do."""
    x = torch.rand(4, 1, 8, 8)
    want = torch.nn.functional.pad(x, (0, 1))[..., 1:]
    offset = torch.full((1, 2, 1, 1), 0.3, requires_grad=True)
    weight = torch.ones(1, 1, 1, 1)
    optimizer = torch.optim.Adam([offset], lr=0.08)
    for _ in range(120):
        optimizer.zero_grad()
        loss = (polyop.deform_conv2d(x, offset.expand(4, 2, 8, 8), weight) - want).square().mean()
        loss.backward()
        optimizer.step()
    torch.testing.assert_close(offset.detach().flatten(), torch.tensor([0.0, 1.0]), atol=0.05, rtol=0)
