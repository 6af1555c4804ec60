"""polyop optimize: bicubic resizing by scales and to sizes of run time, in both exporters' graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from exported import EXPORTERS, nodes, optimized, write
from onnx import TensorProto, helper
from torch import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore")

NODE = "custom::DynamicTRTResize"
PATTERN = "bicubic resize"


class Enlarge(nn.Module):
    """To the size of another picture, as super-resolution to that of its target."""

    def forward(self, x: Tensor, like: Tensor) -> Tensor:
        return nn.functional.interpolate(x * 1.5, size=like.shape[2:], mode="bicubic", align_corners=False) + 1


def pictures(height: int, width: int, to: tuple[int, int]) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(height)
    return {"x": torch.rand(1, 3, height, width, generator=generator), "like": torch.zeros(1, 1, *to)}


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_sizes_of_run_time(exporter: str, tmp_path: Path) -> None:
    if exporter == "dynamo":
        free = {2: torch.export.Dim.AUTO, 3: torch.export.Dim.AUTO}
        dynamic = {"x": free, "like": free}
    else:
        dynamic = {"x": {2: "h", 3: "w"}, "like": {2: "h2", 3: "w2"}}
    # Ratios that no float is: extents times scales must not be rounded down to one pixel less.
    given = [pictures(12, 17, (20, 41)), pictures(49, 7, (50, 3)), pictures(13, 11, (99, 77))]
    before = write(Enlarge(), given[0], tmp_path / "before.onnx", exporter, dynamic)
    after, report = optimized(before, given)
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)[NODE] == 1


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
    assert nodes(after)[NODE] == 1


@pytest.mark.parametrize("attributes", [{"cubic_coeff_a": -0.5}, {"coordinate_transformation_mode": "align_corners"}])
def test_other_meanings_stay(attributes: dict[str, object], tmp_path: Path) -> None:
    _, report = optimized(resize(tmp_path / "before.onnx", **attributes), [scaled(2, 3)])
    (finding,) = report.findings
    assert not finding.replaced
    assert next(iter(attributes)) in finding.why
    assert np.isnan(finding.difference if finding.difference is not None else np.nan)  # it was not even compared
