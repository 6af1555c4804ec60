"""polyop optimize: instance normalisation written out, in graphs of both exporters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.exported import EXPORTERS, nodes, optimized, write
from tests.support.optimizable import Written, instance_norm_inputs

pytestmark = pytest.mark.filterwarnings("ignore")

PATTERN = "instance normalisation"


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("module", [Written("variance"), Written("square"), Written("pow", affine=False)],
                         ids=["variance", "square", "pow, without scale and shift"])  # fmt: skip
def test_instance_norm(module: Written, exporter: str, tmp_path: Path) -> None:
    dynamic = {"x": {2: "h", 3: "w"}} if exporter == "torchscript" else None
    before = write(module, instance_norm_inputs(2, 6, 20, 24), tmp_path / "before.onnx", exporter, dynamic)
    sizes = [(2, 6, 20, 24), (2, 6, 9, 31)] if dynamic else [(2, 6, 20, 24)]
    after, report = optimized(before, [instance_norm_inputs(*size) for size in sizes])
    assert report.replaced[PATTERN] == 1, str(report)
    left = nodes(after)
    assert left["polyop::InstanceNormalization"] == 1
    assert left["ReduceMean"] + left["Sqrt"] == 0
    assert left["Mul"] == 1  # the one before it: scale and shift are inputs of the node


def test_other_dimensions_are_kept(tmp_path: Path) -> None:
    """A mean over channels is layer normalisation."""
    given = instance_norm_inputs(2, 6, 8, 8)
    before = write(Written("square", over=(1, 2, 3)), given, tmp_path / "before.onnx", "torchscript")
    _, report = optimized(before, [given])
    assert report.replaced[PATTERN] == 0
