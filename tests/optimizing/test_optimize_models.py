# SPDX-License-Identifier: Apache-2.0
"""polyop optimize on third-party models: small detectors and segmenters of transformers and torchvision with random
weights.

Their own exporters write them. Every result is compared with and without polyop's library.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import polyop
from polyop.optimizing import optimize
from tests.support.older_onnxruntimes import OLD
from tests.support.processes import ROOT, environment
from tests.support.tensorrt_rtx import HAS_PLUGINS, NO_ENGINE, build_all

ATTENTION = "deformable attention"
# The number of layers of deformable attention in each model. All of them must be found.
TRANSFORMERS = {
    "Deformable DETR": 4,
    "RT-DETR": 2,
    "RT-DETRv2": 2,
    "D-FINE": 2,
    "DEIMv2": 2,
    "Mask2Former": 2,
    "OneFormer": 2,
    "Grounding DINO": 4,
    "SegFormer": 0,
    "Swin": 0,
}
# Models whose TorchScript export ONNX Runtime does not run, because their grids are double.
DOUBLE_GRIDS = {"Deformable DETR", "Mask2Former", "OneFormer"}
# Models that the TorchScript exporter does not write: it lacks aten::isin, which finds special tokens.
NOT_WRITTEN = {"Grounding DINO"}
QUICK = {("D-FINE", "torchscript")}

RUN_ELSEWHERE = """
import json, sys
import numpy as np
import onnxruntime as ort
model, feeds, out, library = sys.argv[1:]
options = ort.SessionOptions()
options.log_severity_level = 4
if library:
    options.register_custom_ops_library(library)
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
np.savez(out, *session.run(None, dict(np.load(feeds))))
print(json.dumps(ort.__version__))
"""


def exported(program: str, name: str, path: Path, *more: str) -> Path:
    subprocess.run([sys.executable, str(ROOT / "bench" / program), name, str(path), *more], check=True)
    return path


def run_in_oldest(model: Path, feeds: dict[str, np.ndarray], folder: Path, library: str) -> list[np.ndarray]:
    """Runs the model in the oldest supported ONNX Runtime, with the library, or without one ("").

    That release accepts IR version 9. Exporters write 10, and nothing in these models needs more than 8.
    """
    proto = onnx.load(model, load_external_data=False)
    proto.ir_version = min(proto.ir_version, 9)
    model = model.with_name("of_ir_9.onnx")
    onnx.save(proto, model)
    np.savez(folder / "feeds.npz", **feeds)
    command = [sys.executable, "-c", RUN_ELSEWHERE, model, folder / "feeds.npz", folder / "out.npz", library]
    said = subprocess.run(
        list(map(str, command)), env=environment(OLD[0]), check=True, capture_output=True, text=True
    ).stdout
    assert json.loads(said) == OLD[0].name.partition("-")[2]
    with np.load(folder / "out.npz") as saved:
        return [saved[f"arr_{i}"] for i in range(len(saved.files))]


def assert_runs_in_oldest(before: Path, after: Path, folder: Path) -> None:
    """Checks that the original and the optimised file, with and without the library, give the same results there."""
    feeds = {}
    for i in onnx.load(before, load_external_data=False).graph.input:
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        is_float = i.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        feeds[i.name] = np.random.default_rng(0).random(shape, np.float32) if is_float else np.ones(shape, np.int64)
    want = run_in_oldest(before, feeds, folder, "")
    for library in ("", polyop.get_onnxruntime_op_path()):
        for w, g in zip(want, run_in_oldest(after, feeds, folder, library), strict=True):
            largest = np.abs(w[np.isfinite(w)]).max(initial=1)  # scores of masked tokens are -inf
            np.testing.assert_allclose(g, w, rtol=1e-3, atol=1e-3 * largest)


CASES = [
    pytest.param(name, exporter, marks=() if (name, exporter) in QUICK else pytest.mark.slow)
    for name in TRANSFORMERS
    for exporter in ("dynamo", "torchscript")
    if exporter == "dynamo" or name not in DOUBLE_GRIDS | NOT_WRITTEN
]


@pytest.mark.parametrize(("name", "exporter"), CASES)
def test_transformers(name: str, exporter: str, tmp_path: Path) -> None:
    before = exported("transformers_models.py", name, tmp_path / "before.onnx", "--exporter", exporter)
    after = tmp_path / "after.onnx"
    report = optimize(before, after, threads=2)
    assert report.replaced[ATTENTION] == TRANSFORMERS[name], str(report)
    if not report.findings:
        assert after.read_bytes() == before.read_bytes()
        return
    assert set(report.differences) == {"with polyop", "without polyop"}
    assert max(report.differences.values()) < 1e-2
    assert_runs_in_oldest(before, after, tmp_path)


FOR_TENSORRT = {**{name: count for name, count in TRANSFORMERS.items() if count}, "RF-DETR": 2}
NOT_BUILT = {"OneFormer"}  # TensorRT-RTX has no NonZero


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "D-FINE" else pytest.mark.slow) for n in FOR_TENSORRT]
)
def test_for_tensorrt(name: str, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    before, after = exported("transformers_models.py", name, tmp_path / "before.onnx"), tmp_path / "after.onnx"
    report = optimize(before, after, target="tensorrt", threads=2)
    assert report.replaced[ATTENTION] == FOR_TENSORRT[name], str(report)
    assert max(report.differences.values()) < 1e-4
    model = onnx.load(after)
    assert "GridSample" not in {node.op_type for node in model.graph.node}
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    (answer,) = build_all([{"model": model.SerializeToString()}])
    assert ("error" in answer) == (name in NOT_BUILT), answer


@pytest.mark.slow
@pytest.mark.parametrize(("name", "more"), [("Faster R-CNN", {}), ("Mask R-CNN", {"mask pasting": 1})])
def test_torchvision(name: str, more: dict[str, int], tmp_path: Path) -> None:
    """Every head pools from all levels; NMS is in an If."""
    before, after = exported("torchvision_models.py", name, tmp_path / "before.onnx"), tmp_path / "after.onnx"
    report = optimize(before, after, all=True, threads=2)
    heads = 1 + len(more)
    assert dict(report.replaced) == {"multi-level RoIAlign": heads, "NonMaxSuppression": 2, **more}, str(report)
    assert set(report.differences) == {"with polyop", "without polyop"}
    assert_runs_in_oldest(before, after, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DOUBLE_GRIDS))
def test_reports_the_runtimes_error(name: str, tmp_path: Path) -> None:
    """The error contains ONNX Runtime's message."""
    before = exported("transformers_models.py", name, tmp_path / "before.onnx", "--exporter", "torchscript")
    with pytest.raises(polyop.OptimizeError, match=r"ONNX Runtime cannot run .*before.onnx: .*GridSample"):
        optimize(before)
