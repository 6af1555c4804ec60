# SPDX-License-Identifier: Apache-2.0
"""Exports models of mmdet and mmdet3d and runs the files on inputs other than the traced ones; optimizes one for
TensorRT; runs the documentation page.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from torch import Tensor, nn

import polyop
from polyop.compat.mmdet import Detector, Network, export
from polyop.optimizing import optimize
from tests.support.openmmlab import FOLDER, build, models_of
from tests.support.processes import ROOT, environment
from tests.support.tensorrt_rtx import HAS_PLUGINS, NO_ENGINE, build_all

SMALL, LARGER = (128, 160), (256, 320)
FEW = {"model.num_queries": 30}  # with hundreds, some scores would be so close that rounding decides their order


class Case(NamedTuple):
    kind: type[Network]
    nodes: list[str]  # nodes of polyop in the file
    size: tuple[int, int] = SMALL
    changes: dict[str, Any] | None = None
    number: int = 3  # of images; in an empty image all positions have the same score


# Whole detectors where random weights give a stable order of detections, otherwise networks, whose results have no
# order.
MODELS = {
    "faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py": Case(Detector, ["MMCVMultiLevelRoiAlign", "NonMaxSuppression"]),
    "dcnv2/faster-rcnn_r50-mdconv-c3-c5_fpn_1x_coco.py": Case(Detector, ["MMCVModulatedDeformConv2d"]),
    "retinanet/retinanet_r50_fpn_1x_coco.py": Case(Detector, ["NonMaxSuppression"], number=2),
    "reppoints/reppoints-moment_r50_fpn_1x_coco.py": Case(Network, ["MMCVDeformConv2d"]),
    "deformable_detr/deformable-detr_r50_16xb2-50e_coco.py": Case(Network, ["MMCVMultiScaleDeformableAttention"]),
    "dino/dino-4scale_r50_8xb2-12e_coco.py": Case(Network, ["MMCVMultiScaleDeformableAttention"], LARGER, FEW),
    "mask2former/mask2former_r50_8xb2-lsj-50e_coco.py": Case(Network, ["MMCVMultiScaleDeformableAttention"]),
}


@pytest.fixture(scope="module", autouse=True)
def _mmdet() -> Iterator[None]:
    with models_of("mmdet"):
        yield


def decided(name: str, changes: dict[str, Any] | None) -> nn.Module:
    """Changes random weights so that they distinguish classes."""
    model = build(name, changes).eval()
    for parameter, weights in model.named_parameters():
        if parameter.endswith(("fc_cls.weight", "cls_branches.6.weight")):
            weights.data *= 20
    return model


def images(size: tuple[int, int]) -> Iterator[Tensor]:
    """Yields an image to trace, one with more contrast, and an empty one."""
    torch.manual_seed(1)
    yield torch.rand(1, 3, *size)
    yield torch.rand(1, 3, *size) * 2 - 1
    yield torch.zeros(1, 3, *size)


def session_of(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def agree(session: ort.InferenceSession, network: nn.Module, **inputs: Tensor) -> tuple[Tensor, ...]:
    """Checks that the network and the file give the same results, and returns them."""
    with torch.no_grad():
        want = network(*inputs.values())
    for got, expected in zip(session.run(None, {n: t.numpy() for n, t in inputs.items()}), want, strict=True):
        np.testing.assert_allclose(got, expected.numpy(), rtol=1e-3, atol=1e-3)
    return want


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_file_equals_the_model(name: str, tmp_path: Path) -> None:
    case = MODELS[name]
    network = case.kind(decided(name, case.changes), case.size)
    report = export(network, next(images(case.size)), tmp_path / "model.onnx", verbose=False)
    assert {n.split("::")[1] for n in report.nodes if "::" in n} >= set(case.nodes)
    session = session_of(tmp_path / "model.onnx")
    counts = [len(agree(session, network, images=image)[0]) for image in islice(images(case.size), case.number)]
    assert max(counts) > 0


def pillars(count: int, cells: int, points: int, features: int) -> dict[str, Tensor]:
    chosen = torch.randperm(cells * cells)[:count]
    zero = torch.zeros_like(chosen)
    return {
        "voxels": torch.rand(count, points, features) * 4,
        "num_points": torch.randint(1, points + 1, (count,), dtype=torch.int32),
        "coors": torch.stack([zero, zero, chosen // cells, chosen % cells], 1).int(),
    }


PILLARS = {
    "pointpillars/pointpillars_hv_secfpn_8xb6-160e_kitti-3d-3class.py": (32, 4, "middle_encoder"),
    "centerpoint/centerpoint_pillar02_second_secfpn_8xb4-cyclic-20e_nus-3d.py": (20, 5, "pts_middle_encoder"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PILLARS)
def test_file_accepts_any_number_of_pillars(name: str, tmp_path: Path) -> None:
    from polyop.compat import mmdet3d as deploy

    points, features, encoder = PILLARS[name]
    network = deploy.PillarNetwork(build(name, {f"model.{encoder}.output_shape": [64, 64]}, "mmdet3d").eval())
    traced = pillars(200, 64, points, features)
    deploy.export(network, list(traced.values()), tmp_path / "pillars.onnx", verbose=False)
    session = session_of(tmp_path / "pillars.onnx")
    for count in (333, 2):
        cloud = pillars(count, 64, points, features)
        agree(session, network, **cloud)
        with torch.no_grad():
            encoder = network.parts["voxel_encoder"]
            features = deploy.encode(encoder, **cloud)
            torch.testing.assert_close(features, encoder(cloud["voxels"].clone(), cloud["num_points"], cloud["coors"]))


SPARSE = {
    "second/second_hv_secfpn_8xb6-80e_kitti-3d-3class.py": (5, 4, "middle_encoder"),
    "centerpoint/centerpoint_voxel01_second_secfpn_8xb4-cyclic-20e_nus-3d.py": (10, 5, "pts_middle_encoder"),
}


def voxels(count: int, shape: tuple[int, ...], points: int, features: int) -> dict[str, Tensor]:
    """Returns voxels, some of them clustered, so that filters cover more than one."""
    cells = torch.rand(count, 3) * torch.tensor(shape)
    cells[: count // 2] = cells[0] + torch.rand(count // 2, 3) * 8
    cells = torch.minimum(cells.int(), torch.tensor(shape).int() - 1).unique(dim=0)
    return {
        "voxels": torch.rand(len(cells), points, features) * 4,
        "num_points": torch.randint(1, points + 1, (len(cells),), dtype=torch.int32),
        "coors": torch.cat([torch.zeros(len(cells), 1, dtype=torch.int32), cells], 1),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", SPARSE)
def test_file_accepts_any_number_of_voxels(name: str, tmp_path: Path) -> None:
    from polyop.compat import mmdet3d as deploy

    points, features, encoder = SPARSE[name]
    shape = (41, 256, 256)
    network = deploy.VoxelNetwork(build(name, {f"model.{encoder}.sparse_shape": list(shape)}, "mmdet3d").eval())
    traced = voxels(500, shape, points, features)
    report = deploy.export(network, list(traced.values()), tmp_path / "voxels.onnx", verbose=False)
    assert report.nodes["autoware::GetIndicePairs"] > 3
    assert report.nodes["autoware::IndiceConv"] > 10
    session = session_of(tmp_path / "voxels.onnx")
    for count in (900, 3):
        agree(session, network, **voxels(count, shape, points, features))


@pytest.mark.slow
def test_a_network_becomes_an_engine(program: str, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    name = "deformable_detr/deformable-detr_r50_16xb2-50e_coco.py"
    export(Network(build(name).eval(), SMALL), next(images(SMALL)), tmp_path / "model.onnx", verbose=False)
    runtime = ROOT / ".deps" / "tensorrt-rtx"
    done = subprocess.run(
        [program, "convert", "model.onnx", "-o", "model.engine"], cwd=tmp_path, timeout=800,
        capture_output=True, text=True, env=environment(runtime), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "model.engine").stat().st_size > 1 << 20


@pytest.mark.slow
def test_attention_in_pytorch_becomes_tensorrts_plugin(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    """DINO as people export it without polyop: MMCV computes its 12 layers of attention by grid_sample."""
    from mmcv.ops import multi_scale_deform_attn

    ours = multi_scale_deform_attn.multi_scale_deformable_attn_pytorch
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    network = Network(build("dino/dino-4scale_r50_8xb2-12e_coco.py", FEW).eval(), LARGER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multi_scale_deform_attn, ours.__name__, ours.__wrapped__)
        torch.onnx.export(network, (next(images(LARGER)),), str(before), dynamo=False, opset_version=17)
    assert sum(node.op_type == "GridSample" for node in onnx.load(before).graph.node) == 48
    report = optimize(before, after, target="tensorrt", threads=2)
    assert report.replaced["deformable attention"] == 12, str(report)
    assert max(report.differences.values()) < 1e-4
    model = onnx.load(after)
    assert "GridSample" not in {node.op_type for node in model.graph.node}
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    (answer,) = build_all([{"model": model.SerializeToString()}])
    assert "error" not in answer, answer


def test_rejects_a_trace_without_detections(tmp_path: Path) -> None:
    model = build("retinanet/retinanet_r50_fpn_1x_coco.py").eval()
    model.bbox_head.test_cfg.score_thr = 1.0
    with pytest.raises(polyop.ExportError, match="expected an image with detections"):
        export(Detector(model, SMALL), torch.rand(1, 3, *SMALL), tmp_path / "model.onnx")


@pytest.mark.slow
def test_documentation_page(program: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "deploy-openmmlab.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    commands = [line for block in re.findall(r"```\n(polyop .*?)```", page, re.DOTALL) for line in block.splitlines()]
    assert len(programs) == 2
    assert len(commands) >= 3
    start = f"import sys; sys.path.append({str(FOLDER)!r})\n"
    for code in programs:
        subprocess.run([sys.executable, "-c", start + code], cwd=tmp_path, check=True, timeout=600)
    for command in commands:
        subprocess.run([program, *command.split()[1:]], cwd=tmp_path, env=environment(), check=True, timeout=600)
