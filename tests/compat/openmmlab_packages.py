# SPDX-License-Identifier: Apache-2.0
"""Configurations of mmsegmentation, mmocr, mmrotate and mmyolo with random weights: they run with the parts of MMCV
that they need.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, NamedTuple

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.openmmlab import build, models_of

SIZE = (128, 160)


class Called(TorchDispatchMode):
    """Records the operators of polyop and the functions of `mmcv._ext` that are called."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.names: set[str] = set()
        for name, function in vars(sys.modules["mmcv._ext"]).items():
            if callable(function) and not name.startswith("_"):
                patch.setattr(sys.modules["mmcv._ext"], name, self._noted(name, function))

    def _noted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            self.names.add(name)
            return function(*args, **given)

        return call

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.namespace == "polyop":
            self.names.add(function._schema.name.split("::")[1])
        return function(*args, **(kwargs or {}))


class Case(NamedTuple):
    needs: set[str]  # operators of polyop and functions of mmcv._ext
    changes: dict[str, Any] | None = None


OF_MMSEG = {
    "psanet/psanet_r50-d8_4xb4-80k_ade20k-512x512.py": Case({"psa_mask"}, {"model.decode_head.mask_size": (17, 21)}),
    "point_rend/pointrend_r50_4xb4-160k_ade20k-512x512.py": Case(set()),  # point_sample is grid_sample
    "ccnet/ccnet_r50-d8_4xb4-80k_ade20k-512x512.py": Case(set()),  # so are the parts of CrissCrossAttention
}
OF_MMOCR = {
    "textdet/panet/panet_resnet18_fpem-ffm_600e_icdar2015.py": Case({"pixel_group"}),
    "textdet/psenet/psenet_resnet50_fpnf_600e_icdar2015.py": Case({"contour_expand"}),
    "textdet/dbnetpp/dbnetpp_resnet50-dcnv2_fpnc_1200e_icdar2015.py": Case({"modulated_deform_conv2d"}),
    "textdet/fcenet/fcenet_resnet50-dcnv2_fpn_1500e_ctw1500.py": Case({"modulated_deform_conv2d"}),
}
OF_MMROTATE = {
    "oriented_rcnn/oriented-rcnn-le90_r50_fpn_1x_dota.py": Case({"nms_rotated", "roi_align_rotated"}),
    "r3det/r3det-oc_r50_fpn_1x_dota.py": Case({"rotated_feature_align", "nms_rotated"}),
    "s2anet/s2anet-le135_r50_fpn_1x_dota.py": Case({"deform_conv2d", "active_rotated_filter", "nms_rotated"}),
    "rotated_reppoints/rotated-reppoints-qbox_r50_fpn_1x_dota.py": Case({"deform_conv2d", "min_area_polygons"}),
    "gliding_vertex/gliding-vertex-qbox_r50_fpn_1x_dota.py": Case({"roi_align", "nms_quadri"}),
    "rotated_rtmdet/rotated_rtmdet_tiny-3x-dota.py": Case({"nms_rotated"}),
}
OF_MMYOLO = {
    "rtmdet/rotated/rtmdet-r_tiny_fast_1xb8-36e_dota.py": Case({"nms_rotated"}),
    "yolov8/yolov8_n_syncbn_fast_8xb16-500e_coco.py": Case({"nms"}),
}
KNOWN = {
    "img_shape": SIZE,
    "ori_shape": SIZE,
    "pad_shape": SIZE,
    "batch_input_shape": SIZE,
    "scale_factor": (1.0, 1.0),
    "img_id": 0,
}


@pytest.fixture(scope="module", autouse=True)
def _packages() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # mmrotate imports it; Python removed it in 3.10.
        patch.setattr(collections, "Sequence", Sequence, raising=False)
        with models_of("mmseg", "mmocr", "mmrotate", "mmyolo", more=True):
            yield


def result_of(package: str, name: str, case: Case, sample: Any, patch: pytest.MonkeyPatch) -> Any:
    model = build(name, case.changes, package).eval()
    with torch.no_grad(), Called(patch) as called:
        (result,) = model.predict(torch.rand(1, 3, *SIZE), [sample])
    assert called.names >= case.needs
    return result


@pytest.mark.parametrize("name", OF_MMSEG)
def test_mmsegmentation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mmseg.structures import SegDataSample

    result = result_of("mmseg", name, OF_MMSEG[name], SegDataSample(metainfo=KNOWN), monkeypatch)
    assert result.pred_sem_seg.data.shape == (1, *SIZE)
    assert torch.isfinite(result.seg_logits.data).all()


@pytest.mark.parametrize("name", OF_MMOCR)
def test_mmocr(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mmocr.structures import TextDetDataSample

    found = result_of("mmocr", name, OF_MMOCR[name], TextDetDataSample(metainfo=KNOWN), monkeypatch).pred_instances
    assert len(found.polygons) == len(found.scores)


DETECTORS = [("mmrotate", name) for name in OF_MMROTATE] + [("mmyolo", name) for name in OF_MMYOLO]


@pytest.mark.parametrize(("package", "name"), DETECTORS)
def test_detectors(package: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mmdet.structures import DetDataSample

    case = {**OF_MMROTATE, **OF_MMYOLO}[name]
    found = result_of(package, name, case, DetDataSample(metainfo=KNOWN), monkeypatch).pred_instances
    assert len(found) > 0
    assert torch.isfinite(found.scores).all()
