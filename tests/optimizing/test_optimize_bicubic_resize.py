# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: bicubic resizing by scales and to sizes, in graphs of both exporters and in all of ONNX's modes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

import polyop
from polyop.formulas import floor_scale
from tests.support.exported import EXPORTERS, nodes, optimized, write

pytestmark = pytest.mark.filterwarnings("ignore")

BY_SCALES, BY_SIZES = "custom::DynamicTRTResize", "polyop::CubicResize"
PATTERN = "bicubic resize"


class Enlarge(nn.Module):
    """Resizes to the size of another image, as super-resolution does to that of its target."""

    def __init__(self, align_corners: bool) -> None:
        super().__init__()
        self.align_corners = align_corners

    def forward(self, x: Tensor, like: Tensor) -> Tensor:
        size = like.shape[2:]
        return nn.functional.interpolate(x * 1.5, size=size, mode="bicubic", align_corners=self.align_corners) + 1


def images(height: int, width: int, to: tuple[int, int]) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(height)
    return {"x": torch.rand(1, 3, height, width, generator=generator), "like": torch.zeros(1, 1, *to)}


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("exporter", EXPORTERS)
def test_run_time_sizes(exporter: str, align_corners: bool, tmp_path: Path) -> None:
    if exporter == "dynamo":
        free = {2: torch.export.Dim.AUTO, 3: torch.export.Dim.AUTO}
        dynamic = {"x": free, "like": free}
    else:
        dynamic = {"x": {2: "h", 3: "w"}, "like": {2: "h2", 3: "w2"}}
    # Ratios that no float represents: extents times scales must not be rounded down to one pixel less.
    given = [images(12, 17, (20, 41)), images(49, 7, (50, 3)), images(13, 11, (99, 77))]
    before = write(Enlarge(align_corners), given[0], tmp_path / "before.onnx", exporter, dynamic)
    after, report = optimized(before, given)
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[BY_SIZES] == 1


def resize(path: Path, **attributes: object) -> Path:
    """Writes Resize(x, scales) with the scales as an input, as in mmdeploy's SRCNN."""
    node = helper.make_node("Resize", ["x", "", "factor"], ["y"], mode="cubic", **attributes)
    x, factor, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", ["n", "c", "h", "w"]), ("factor", [4]), ("y", None))
    )
    graph = helper.make_graph([node], "g", [x, factor], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def scaled(vertical: float, horizontal: float) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {"x": torch.rand(2, 3, 14, 9, generator=generator), "factor": torch.tensor([1.0, 1.0, vertical, horizontal])}


def test_run_time_scales(tmp_path: Path) -> None:
    before = resize(tmp_path / "before.onnx", cubic_coeff_a=-0.75)
    after, report = optimized(before, [scaled(2, 3), scaled(0.4, 1.7), scaled(1, 2.5)])
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[BY_SCALES] == 1


def test_sizes_are_those_of_onnxruntime(tmp_path: Path) -> None:
    """ONNX Runtime's size is the floor of a float32 product: 336 for 480 * 0.7, whose exact product is less."""
    before = resize(tmp_path / "before.onnx", cubic_coeff_a=-0.75)
    after, report = optimized(before, [scaled(2, 3)])
    assert nodes(after)[BY_SCALES] == 1, str(report)
    expected, got = (polyop.session(path) for path in (before, after))
    for tenths in range(2, 40, 3):
        for extent in range(5, 800, 5):
            x = np.zeros((1, 1, extent, 2), np.float32)
            feeds = {"x": x, "factor": np.array([1, 1, tenths / 10, 1], np.float32)}
            sizes = [session.run(None, feeds)[0].shape for session in (expected, got)]
            assert sizes[0] == sizes[1], (extent, tenths / 10)
            assert floor_scale(extent, tenths / 10) == sizes[0][2]


def image_resized(path: Path, opset: int, by: str, numbers: list[float], attributes: dict[str, object]) -> Path:
    """Writes Resize(x) by constant scales or to constant sizes."""
    array = np.array(numbers, np.float32 if by == "scales" else np.int64)
    none = "roi" if opset < 13 else ""  # which is empty: inputs could not be omitted yet
    given = ["x", "roi", by] if by == "scales" else ["x", "roi", none, by]
    node = helper.make_node("Resize", given, ["y"], mode="cubic", **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "c", "h", "w"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weights = [numpy_helper.from_array(array, by), numpy_helper.from_array(np.zeros(0, np.float32), "roi")]
    graph = helper.make_graph([node], "g", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


def given_images() -> list[dict[str, Tensor]]:
    whole = scaled(1, 1)["x"]
    return [{"x": whole}, {"x": whole[:, :, :9, :7].contiguous()}]


@pytest.mark.parametrize("opset", [11, 19])
@pytest.mark.parametrize("by", ["scales", "sizes"])
@pytest.mark.parametrize("mode", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"])
def test_every_coordinate_mode(mode: str, by: str, opset: int, tmp_path: Path) -> None:
    numbers = [1, 1, 2, 3] if by == "scales" else [2, 3, 30, 1]
    for more in ({}, {"cubic_coeff_a": -0.5, "exclude_outside": 1}):
        attributes = {"coordinate_transformation_mode": mode, **more}
        before = image_resized(tmp_path / "before.onnx", opset, by, numbers, attributes)
        after, report = optimized(before, given_images())
        assert dict(report.replaced) == {PATTERN: 1}, str(report)
        one_node = by == "scales" and mode == "half_pixel" and not more
        assert nodes(after)[BY_SCALES if one_node else BY_SIZES] == 1


@pytest.mark.parametrize(("by", "numbers", "axes"), [("scales", [3, 2], [3, 2]), ("sizes", [21, 30], [-2, -1])])
def test_axes(by: str, numbers: list[float], axes: list[int], tmp_path: Path) -> None:
    before = image_resized(tmp_path / "before.onnx", 18, by, numbers, {"axes": axes})
    after, report = optimized(before, given_images())
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[BY_SIZES] == 1


def test_align_corners_by_rounded_scales(tmp_path: Path) -> None:
    before = resize(tmp_path / "before.onnx", coordinate_transformation_mode="align_corners")
    after, report = optimized(before, [scaled(2, 3), scaled(0.4, 1.7), scaled(1, 2.55)])
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[BY_SIZES] == 1


@pytest.mark.parametrize(
    ("by", "numbers", "attributes", "said"),
    [
        ("sizes", [2, 3, 30, 11], {"antialias": 1}, "antialias 1"),
        ("sizes", [2, 3, 30, 11], {"cubic_coeff_a": -2.0}, "cubic_coeff_a -2"),
        ("sizes", [2, 3, 30, 11], {"keep_aspect_ratio_policy": "not_larger"}, "keep_aspect_ratio_policy not_larger"),
        ("scales", [1, 1, 1.5, 2], {"coordinate_transformation_mode": "asymmetric"}, "rounded sizes"),
        ("scales", [1.5], {"axes": [3]}, "expected axes of rows and columns"),
    ],
)
def test_other_attributes_are_kept(
    by: str, numbers: list[float], attributes: dict[str, object], said: str, tmp_path: Path
) -> None:
    before = image_resized(tmp_path / "before.onnx", 18, by, numbers, attributes)
    _, report = optimized(before, given_images()[:1])
    (finding,) = report.findings
    assert not finding.replaced
    assert said in finding.why
    assert finding.difference is None  # it was not even compared
