# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import F16, F32, Call, Cases, Contest, call
from contenders import bytes_of, in_openvino, normal, session
from torch import Tensor

from ops.rois import cases as shared

cases = Cases(__file__)


@cases.cpu("FPN 256 channels, 4 levels, 1000 rois")
def _(threads: int) -> Contest:
    levels = [normal(i, 1, 256, 200 >> i, 304 >> i) for i in range(4)]
    rois = shared.rois_of(1000, 304, 200, 0.25)
    attributes = {
        "output_height": 7, "output_width": 7, "sampling_ratio": 2, "pool_mode": 1, "aligned": 1,
        "featmap_strides": [4.0, 8.0, 16.0, 32.0], "roi_scale_factor": -1.0, "finest_scale": 56,
    }  # fmt: skip
    feats = {f"f{i}": level for i, level in enumerate(levels)}
    ours = session("mmdeploy::MMCVMultiLevelRoiAlign", {"rois": rois, **feats}, threads, attributes=attributes)
    extents = rois[:, 3:] - rois[:, 1:3]
    level = np.clip(np.floor(np.log2(np.sqrt(extents.prod(1)) / 56 + 1e-6)), 0, 3).astype(int)
    parts = []
    for i in range(4):
        mine = np.flatnonzero(level == i)
        run = session(
            "RoiAlign", {"x": levels[i], "rois": rois[mine, 1:].copy(), "b": np.zeros(len(mine), np.int64)}, threads,
            opset=16, attributes={"output_height": 7, "output_width": 7, "sampling_ratio": 2, "mode": "avg",
                                  "spatial_scale": 1 / (4 << i), "coordinate_transformation_mode": "half_pixel"},
        )  # fmt: skip
        parts.append((mine, run))

    def standard() -> list[np.ndarray]:
        result = np.empty((1000, 256, 7, 7), np.float32)
        for mine, run in parts:
            result[mine] = run()[0].numpy()
        return [result]

    extractor = {"output_size": 7, "sampling_ratio": 2, "pyramid_scales": [4, 8, 16, 32], "aligned": True}
    openvino = in_openvino(
        "ExperimentalDetectronROIFeatureExtractor", 6, [rois[:, 1:].copy(), *levels], threads, **extractor
    )
    rivals = {
        "ONNX Runtime RoiAlign per level": standard,
        "OpenVINO ExperimentalDetectronROIFeatureExtractor": openvino,
    }
    return Contest(ours, rivals, bytes_of(*levels) + 1000 * 256 * 49 * 4)


@cases.differentiable("4 levels of 256x200x304, 1,000 rois of 7x7", F32, F16)
def of_boxes(dtype: torch.dtype, count: int = 1000, scale: int = 4) -> Call:
    rois = shared.boxes(shared.LARGE, count, scale=scale, dtype=dtype)
    sizes = (rois[:, 3:].float() - rois[:, 1:3].float()).prod(1).sqrt()
    levels = torch.floor(torch.log2(sizes / 56 + 1e-6)).clamp(0, 3).long()

    def by_level(*feats: Tensor) -> Tensor:
        """Computes what detectors do without the operator: selects the rois of each level."""
        to = feats[0].new_zeros(count, 256, 7, 7)
        for level, feat in enumerate(feats):
            at = (levels == level).nonzero()[:, 0]
            to = to.index_put((at,), torch.ops.torchvision.roi_align(feat, rois[at], 1 / (4 << level), 7, 7, 2, True))
        return to

    call = Call(
        lambda *t: torch.ops.polyop.multi_level_roi_align(rois, t, **shared.PYRAMID),
        shared.pyramid(dtype),
        also_reads=[rois],
    )
    return call.against_torchvision(by_level)


cases.gradient("multi_level_roi_align, 4 levels of 256x200x304, 512 of 7x7")(lambda: of_boxes(F32, 512))
cases.growth("rois", 100, 100_000)(
    lambda n: call("multi_level_roi_align", shared.rois_over(n), shared.pyramid_of_rois(), **shared.PYRAMID_OF_ROIS)
)
cases.small([shared.small_rois(5, 18), (2, 2, 6, 5), (2, 2, 3, 2)], **shared.SMALL_PYRAMID, sampling_ratio=2)
cases.small(
    [shared.small_rois(5, 18), (2, 2, 6, 5), (2, 2, 3, 2)],
    "max",
    **shared.SMALL_PYRAMID,
    sampling_ratio=2,
    pool_mode="max",
)
