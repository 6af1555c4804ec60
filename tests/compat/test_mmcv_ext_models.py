# SPDX-License-Identifier: Apache-2.0
"""mmdet's configurations on random weights: they run with mmcv-lite and polyop, and they learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from tests.support.openmmlab import build, models_of, total

SIZE, SMALL = (256, 320), (128, 160)  # for detection, and for training

# The parts of mmcv.ops that each of them needs.
MODELS = {
    "mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py": "RoIAlign, nms",
    "dcn/faster-rcnn_r50-dconv-c3-c5_fpn_1x_coco.py": "DeformConv2d",
    "dcnv2/faster-rcnn_r50-mdconv-c3-c5_fpn_1x_coco.py": "ModulatedDeformConv2d",
    "dcn/faster-rcnn_r50_fpn_dpool_1x_coco.py": "DeformRoIPoolPack",
    "carafe/faster-rcnn_r50_fpn-carafe_1x_coco.py": "CARAFEPack",
    "retinanet/retinanet_r50_fpn_1x_coco.py": "sigmoid_focal_loss",
    "dyhead/atss_r50-caffe_fpn_dyhead_1x_coco.py": "ModulatedDeformConv2d with larger offsets",
    "guided_anchoring/ga-retinanet_r50-caffe_fpn_1x_coco.py": "DeformConv2d, MaskedConv2d",
    "reppoints/reppoints-moment_r50_fpn_1x_coco.py": "DeformConv2d of points",
    "point_rend/point-rend_r50-caffe_fpn_ms-1x_coco.py": "point_sample",
    "deformable_detr/deformable-detr_r50_16xb2-50e_coco.py": "MultiScaleDeformableAttention",
    "dino/dino-4scale_r50_8xb2-12e_coco.py": "MultiScaleDeformableAttention",
    "mask2former/mask2former_r50_8xb2-lsj-50e_coco.py": "MultiScaleDeformableAttention, point_sample",
}
QUICK = ("mask_rcnn", "dcnv2", "carafe", "deformable_detr")
TRAINED = [
    "mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py",
    "dcnv2/faster-rcnn_r50-mdconv-c3-c5_fpn_1x_coco.py",
    "carafe/faster-rcnn_r50_fpn-carafe_1x_coco.py",
    "retinanet/retinanet_r50_fpn_1x_coco.py",
    "reppoints/reppoints-moment_r50_fpn_1x_coco.py",
    "deformable_detr/deformable-detr_r50_16xb2-50e_coco.py",
]


@pytest.fixture(scope="module", autouse=True)
def _mmdet() -> Iterator[None]:
    with models_of("mmdet"):
        yield


def sample(size: tuple[int, int]) -> Any:
    from mmdet.structures import DetDataSample

    return DetDataSample(
        metainfo={
            "img_shape": size,
            "ori_shape": size,
            "pad_shape": size,
            "batch_input_shape": size,
            "scale_factor": (1.0, 1.0),
            "img_id": 0,
        }
    )


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name.startswith(QUICK) else pytest.mark.slow) for name in MODELS]
)
def test_detects(name: str) -> None:
    with torch.no_grad():
        (result,) = build(name).eval().predict(torch.rand(1, 3, *SIZE), [sample(SIZE)])
    found = result.pred_instances
    assert found.bboxes.shape == (len(found), 4)
    assert torch.isfinite(found.bboxes).all()
    assert torch.isfinite(found.scores).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_learns(name: str) -> None:
    """Steps on one image lower the loss, and every gradient is finite."""
    from mmdet.structures.mask import BitmapMasks
    from mmengine.structures import InstanceData

    model = build(name).train()
    image, truth = torch.rand(1, 3, *SMALL), sample(SMALL)
    boxes = torch.tensor([[10.0, 20, 60, 80], [70, 30, 140, 110]])
    masks = torch.zeros(2, *SMALL, dtype=torch.uint8)
    for mask, (x1, y1, x2, y2) in zip(masks, boxes.int().tolist(), strict=True):
        mask[y1:y2, x1:x2] = 1
    truth.gt_instances = InstanceData(
        bboxes=boxes, labels=torch.tensor([3, 7]), masks=BitmapMasks(masks.numpy(), *SMALL)
    )
    steps = torch.optim.AdamW(model.parameters(), lr=1e-4)
    losses = []
    for _ in range(3):
        torch.manual_seed(1)  # the same samples of boxes
        loss = total(model.loss(image, [truth]))
        losses.append(loss.item())
        steps.zero_grad()
        loss.backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        assert len(gradients) > 50
        assert all(torch.isfinite(g).all() for g in gradients)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        steps.step()
    assert losses[-1] < losses[0]
