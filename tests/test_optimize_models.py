"""polyop optimize on models that no one here wrote: transformers' detectors and segmenters, torchvision's detectors, of
random weights and small. Their own exporters write them; every result is compared with and without polyop's library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import polyop
from polyop.optimizing import optimize

ROOT = Path(__file__).resolve().parent.parent
OLD = sorted(ROOT.glob(".deps/onnxruntime-1.*"), key=lambda p: [int(n) for n in p.name.split("-")[1].split(".")])

ATTENTION = "deformable attention"
# By model: layers of deformable attention, of which none may be missed.
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
# Whose TorchScript export ONNX Runtime does not run: the grids are double there.
DOUBLE_GRIDS = {"Deformable DETR", "Mask2Former", "OneFormer"}
# Which TorchScript's exporter does not write: it lacks aten::isin, by which special tokens are found.
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
    """In the oldest ONNX Runtime at hand, with that library or with none (""). It takes files of IR version 9, exporters
    write 10, and nothing in these needs more than 8."""
    proto = onnx.load(model, load_external_data=False)
    proto.ir_version = min(proto.ir_version, 9)
    model = model.with_name("of_ir_9.onnx")
    onnx.save(proto, model)
    np.savez(folder / "feeds.npz", **feeds)
    command = [sys.executable, "-c", RUN_ELSEWHERE, model, folder / "feeds.npz", folder / "out.npz", library]
    environment = {**os.environ, "PYTHONPATH": str(OLD[0])}
    said = subprocess.run(list(map(str, command)), env=environment, check=True, capture_output=True, text=True).stdout
    assert json.loads(said) == OLD[0].name.partition("-")[2]
    with np.load(folder / "out.npz") as saved:
        return [saved[f"arr_{i}"] for i in range(len(saved.files))]


def assert_runs_in_oldest(before: Path, after: Path, folder: Path) -> None:
    """The original, and the optimised file with the library and without, give the same there."""
    feeds = {}
    for i in onnx.load(before, load_external_data=False).graph.input:
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        is_float = i.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        feeds[i.name] = np.random.default_rng(0).random(shape, np.float32) if is_float else np.ones(shape, np.int64)
    want = run_in_oldest(before, feeds, folder, "")
    for library in ("", polyop.get_onnxruntime_op_path()):
        for w, g in zip(want, run_in_oldest(after, feeds, folder, library), strict=True):
            largest = np.abs(w[np.isfinite(w)]).max(initial=1)  # tokens that are masked have scores of -inf
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


@pytest.mark.slow
@pytest.mark.parametrize(("name", "more"), [("Faster R-CNN", {}), ("Mask R-CNN", {"mask pasting": 1})])
def test_torchvision(name: str, more: dict[str, int], tmp_path: Path) -> None:
    """Pooling from all levels for each head; NMS lies in an If."""
    before, after = exported("torchvision_models.py", name, tmp_path / "before.onnx"), tmp_path / "after.onnx"
    report = optimize(before, after, all=True, threads=2)
    heads = 1 + len(more)
    assert dict(report.replaced) == {"multi-level RoIAlign": heads, "NonMaxSuppression": 2, **more}, str(report)
    assert set(report.differences) == {"with polyop", "without polyop"}
    assert_runs_in_oldest(before, after, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DOUBLE_GRIDS))
def test_exports_that_no_runtime_takes(name: str, tmp_path: Path) -> None:
    """What ONNX Runtime says of them is handed on."""
    before = exported("transformers_models.py", name, tmp_path / "before.onnx", "--exporter", "torchscript")
    with pytest.raises(polyop.OptimizeError, match=r"ONNX Runtime cannot run .*before.onnx: .*GridSample"):
        optimize(before)
