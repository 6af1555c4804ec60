"""polyop optimize: instance normalisation written out, in both exporters' graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from exported import EXPORTERS, nodes, optimized, write
from torch import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore")

PATTERN = "instance normalisation"


class Written(nn.Module):
    """The ways in which people write it."""

    def __init__(self, way: str, over: tuple[int, ...] = (2, 3), affine: bool = True) -> None:
        super().__init__()
        self.way, self.over, self.affine = way, over, affine
        generator = torch.Generator().manual_seed(0)
        self.scale = nn.Parameter(torch.rand(6, generator=generator))
        self.shift = nn.Parameter(torch.rand(6, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        x = x * 1.5
        centred = x - x.mean(self.over, keepdim=True)
        if self.way == "variance":
            y = centred / torch.sqrt(x.var(self.over, unbiased=False, keepdim=True) + 1e-3)
        elif self.way == "square":
            y = centred * torch.rsqrt((centred * centred).mean(self.over, keepdim=True) + 1e-3)
        else:
            y = centred / torch.sqrt(centred.pow(2).mean(self.over, keepdim=True) + 1e-3)
        return y * self.scale[None, :, None, None] + self.shift.view(1, -1, 1, 1) if self.affine else y


def inputs(*shape: int) -> dict[str, Tensor]:
    return {"x": 3 + torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))}


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("module", [Written("variance"), Written("square"), Written("pow", affine=False)],
                         ids=["variance", "square", "pow, without scale and shift"])  # fmt: skip
def test_instance_norm(module: Written, exporter: str, tmp_path: Path) -> None:
    dynamic = {"x": {2: "h", 3: "w"}} if exporter == "torchscript" else None
    before = write(module, inputs(2, 6, 20, 24), tmp_path / "before.onnx", exporter, dynamic)
    sizes = [(2, 6, 20, 24), (2, 6, 9, 31)] if dynamic else [(2, 6, 20, 24)]
    after, report = optimized(before, [inputs(*size) for size in sizes])
    assert report.replaced[PATTERN] == 1, str(report)
    left = nodes(after)
    assert left["polyop::InstanceNormalization"] == 1
    assert left["ReduceMean"] + left["Sqrt"] == 0
    assert left["Mul"] == 1  # that before it: scale and shift are the node's


def test_other_dimensions_stay(tmp_path: Path) -> None:
    """A mean over channels is layer normalisation."""
    given = inputs(2, 6, 8, 8)
    before = write(Written("square", over=(1, 2, 3)), given, tmp_path / "before.onnx", "torchscript")
    _, report = optimized(before, [given])
    assert report.replaced[PATTERN] == 0
