# SPDX-License-Identifier: Apache-2.0
"""mmdet3d's configurations, smaller, on random weights and synthetic clouds: they detect, and they learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from tests.support.clouds import ROOM, STREET, cloud
from tests.support.openmmlab import build, models_of, total


@pytest.fixture(scope="module", autouse=True)
def _mmdet3d() -> Iterator[None]:
    with models_of("mmdet3d"):
        yield


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


class Case(NamedTuple):
    operators: str  # of mmcv.ops
    changes: dict[str, Any]
    outdoors: bool = True
    channels: int = 4


AREA = [0.0, -12.8, -3.0, 25.6, 12.8, 1.0]  # of KITTI's 70 m by 80 m
ANCHORS = [[0.0, -12.8, z, 25.6, 12.8, z] for z in (-0.6, -0.6, -1.78)]
KITTI = {
    "model.data_preprocessor.voxel_layer.point_cloud_range": AREA,
    "model.middle_encoder.sparse_shape": [41, 512, 512],
}
TWO_STAGES = {
    **KITTI,
    "model.rpn_head.anchor_generator.ranges": ANCHORS,
    "model.test_cfg.rpn.nms_pre": 200,
    "model.test_cfg.rpn.nms_post": 20,
    "model.test_cfg.rpn.max_num": 20,
    "model.test_cfg.rcnn.score_thr": -1e9,  # raw scores
}
AROUND = [-25.6, -25.6, -5.0, 25.6, 25.6, 3.0]
MODELS = {
    "pointpillars/pointpillars_hv_secfpn_8xb6-160e_kitti-3d-3class.py": Case(
        "Voxelization, nms3d",
        {
            "model.data_preprocessor.voxel_layer.point_cloud_range": [0.0, -12.8, -3.0, 25.6, 12.8, 1.0],
            "model.voxel_encoder.point_cloud_range": [0.0, -12.8, -3.0, 25.6, 12.8, 1.0],
            "model.middle_encoder.output_shape": [160, 160],
            "model.bbox_head.anchor_generator.ranges": ANCHORS,
            "model.test_cfg.score_thr": 0.0,
        },
    ),
    "second/second_hv_secfpn_8xb6-80e_kitti-3d-3class.py": Case(
        "Voxelization, SubMConv3d, SparseConv3d, nms3d",
        {**KITTI, "model.bbox_head.anchor_generator.ranges": ANCHORS, "model.test_cfg.score_thr": 0.0},
    ),
    "centerpoint/centerpoint_voxel01_second_secfpn_8xb4-cyclic-20e_nus-3d.py": Case(
        "Voxelization, SubMConv3d, SparseConv3d, nms3d",
        {
            "model.data_preprocessor.voxel_layer.point_cloud_range": AROUND,
            "model.pts_middle_encoder.sparse_shape": [41, 512, 512],
            "model.pts_bbox_head.bbox_coder.pc_range": AROUND[:2],
            "model.pts_bbox_head.bbox_coder.score_threshold": 0.0,
            "model.test_cfg.pts.pc_range": AROUND[:2],
            "model.test_cfg.pts.score_threshold": 0.0,
        },
        channels=5,
    ),
    "votenet/votenet_8xb16_sunrgbd-3d.py": Case(
        "furthest_point_sample, ball_query, grouping_operation, three_nn, three_interpolate",
        {
            "model.backbone.num_points": (512, 256, 128, 64),
            "model.bbox_head.vote_aggregation_cfg.num_point": 64,
            "model.test_cfg.score_thr": 0.0,
        },
        outdoors=False,
    ),
    "3dssd/3dssd_4xb4_kitti-3d-car.py": Case(
        "furthest_point_sample_with_dist, ball_query, gather_points",
        {
            "model.backbone.num_points": (1024, 128, (64, 64)),
            "model.backbone.fps_sample_range_lists": ((-1), (-1), (128, -1)),
            "model.bbox_head.vote_module_cfg.num_points": 64,
            "model.bbox_head.vote_aggregation_cfg.num_point": 64,
        },
    ),
    "point_rcnn/point-rcnn_8xb2_kitti-3d-3class.py": Case(
        "furthest_point_sample, ball_query, RoIPointPool3d, nms3d",
        {
            "model.backbone.num_points": (1024, 256, 64, 16),
            "model.test_cfg.rpn.nms_cfg.nms_pre": 500,
            "model.test_cfg.rpn.nms_cfg.nms_post": 20,
            "model.test_cfg.rcnn.score_thr": 0.0,
        },
    ),
    "pv_rcnn/pv_rcnn_8xb2-80e_kitti-3d-3class.py": Case(
        "SubMConv3d, SparseConv3d, stack_ball_query, grouping_operation of stacks, nms3d",
        {
            **TWO_STAGES,
            "model.points_encoder.num_keypoints": 256,
            "model.points_encoder.point_cloud_range": AREA,
        },
    ),
    "parta2/parta2_hv_secfpn_8xb2-cyclic-80e_kitti-3d-3class.py": Case(
        "SparseInverseConv3d, SparseMaxPool3d, RoIAwarePool3d, nms3d", TWO_STAGES
    ),
    "groupfree3d/groupfree3d_head-L6-O256_4xb8_scannet-seg.py": Case(
        "Points_Sampler, ball_query, three_nn",
        {
            "model.backbone.num_points": (512, 256, 128, 64),
            "model.bbox_head.num_proposal": 64,
        },
        outdoors=False,
        channels=3,
    ),
}
QUICK = ("second", "votenet", "point_rcnn")


def given(case: Case) -> tuple[Tensor, Any]:
    """Returns a cloud and its metadata."""
    from mmdet3d.structures import DepthInstance3DBoxes, Det3DDataSample, LiDARInstance3DBoxes, PointData
    from mmengine.structures import InstanceData

    boxes, kind = (STREET, LiDARInstance3DBoxes) if case.outdoors else (ROOM, DepthInstance3DBoxes)
    sample = Det3DDataSample(metainfo={"box_type_3d": kind, "box_mode_3d": None, "sample_idx": 0})
    sample.gt_instances_3d = InstanceData(bboxes_3d=kind(boxes), labels_3d=torch.tensor([2, 2, 2, 0][: len(boxes)]))
    sample.gt_pts_seg = PointData()  # votes are for the centres of boxes
    return cloud(boxes, 25.0 if case.outdoors else 4.0, case.channels), sample


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name.startswith(QUICK) else pytest.mark.slow) for name in MODELS]
)
def test_detects(name: str) -> None:
    case = MODELS[name]
    model = build(name, case.changes, "mmdet3d").eval()
    points, sample = given(case)
    with torch.no_grad():
        (result,) = model.test_step({"inputs": {"points": [points]}, "data_samples": [sample]})
    found = result.pred_instances_3d
    assert len(found) > 0
    assert found.bboxes_3d.tensor.shape[0] == len(found)
    assert torch.isfinite(found.bboxes_3d.tensor).all()
    assert torch.isfinite(found.scores_3d).all()


# Each step changes which of VoteNet's votes are near an object, and with it the targets of the other losses.
TRAINED = {"second/second_hv_secfpn_8xb6-80e_kitti-3d-3class.py": "", "votenet/votenet_8xb16_sunrgbd-3d.py": "vote_"}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_learns(name: str) -> None:
    """Steps on one cloud lower the loss, and every gradient is finite."""
    case = MODELS[name]
    model = build(name, case.changes, "mmdet3d").train()
    points, sample = given(case)
    steps = torch.optim.AdamW(model.parameters(), lr=1e-4)
    losses = []
    for _ in range(3):
        torch.manual_seed(1)
        batch = model.data_preprocessor({"inputs": {"points": [points]}, "data_samples": [sample]}, training=True)
        parts = model.loss(batch["inputs"], batch["data_samples"])
        losses.append(total({key: part for key, part in parts.items() if key.startswith(TRAINED[name])}).item())
        steps.zero_grad()
        total(parts).backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        assert len(gradients) > 50
        assert all(torch.isfinite(g).all() for g in gradients)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        steps.step()
    assert losses[-1] < losses[0]
