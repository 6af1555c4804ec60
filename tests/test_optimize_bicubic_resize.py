"""polyop optimize: bicubic resizing by scales and to sizes, in both exporters' graphs and by each of ONNX's rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from exported import EXPORTERS, nodes, optimized, write
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore")

BY_SCALES, BY_SIZES = "custom::DynamicTRTResize", "polyop::CubicResize"
PATTERN = "bicubic resize"


class Enlarge(nn.Module):
    """To the size of another picture, as super-resolution to that of its target."""

    def __init__(self, align_corners: bool) -> None:
        super().__init__()
        self.align_corners = align_corners

    def forward(self, x: Tensor, like: Tensor) -> Tensor:
        size = like.shape[2:]
        return nn.functional.interpolate(x * 1.5, size=size, mode="bicubic", align_corners=self.align_corners) + 1


def pictures(height: int, width: int, to: tuple[int, int]) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(height)
    return {"x": torch.rand(1, 3, height, width, generator=generator), "like": torch.zeros(1, 1, *to)}


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("exporter", EXPORTERS)
def test_sizes_of_run_time(exporter: str, align_corners: bool, tmp_path: Path) -> None:
    if exporter == "dynamo":
        free = {2: torch.export.Dim.AUTO, 3: torch.export.Dim.AUTO}
        dynamic = {"x": free, "like": free}
    else:
        dynamic = {"x": {2: "h", 3: "w"}, "like": {2: "h2", 3: "w2"}}
    # Ratios that no float is: extents times scales must not be rounded down to one pixel less.
    given = [pictures(12, 17, (20, 41)), pictures(49, 7, (50, 3)), pictures(13, 11, (99, 77))]
    before = write(Enlarge(align_corners), given[0], tmp_path / "before.onnx", exporter, dynamic)
    after, report = optimized(before, given)
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[BY_SIZES] == 1


def resize(path: Path, **attributes: object) -> Path:
    """Resize(x, scales), the scales an input, as in mmdeploy's SRCNN."""
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


def test_scales_of_run_time(tmp_path: Path) -> None:
    before = resize(tmp_path / "before.onnx", cubic_coeff_a=-0.75)
    after, report = optimized(before, [scaled(2, 3), scaled(0.4, 1.7), scaled(1, 2.5)])
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[BY_SCALES] == 1


def picture_resized(path: Path, opset: int, by: str, numbers: list[float], attributes: dict[str, object]) -> Path:
    """Resize(x) by constant scales or to constant sizes."""
    array = np.array(numbers, np.float32 if by == "scales" else np.int64)
    none = "roi" if opset < 13 else ""  # which has no elements: inputs could not be left out yet
    given = ["x", "roi", by] if by == "scales" else ["x", "roi", none, by]
    node = helper.make_node("Resize", given, ["y"], mode="cubic", **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "c", "h", "w"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weights = [numpy_helper.from_array(array, by), numpy_helper.from_array(np.zeros(0, np.float32), "roi")]
    graph = helper.make_graph([node], "g", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


def given_pictures() -> list[dict[str, Tensor]]:
    whole = scaled(1, 1)["x"]
    return [{"x": whole}, {"x": whole[:, :, :9, :7].contiguous()}]


@pytest.mark.parametrize("opset", [11, 19])
@pytest.mark.parametrize("by", ["scales", "sizes"])
@pytest.mark.parametrize("mode", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"])
def test_every_rule(mode: str, by: str, opset: int, tmp_path: Path) -> None:
    numbers = [1, 1, 2, 3] if by == "scales" else [2, 3, 30, 1]
    for more in ({}, {"cubic_coeff_a": -0.5, "exclude_outside": 1}):
        attributes = {"coordinate_transformation_mode": mode, **more}
        before = picture_resized(tmp_path / "before.onnx", opset, by, numbers, attributes)
        after, report = optimized(before, given_pictures())
        assert dict(report.replaced) == {PATTERN: 1}, str(report)
        one_node = by == "scales" and mode == "half_pixel" and not more
        assert nodes(after)[BY_SCALES if one_node else BY_SIZES] == 1


@pytest.mark.parametrize(("by", "numbers", "axes"), [("scales", [3, 2], [3, 2]), ("sizes", [21, 30], [-2, -1])])
def test_axes(by: str, numbers: list[float], axes: list[int], tmp_path: Path) -> None:
    before = picture_resized(tmp_path / "before.onnx", 18, by, numbers, {"axes": axes})
    after, report = optimized(before, given_pictures())
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[BY_SIZES] == 1


def test_corners_by_scales_that_are_rounded(tmp_path: Path) -> None:
    before = resize(tmp_path / "before.onnx", coordinate_transformation_mode="align_corners")
    after, report = optimized(before, [scaled(2, 3), scaled(0.4, 1.7), scaled(1, 2.55)])
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[BY_SIZES] == 1


@pytest.mark.parametrize(
    ("by", "numbers", "attributes", "said"),
    [
        ("sizes", [2, 3, 30, 11], {"antialias": 1}, "antialias 1"),
        ("sizes", [2, 3, 30, 11], {"cubic_coeff_a": -2.0}, "cubic_coeff_a -2.0"),
        ("sizes", [2, 3, 30, 11], {"keep_aspect_ratio_policy": "not_larger"}, "keep_aspect_ratio_policy not_larger"),
        ("scales", [1, 1, 1.5, 2], {"coordinate_transformation_mode": "asymmetric"}, "extents that are rounded"),
        ("scales", [1.5], {"axes": [3]}, "its axes are not rows and columns"),
    ],
)
def test_other_meanings_stay(
    by: str, numbers: list[float], attributes: dict[str, object], said: str, tmp_path: Path
) -> None:
    before = picture_resized(tmp_path / "before.onnx", 18, by, numbers, attributes)
    _, report = optimized(before, given_pictures()[:1])
    (finding,) = report.findings
    assert not finding.replaced
    assert said in finding.why
    assert finding.difference is None  # it was not even compared
