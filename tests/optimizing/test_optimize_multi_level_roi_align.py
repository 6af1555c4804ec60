# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: torchvision's MultiScaleRoIAlign as it is traced, in graphs of both exporters."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from onnxscript import opset18 as op
from torch import Tensor

import polyop
from tests.support.exported import EXPORTERS, nodes, optimized, write

pytestmark = pytest.mark.filterwarnings("ignore")

NODE = "mmdeploy::MMCVMultiLevelRoiAlign"
PATTERN = "multi-level RoIAlign"


@torch.library.custom_op("optimize_test::roi_align", mutates_args=())
def roi_align(x: Tensor, rois: Tensor, scale: float, size: int, ratio: int, aligned: bool) -> Tensor:
    """Replaces torchvision.ops.roi_align, which torchvision's symbolic function exports as ONNX's RoiAlign."""
    return polyop.roi_align(x, rois, (size, size), scale, ratio, aligned=aligned)


@roi_align.register_fake
def _(x: Tensor, rois: Tensor, scale: float, size: int, ratio: int, aligned: bool) -> Tensor:
    return x.new_empty(rois.shape[0], x.shape[1], size, size)


def traced(g, x, rois, scale, size, ratio, aligned):
    """Returns the TorchScript exporter's node."""
    scale, size, ratio, aligned = (
        torch.onnx.symbolic_helper._node_get(v.node(), "value") for v in (scale, size, ratio, aligned)
    )
    column = g.op("Constant", value_t=torch.tensor([0]))
    corners = g.op("Constant", value_t=torch.tensor([1, 2, 3, 4]))
    images = g.op("Squeeze", g.op("Gather", rois, column, axis_i=1), g.op("Constant", value_t=torch.tensor([1])))
    return g.op(
        "RoiAlign", x, g.op("Gather", rois, corners, axis_i=1), g.op("Cast", images, to_i=7), spatial_scale_f=scale,
        output_height_i=size, output_width_i=size, sampling_ratio_i=ratio,
        coordinate_transformation_mode_s="half_pixel" if aligned else "output_half_pixel",
    )  # fmt: skip


torch.onnx.register_custom_op_symbolic("optimize_test::roi_align", traced, 16)


def translated(x, rois, scale, size, ratio, aligned):
    """Returns the dynamo exporter's node."""
    images = op.Cast(op.Squeeze(op.Gather(rois, op.Constant(value_ints=[0]), axis=1), [1]), to=7)
    mode = "half_pixel" if aligned else "output_half_pixel"
    corners = op.Gather(rois, op.Constant(value_ints=[1, 2, 3, 4]), axis=1)
    return op.RoiAlign(
        x, corners, images, spatial_scale=scale, output_height=size, output_width=size, sampling_ratio=ratio,
        coordinate_transformation_mode=mode,
    )  # fmt: skip


class MultiScale(torch.nn.Module):
    """Pools the boxes of each image from the level that fits them and merges the levels with scatters, as tracing
    requires.
    """

    def __init__(
        self, first: int = 2, levels: int = 3, ratio: int = 2, aligned: bool = False, moved: float = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.levels, self.ratio, self.aligned, self.moved = first, levels, ratio, aligned, moved
        self.dtype = dtype

    def choose(self, images: list[Tensor]) -> Tensor:
        wide = [b.float() for b in images]  # as torchvision's box_area does
        areas = [(b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) for b in wide]
        sides = torch.sqrt(torch.cat(areas))
        level = torch.floor(4 + torch.log2(sides / 224) + torch.tensor(1e-6 + self.moved))
        return level.clamp(self.first, self.first + self.levels - 1).to(torch.int64) - self.first

    def forward(self, boxes: Tensor, others: Tensor, *maps: Tensor) -> Tensor:
        images = [boxes * 1.0, others * 1.0]
        ids = [torch.full_like(b[:, :1], i) for i, b in enumerate(images)]
        rois = torch.cat([torch.cat(ids, 0), torch.cat(images, 0)], 1)
        chosen = self.choose(images)
        pooled, positions = [], []
        for level, x in enumerate(maps):
            position = torch.where(chosen == level)[0]
            pooled.append(
                roi_align(x, rois[position], 0.5 ** (self.first + level), 7, self.ratio, self.aligned).to(x.dtype)
            )
            positions.append(position)
        result = torch.zeros((chosen.size(0), *pooled[0].shape[1:]), dtype=self.dtype)
        for position, part in zip(positions, pooled, strict=True):
            index = position.view(-1, 1, 1, 1).expand(position.size(0), part.size(1), part.size(2), part.size(3))
            result = result.scatter(0, index, part)
        return result


def inputs(module: MultiScale, seed: int, count: int = 40, size: int = 512) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)

    def boxes(number: int) -> Tensor:
        corner = torch.rand(number, 2, generator=generator) * size / 2
        sides = 2 ** (4 + 5 * torch.rand(number, 2, generator=generator))
        sides[0] = 112.0  # exactly at the limit of a level
        return torch.cat([corner, corner + sides], 1)

    strides = [2 ** (module.first + level) for level in range(module.levels)]
    maps = {f"x{s}": torch.randn(2, 8, size // s, size // s, generator=generator) for s in strides}
    tensors = {"boxes": boxes(count), "others": boxes(count // 2), **maps}
    return {name: tensor.to(module.dtype) for name, tensor in tensors.items()}


def export(module: MultiScale, path: Path, exporter: str) -> Path:
    given = inputs(module, 0)
    rows = {"boxes": {0: "boxes"}, "others": {0: "others"}}
    if exporter == "torchscript":
        return write(module, given, path, exporter, rows)
    any_ = {0: torch.export.Dim.AUTO}
    dynamic = {"boxes": any_, "others": any_, "maps": ({},) * module.levels}
    table = {torch.ops.optimize_test.roi_align.default: translated}
    return write(module, given, path, exporter, dynamic, custom_translation_table=table)


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize(
    "module",
    [MultiScale(), MultiScale(first=3, levels=4, ratio=0, aligned=True), MultiScale(dtype=torch.float16)],
    ids=["as in Faster R-CNN", "other levels, adaptive, aligned", "float16"],
)
def test_multi_level_roi_align(module: MultiScale, exporter: str, tmp_path: Path) -> None:
    before = export(module, tmp_path / "before.onnx", exporter)
    assert nodes(before)["RoiAlign"] == module.levels
    given = [inputs(module, 0), inputs(module, 1, count=300), inputs(module, 2, count=2)]
    after, report = optimized(before, given, 1e-4 if module.dtype == torch.float32 else 2e-3)
    assert report.replaced[PATTERN] == 1, str(report)
    left = nodes(after)
    assert left[NODE] == 1
    assert left["RoiAlign"] + left["polyop::RoiAlign"] + left["ScatterElements"] + left["NonZero"] == 0


def test_few_boxes_of_large_maps_are_kept(tmp_path: Path) -> None:
    """The kernel copies the maps, which takes longer than pooling three boxes."""
    module = MultiScale()
    before = export(module, tmp_path / "before.onnx", "torchscript")
    _, report = optimized(before, [inputs(module, 0, count=2)], all=False)
    (finding,) = [f for f in report.findings if f.pattern == PATTERN]
    assert finding.why == "too small to gain; --all replaces it"
    _, report = optimized(before, [inputs(module, 0, count=300)], all=False)
    assert report.replaced[PATTERN] == 1, str(report)


def test_another_choice_of_levels_is_kept(tmp_path: Path) -> None:
    """Boxes slightly smaller than torchvision's limit already belong to the next level."""
    module = MultiScale(moved=0.1)
    before = export(module, tmp_path / "before.onnx", "torchscript")
    after, report = optimized(before, [inputs(module, 0)])
    (finding,) = [f for f in report.findings if f.pattern == PATTERN]
    assert not finding.replaced
    assert "differ" in finding.why
    assert nodes(after)[NODE] == 0


def test_a_model_verified_without_boxes_is_kept(tmp_path: Path) -> None:
    module = MultiScale()
    before = export(module, tmp_path / "before.onnx", "torchscript")
    given = inputs(module, 0)
    given |= {name: given[name][:0] for name in ("boxes", "others")}
    _, report = optimized(before, [given, inputs(module, 0)])
    (finding,) = [f for f in report.findings if f.pattern == PATTERN]
    assert "no box" in finding.why
