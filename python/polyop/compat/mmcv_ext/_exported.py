# SPDX-License-Identifier: Apache-2.0
"""Symbolic functions of MMCV's autograd functions, where MMCV exports another operator than it computes, or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from torch import Tensor

from polyop import functional

__all__ = ["EXPORTED"]


def _pair(value: int | Sequence[int]) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


def _bins(output_size: int | Sequence[int], prefix: str = "output") -> dict[str, int]:
    height, width = _pair(output_size)
    return {f"{prefix}_height_i": height, f"{prefix}_width_i": width}


def _roi_align(module: ModuleType) -> None:
    """MMCV exports ONNX's RoiAlign of opset 10 with a Squeeze that later opsets reject."""

    def symbolic(
        graph: Any, input: Any, rois: Any, output_size: int | Sequence[int], spatial_scale: float, sampling_ratio: int,
        pool_mode: str, aligned: bool,
    ) -> Any:  # fmt: skip
        return graph.op(
            "mmcv::MMCVRoiAlign", input, rois, **_bins(output_size), spatial_scale_f=spatial_scale,
            sampling_ratio_i=sampling_ratio, mode_s=pool_mode, aligned_i=int(aligned),
        )  # fmt: skip

    module.RoIAlignFunction.symbolic = staticmethod(symbolic)


def _roi_pool(module: ModuleType) -> None:
    """MMCV exports ONNX's MaxRoiPool, which rounds corners; MMCV's operator does not."""

    def symbolic(graph: Any, input: Any, rois: Any, output_size: int | Sequence[int], spatial_scale: float) -> Any:
        return graph.op(
            "mmcv::MMCVRoIPool", input, rois, **_bins(output_size), spatial_scale_f=spatial_scale, outputs=2
        )[0]

    module.RoIPoolFunction.symbolic = staticmethod(symbolic)


def _riroi_align_rotated(module: ModuleType) -> None:
    def symbolic(
        graph: Any, features: Any, rois: Any, out_size: int | Sequence[int], spatial_scale: float, num_samples: int = 0,
        num_orientations: int = 8, clockwise: bool = False,
    ) -> Any:  # fmt: skip
        return graph.op(
            "polyop::RiRoIAlignRotated", features, rois, **_bins(out_size, "pooled"), spatial_scale_f=spatial_scale,
            num_samples_i=num_samples, num_orientations_i=num_orientations, clockwise_i=int(clockwise),
        )  # fmt: skip

    module.RiRoIAlignRotatedFunction.symbolic = staticmethod(symbolic)


def _bezier_align(module: ModuleType) -> None:
    def symbolic(
        graph: Any, input: Any, beziers: Any, output_size: int | Sequence[int], spatial_scale: float = 1.0,
        sampling_ratio: int = 0, aligned: bool = True,
    ) -> Any:  # fmt: skip
        return graph.op(
            "polyop::BezierAlign", input, beziers, **_bins(output_size), spatial_scale_f=spatial_scale,
            sampling_ratio_i=sampling_ratio, aligned_i=int(aligned),
        )  # fmt: skip

    module.BezierAlignFunction.symbolic = staticmethod(symbolic)


def _active_rotated_filter(module: ModuleType) -> None:
    def symbolic(graph: Any, input: Any, indices: Any) -> Any:
        return graph.op("polyop::ActiveRotatedFilter", input, indices)

    module.ActiveRotatedFilterFunction.symbolic = staticmethod(symbolic)


def _correlation(module: ModuleType) -> None:
    def symbolic(
        graph: Any, input1: Any, input2: Any, kernel_size: int | Sequence[int] = 1, max_displacement: int = 1,
        stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 1, dilation: int | Sequence[int] = 1,
        dilation_patch: int | Sequence[int] = 1,
    ) -> Any:  # fmt: skip
        return graph.op(
            "polyop::Correlation", input1, input2, kernel_size_i=_pair(kernel_size),
            max_displacement_i=max_displacement, stride_i=_pair(stride), padding_i=_pair(padding),
            dilation_i=_pair(dilation), dilation_patch_i=_pair(dilation_patch),
        )  # fmt: skip

    module.CorrelationFunction.symbolic = staticmethod(symbolic)


def _assign_score_withk(module: ModuleType) -> None:
    def symbolic(
        graph: Any, scores: Any, point_features: Any, center_features: Any, knn_idx: Any, aggregate: str = "sum"
    ) -> Any:
        del aggregate  # MMCV always sums
        return graph.op("polyop::AssignScoreWithK", scores, point_features, center_features, knn_idx)

    module.AssignScoreWithK.symbolic = staticmethod(symbolic)


def _chamfer_distance(module: ModuleType) -> None:
    def symbolic(graph: Any, xyz1: Any, xyz2: Any) -> Any:
        return graph.op("polyop::ChamferDistance", xyz1, xyz2, outputs=4)

    module.ChamferDistanceFunction.symbolic = staticmethod(symbolic)


def _diff_iou_rotated(module: ModuleType) -> None:
    def symbolic(graph: Any, vertices: Any, mask: Any, num_valid: Any) -> Any:
        return graph.op("polyop::DiffIoURotatedSortVertices", vertices, mask, num_valid)

    module.SortVertices.symbolic = staticmethod(symbolic)
    # MMCV composes the IoU from 24 candidates of vertices; polyop has an operator with a gradient kernel.
    module.diff_iou_rotated_2d = functional.diff_iou_rotated_2d
    module.diff_iou_rotated_3d = functional.diff_iou_rotated_3d


def _min_area_polygons(module: ModuleType) -> None:
    """Replaces MMCV's functions without gradients, which write into a tensor and leave no trace."""
    module.min_area_polygons = functional.min_area_polygons


def _convex_iou(module: ModuleType) -> None:
    module.convex_iou = functional.convex_iou
    module.convex_giou = functional.convex_giou


def _box_iou_quadri(module: ModuleType) -> None:
    def box_iou_quadri(bboxes1: Tensor, bboxes2: Tensor, mode: str = "iou", aligned: bool = False) -> Tensor:
        return functional.box_iou_quadri(bboxes1.contiguous(), bboxes2.contiguous(), mode, aligned)

    module.box_iou_quadri = box_iou_quadri


EXPORTED: dict[str, Callable[[ModuleType], None]] = {
    "mmcv.ops.active_rotated_filter": _active_rotated_filter,
    "mmcv.ops.assign_score_withk": _assign_score_withk,
    "mmcv.ops.bezier_align": _bezier_align,
    "mmcv.ops.box_iou_quadri": _box_iou_quadri,
    "mmcv.ops.chamfer_distance": _chamfer_distance,
    "mmcv.ops.convex_iou": _convex_iou,
    "mmcv.ops.correlation": _correlation,
    "mmcv.ops.diff_iou_rotated": _diff_iou_rotated,
    "mmcv.ops.min_area_polygons": _min_area_polygons,
    "mmcv.ops.riroi_align_rotated": _riroi_align_rotated,
    "mmcv.ops.roi_align": _roi_align,
    "mmcv.ops.roi_pool": _roi_pool,
}
