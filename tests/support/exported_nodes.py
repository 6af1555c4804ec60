# SPDX-License-Identifier: Apache-2.0
"""A call of every node name: domain, name, attributes and their types as exporters write them, optional inputs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

RNG = np.random.default_rng(0)


def f(*shape: int) -> np.ndarray:
    return RNG.random(shape, np.float32)


def boxes(*shape: int) -> np.ndarray:
    corner = f(*shape, 2) * 10
    return np.concatenate([corner, corner + 1 + f(*shape, 2) * 5], -1)


def rois(count: int, images: int = 2) -> np.ndarray:
    return np.concatenate([RNG.integers(0, images, (count, 1)).astype(np.float32), boxes(count)], 1)


def rotated(*shape: int) -> np.ndarray:
    return np.concatenate([f(*shape, 2) * 10, 1 + f(*shape, 2) * 5, f(*shape, 1) * 6 - 3], -1)


def boxes3d(*shape: int) -> np.ndarray:
    return np.concatenate([f(*shape, 3) * 4, 1 + f(*shape, 3) * 5, f(*shape, 1) * 6 - 3], -1)


def rotated_rois(count: int) -> np.ndarray:
    return np.concatenate([RNG.integers(0, 2, (count, 1)).astype(np.float32), rotated(count)], 1)


@dataclass
class Node:
    name: str
    inputs: list[np.ndarray | None]
    outputs: list[tuple[type, tuple[int, ...] | None]]  # None: the shape depends on the data
    attributes: dict[str, object] = field(default_factory=dict)

    def refusal_before_1_19(self) -> str | None:
        """Returns words of the error that ONNX Runtime 1.17 and 1.18 give for the node, or None if they run it."""
        if self.name in ("polyop::DeformConv", "polyop::SelectiveScan") and any(a is None for a in self.inputs):
            return "type inference failed"  # they do not look behind an input that is left out
        if self.name == "mmcv::NonMaxSuppression" and self.inputs[0].ndim == 3:
            return "ONNX Runtime before 1.19 does not infer it from the ranks"
        return None


def codes(dtype: type, *shape: int) -> np.ndarray:
    """Returns an image of 8-bit integers."""
    return RNG.integers(0, 256, shape, np.uint8).astype(dtype)


def steps(dtype: type) -> dict[str, object]:
    """Returns the quantization of an image and a result of such integers."""
    zero = 128 if dtype == np.uint8 else 0
    return {"input_scale": 0.02, "input_zero_point": zero + 3, "output_scale": 0.03, "output_zero_point": zero - 5}


x = f(2, 4, 12, 10)
pool = {"output_height": 3, "output_width": 2, "spatial_scale": 0.5, "sampling_ratio": 2, "aligned": 1}
levels = {
    "output_height": 3, "output_width": 2, "sampling_ratio": 2, "pool_mode": 1, "aligned": 1, "roi_scale_factor": 1.5,
    "finest_scale": 56, "featmap_strides": [4.0, 8.0],
}  # fmt: skip
deform = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 1, "deform_groups": 2}
batched = {
    "background_label_id": -1, "num_classes": 3, "topk": 5, "keep_topk": 4, "score_threshold": 0.05, "iou_threshold": 0.5,
    "is_normalized": 0, "clip_boxes": 0,
}  # fmt: skip
offset, mask, weight = f(2, 36, 12, 10), f(2, 18, 12, 10), f(6, 4, 3, 3)
window = {
    **{f"{name}_{axis}": v for name, v in (("kernel", 3), ("stride", 2), ("pad", 1), ("dilation", 1)) for axis in "hw"},
    "group": 3,
    "group_channels": 4,
}
F32, I64, I32 = np.float32, np.int64, np.int32
pooled = [(F32, (5, 4, 3, 2))]
same = [(F32, x.shape)]
convolved = [(F32, (2, 6, 12, 10))]
points, ends = f(30, 3), np.array([10, 30], np.int32)
efficient = {
    "score_threshold": 0.25,
    "iou_threshold": 0.5,
    "max_output_boxes": 4,
    "background_class": -1,
    "score_activation": 0,
    "box_coding": 0,
}
decoded = {
    "point_cloud_range": [0.0, -40.0, -3.0, 70.4, 40.0, 1.0], "anchors": [3.9, 1.6, 1.56, 0.0, 3.9, 1.6, 1.56, 1.57],
    "anchor_bottom_height": [-1.78], "dir_offset": 0.78539, "dir_limit_offset": 0.0, "num_dir_bins": 2, "score_thresh": 0.6,
}  # fmt: skip
detected = [(I32, (2, 1)), (F32, (2, 4, 4)), (F32, (2, 4)), (I32, (2, 4))]
ranks = [np.array(r, I32) for r in ([0, 5, 9, 30], [3, 1, 0, 2], [8, 8, 2, 2], [0, 2], [2, 2])]
pillars = np.array([[0, 0, 2, 1], [1, 0, 0, 3], [0, 0, 1, 1]], I32)
grid = {"voxel_size": [0.25, 0.25, 0.5], "point_cloud_range": [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]}
voxels = {**grid, "max_num_points": 3, "max_voxels": 8, "deterministic": 1}
generator = {**grid, "max_num_points_per_voxel": 3, "max_voxels": 8, "voxel_feature_num": 10, "plugin_version": "1"}
coors = np.array([[0, 0, 2], [1, 0, 0], [0, 0, 2], [-1, 0, 0]], I32)
attn_levels = [np.array([[4, 5], [2, 3]], I32), np.array([0, 20], I32)]
cells = np.array([[0, 0, 2, 1], [0, 1, 2, 1], [1, 3, 0, 4], [1, 3, 1, 4], [0, 0, 2, 2]], I32)
sparse_grid = {
    "batch_size": 2, "spatial_shape": [4, 5, 6], "algo": 1, "ksize": [3, 3, 3], "stride": [1, 1, 1], "padding": [1, 1, 1],
    "dilation": [1, 1, 1], "out_padding": [0, 0, 0], "subm": 1, "transpose": 0,
}  # fmt: skip
stepped = {**sparse_grid, "stride": [2, 2, 2], "subm": 0}
products = {
    "is_train": 0, "is_subm": 1, "fp32_accum": 0, "act_alpha": 0.5, "act_beta": 0.0, "output_scale": 1.0,
    "output_add_scale": 0.0,
}  # fmt: skip
pair_table = RNG.integers(-1, 5, (27, 4)).astype(I32)
mask_and_order = [np.zeros((4, 1), I32), np.arange(4, dtype=I32)]
pair_lists = [RNG.integers(0, 5, (2, 27, 5)).astype(I32), np.full(27, 2, I32), np.array(5, I32)]

NODES = [
    Node("mmcv::MMCVRoiAlign", [x, rois(5)], pooled, {**pool, "mode": "avg"}),
    Node("mmcv::MMCVRoiAlign", [x, rois(5)], pooled, {**pool, "mode": "max", "sampling_ratio": 0}),
    *(Node(f"{d}::MMCVRoIAlignRotated", [x, rotated_rois(5)], pooled, {**pool, "clockwise": 1}) for d in ("mmcv", "mmdeploy")),
    Node("mmcv::NonMaxSuppression", [boxes(9), f(9)], [(I64, None)], {"iou_threshold": 0.5, "offset": 0}),
    Node("mmcv::NonMaxSuppression", [boxes(2, 9), f(2, 3, 9)], [(I32, (24, 3))],
         {"center_point_box": 0, "max_output_boxes_per_class": 4, "iou_threshold": 0.5, "score_threshold": 0.0, "offset": 0}),
    Node("mmcv::SoftNonMaxSuppression", [boxes(9), f(9)], [(F32, None), (I64, None)],
         {"iou_threshold": 0.5, "sigma": 0.5, "min_score": 0.01, "method": 1, "offset": 0}),
    *(Node(f"{d}::grid_sampler", [x, f(2, 5, 6, 2)], [(F32, (2, 4, 5, 6))],
           {"interpolation_mode": 2, "padding_mode": 1, "align_corners": 1}) for d in ("mmcv", "mmdeploy")),
    Node("mmcv::grid_sampler", [f(1, 2, 4, 5, 6), f(1, 3, 4, 5, 3)], [(F32, (1, 2, 3, 4, 5))],
         {"interpolation_mode": 0, "padding_mode": 2, "align_corners": 0}),
    Node("polyop::GridSample", [x, f(2, 5, 6, 2)], [(F32, (2, 4, 5, 6))],
         {"mode": "cubic", "padding_mode": "border", "align_corners": 1}),
    Node("polyop::GridSample", [x, f(2, 5, 6, 2)], [(F32, (2, 4, 5, 6))], {"mode": "nearest"}),
    Node("polyop::RoiAlign", [x, rois(5)[:, 1:], np.array([0, 1, 1, 0, 1])], pooled,
         {"coordinate_transformation_mode": "output_half_pixel", "mode": "avg", "output_height": 3, "output_width": 2,
          "sampling_ratio": 2, "spatial_scale": 0.5}),
    Node("polyop::NonMaxSuppression", [boxes(2, 9), f(2, 3, 9)], [(I64, None)]),
    Node("polyop::NonMaxSuppression", [boxes(2, 9), f(2, 3, 9), np.array(4, I64), np.array([0.5], F32), None],
         [(I64, None)], {"center_point_box": 1}),
    Node("polyop::InstanceNormalization", [x, f(4), f(4)], same, {"epsilon": 1e-5}),
    *(Node("mmcv::MMCVCornerPool", [x], same, {"mode": mode}) for mode in range(4)),
    *(Node(f"mmcv::{name}", [x], [(F32, x.shape), (I64, x.shape)], {"dim": -2}) for name in ("cummax", "cummin")),
    *(Node(f"{d}::MMCVModulatedDeformConv2d", [x, offset, mask, weight], convolved, deform) for d in ("mmcv", "mmdeploy")),
    Node("mmcv::MMCVModulatedDeformConv2d", [x, offset, mask, weight, f(6)], convolved,
         {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "group": 1, "deformable_groups": 2}),
    Node("mmcv::MMCVModulatedDeformConv2d", [x, offset, mask, weight, f(6)], convolved, {**deform, "bias": 1}),
    Node("mmcv::MMCVDeformConv2d", [x, offset, weight], convolved, {**deform, "im2col_step": 32, "bias": 0}),
    Node("mmcv::MMCVRotatedFeatureAlign", [x, rotated(2, 12, 10)], same, {"spatial_scale": 0.125, "points": 5}),
    *(Node("mmcv::ScatterND", [x, np.array([[0], [1]], t), x[::-1].copy()], same) for t in (I64, I32)),
    Node("mmcv::MMCVInstanceNormalization", [x, f(4), f(4)], same, {"epsilon": 1e-5}),
    Node("mmdeploy::TRTInstanceNormalization", [x, f(4), f(4)], same, {"epsilon": 1e-5}),
    Node("custom::torch_cluster_grid", [points, f(3) + 0.1, None, None], [(I64, (30,))]),
    Node("custom::torch_cluster_grid", [points, f(3) + 0.1, f(3), None], [(I64, (30,))]),
    Node("custom::torch_cluster_grid", [points, f(3) + 0.1, np.zeros(3, F32), np.ones(3, F32)], [(I64, (30,))]),
    Node("custom::knnquery", [np.array(4, I64), points, ends], [(I32, (30, 4)), (F32, (30, 4))]),
    Node("custom::knnquery", [np.array(4, I32), points, ends.astype(I64), f(7, 3), np.array([3, 7], I64)],
         [(I32, (7, 4)), (F32, (7, 4))]),
    Node("polyop::KNN", [f(2, 20, 3), f(2, 7, 3)], [(I32, (2, 4, 7))], {"k": 4, "transposed": 0}),
    Node("polyop::KNN", [f(2, 3, 20)], [(I32, (2, 4, 20))], {"k": 4, "transposed": 1}),
    Node("polyop::ThreeNN", [f(2, 7, 3), f(2, 20, 3)], [(F32, (2, 7, 3)), (I32, (2, 7, 3))]),
    *(Node(f"{d}::GetIndicePairsImplicitGemm", [cells], [(I32, None), (I32, None), (I32, None), (I32, None), (I32, ())],
           {**attributes, "is_train": 0, "do_sort": 1}) for d in ("autoware", "polyop") for attributes in (sparse_grid, stepped)),
    *(Node(f"{d}::GetIndicePairs", [cells.astype(t)], [(t, None), (I32, (2, 27, 5)), (I32, (27,)), (I32, ())], sparse_grid)
      for d in ("autoware", "polyop") for t in (I32, I64)),
    *(Node(f"{d}::ImplicitGemm", [f(5, 4), f(3, 3, 3, 3, 4), pair_table, *mask_and_order], [(F32, (4, 3))], products)
      for d in ("autoware", "polyop")),
    *(Node("autoware::ImplicitGemm", [f(5, 4) - 0.5, f(3, 3, 3, 3, 4), pair_table, *mask_and_order, f(3)], [(F32, (4, 3))],
           {**products, "act_type": activation}) for activation in range(4)),
    *(Node(f"{d}::IndiceConv", [f(5, 4), f(3, 3, 3, 3, 4), *pair_lists], [(F32, None)], {"is_subm": is_subm})
      for d in ("autoware", "polyop") for is_subm in (0, 1)),
    *(Node("polyop::ThreeInterpolate", [f(2, 4, 20), np.full((2, 7, 3), 19, t), f(2, 7, 3)], [(F32, (2, 4, 7))])
      for t in (I64, I32)),
    *(Node("polyop::GroupPoints", [f(2, 4, 20), np.full((2, 7, 3), 19, t)], [(F32, (2, 4, 7, 3))]) for t in (I64, I32)),
    *(Node("polyop::GatherPoints", [f(2, 4, 20), np.full((2, 7), 19, t)], [(F32, (2, 4, 7))]) for t in (I64, I32)),
    *(Node(f"{d}::{name}", [f(2, 20, 3)], [(I32, (2, 5))], {attribute: 5})
      for d in ("", "polyop") for name in ("FPSampling", "FurthestPointSampling") for attribute in ("sample_num", "npoint", "num_points")),
    Node("polyop::FurthestPointSamplingWithDist", [f(2, 20, 20)], [(I32, (2, 5))], {"num_points": 5}),
    Node("polyop::BallQuery", [f(2, 20, 3), f(2, 7, 3)], [(I32, (2, 7, 5))],
         {"min_radius": 0.1, "max_radius": 0.5, "sample_num": 5}),
    *(Node("polyop::StackedBallQuery", [f(20, 3), np.array([12, 8], t), f(7, 3), np.array([3, 4], t)], [(I32, (7, 5))],
           {"min_radius": 0.1, "max_radius": 0.5, "sample_num": 5}) for t in (I64, I32)),
    *(Node(name, [f(2, 20, 3), f(2, 7, 3)], [(I32, (2, 7)), (I32, (2, 7, 5))], {"radius": 0.5, "nsample": 5})
      for name in ("polyop::GridBallQuery", "::GridBallQuery", "::BallQuery", "polyop::BallQuery")),
    Node("polyop::PointsInBoxesPart", [f(2, 20, 3), f(2, 5, 7)], [(I32, (2, 20))]),
    Node("polyop::PointsInBoxesAll", [f(2, 20, 3), f(2, 5, 7)], [(I32, (2, 20, 5))]),
    Node("custom::my_add", [x, f(1, 10)], same),
    *(Node(f"{d}::DynamicTRTResize", [x, np.array([1, 1, 2, 2.5], F32)], [(F32, (2, 4, 24, 25))])
      for d in ("Just_A_Scope_Name", "custom")),
    Node("polyop::CubicResize", [x, np.array([24, 25], I64)], [(F32, (2, 4, 24, 25))]),
    Node("mmdeploy::NMSRotated", [rotated(2, 9), f(2, 3, 9)], [(I64, None)], {"iou_threshold": 0.5, "score_threshold": 0.1}),
    Node("mmdeploy::NMSRotated", [rotated(9), f(9)], [(I64, None)], {"iou_threshold": 0.5, "score_threshold": 0.1}),
    Node("mmdeploy::NMSMatch", [boxes(2, 9), f(2, 3, 9), np.array([0.5], F32), np.array([0], F32)], [(I64, None)]),
    Node("mmdeploy::TRTBatchedNMS", [boxes(2, 9, 1), f(2, 9, 3)], [(F32, (2, 4, 5)), (I32, (2, 4))], batched),
    Node("mmdeploy::TRTBatchedNMS", [boxes(2, 9, 3), f(2, 9, 3)], [(F32, (2, 4, 5)), (I32, (2, 4)), (I32, (2, 4))],
         {**batched, "return_index": 1}),
    Node("mmdeploy::TRTBatchedRotatedNMS", [rotated(2, 9, 1), f(2, 9, 3)], [(F32, (2, 4, 6)), (I32, (2, 4))], batched),
    Node("mmdeploy::MMCVMultiLevelRoiAlign", [rois(5), x, f(2, 4, 6, 5)], pooled, levels),
    Node("org.openvinotoolkit::ExperimentalDetectronROIFeatureExtractor", [rois(5)[:, 1:] * 20, x[:1], f(1, 4, 6, 5)],
         [(F32, (5, 4, 3, 3))], {"output_size": 3, "pyramid_scales": [4, 8], "sampling_ratio": 2, "aligned": 1}),
    *(Node("polyop::MatrixFactors", [f(2, 4, 3)], [(F32, (2, 4, 3)), (F32, (2, 3)), (I32, (2, 3)), (I32, (2,))],
           {"method": method}) for method in ("lu", "qr")),
    *(Node("polyop::MatrixSolve", [f(2, 3, 3), f(2, 3, 4)], [(F32, (2, 3, 4)), (I32, (2,))], a)
      for a in ({"transpose": 1}, {"method": "cholesky"})),
    Node("polyop::MatrixSolve", [f(2, 3, 3), f(2, 3, 4), np.array([[3, 2, 3], [1, 3, 3]], I32)],
         [(F32, (2, 3, 4)), (I32, (2,))], {"method": "lu"}),
    Node("polyop::MatrixFactors", [f(2, 4, 4)], [(F32, (2, 4, 4)), (F32, (2, 4)), (I32, (2, 4)), (I32, (2,))],
         {"method": "ldl"}),
    Node("polyop::SlogDet", [f(2, 3, 3)], [(F32, (2,)), (F32, (2,))]),
    *(Node("polyop::QR", [f(2, 4, 3)], [(F32, (2, 4, k)), (F32, (2, k, 3))], {"complete": k - 3}) for k in (3, 4)),
    # The sum is that of fewer elements, too.
    *(Node("polyop::RepeatIndices", [np.array([5, *[0] * 7], t), np.array(5, I64)], [(I64, (5,))]) for t in (I32, I64)),
    *(Node("polyop::Gcd", [np.array([[0, 12, -35]], t), np.array([[-6, 18, 14]], t)], [(t, (1, 3))]) for t in (I32, I64)),
    Node("polyop::SpecialUnary", [f(2, 3)], [(F32, (2, 3))], {"function": "bessel_i", "variant": 3}),
    *(Node("polyop::SpecialUnary", [np.array([[0.01, 0.1, 0.5], [0.6, 0.9, 0.99]], F32)], [(F32, (2, 3))],
           {"function": "elementary", "variant": i}) for i in (6, 7)),
    *(Node(f"polyop::{name}", [np.array([[-0.9, 0, 0.1], [0.5, 0.6, 0.9]], F32)], [(F32, (2, 3))])
      for name in ("Tan", "Sinh", "Cosh", "Atanh")),
    Node("polyop::SpecialBinary", [f(2, 3), f(2, 3)], [(F32, (2, 3))], {"function": "igammac"}),
    Node("polyop::ScatterReduce", [f(3, 4), np.array([[2, 0, 2, -1], [0, 0, 1, 1]], I64), f(2, 4)], [(F32, (3, 4))],
         {"reduction": "max"}),
    *(Node("polyop::ScatterReduce", [f(3, 4), np.array([3, 0], np.int32), f(3, 2)], [(F32, (3, 4))],
           {"axis": 1, "reduction": how, "include_self": included})
      for how, included in (("mean", 0), ("mean", 1), ("mul", 0), ("min", 0), ("add", 1))),
    *(Node(f"polyop::{name}", [f(3, 4, 5)], [(F32, (3, 4, 5))], {"axis": axis, "exclusive": exclusive, "reverse": reverse})
      for name, axis, exclusive, reverse in (("CumSum", 1, 0, 0), ("CumSum", -1, 1, 1), ("CumProd", 0, 0, 1), ("CumProd", 2, 1, 0))),
    Node("polyop::RandomDistribution", [np.array([1, 2], I64), f(2, 3)], [(F32, (2, 3))], {"distribution": "gamma"}),
    *(Node("polyop::SpecialBinary", [f(2, 3), f(2, 3) + 0.1], [(F32, (2, 3))], {"function": "elementary", "variant": i})
      for i in range(11)),
    Node("polyop::Softmax", [f(2, 3, 4)], [(F32, (2, 3, 4))], {"axis": 1}),
    Node("polyop::LogSoftmax", [f(2, 3, 4)], [(F32, (2, 3, 4))], {"axis": -2}),
    Node("polyop::Eig", [f(2, 4, 4)], [(F32, (2, 4, 2)), (F32, (2, 4, 4, 2))], {"vectors": 1}),
    Node("polyop::Eigh", [f(2, 4, 4)], [(F32, (2, 4)), (F32, (2, 4, 4))], {"upper": 1}),
    Node("polyop::SVD", [f(2, 4, 3)], [(F32, (2, 4, 4)), (F32, (2, 3)), (F32, (2, 3, 3))], {"full_matrices": 1}),
    Node("polyop::SearchSorted", [np.sort(f(2, 7)), f(2, 3)], [(I64, (2, 3))], {"right": 1}),
    Node("polyop::OrderStatistic", [f(2, 3, 5)], [(F32, (2, 3)), (I64, (2, 3))], {"statistic": "kth", "k": 2}),
    Node("polyop::DFT", [f(2, 7, 1)], [(F32, (2, 7, 2))]),
    Node("polyop::DFT", [f(2, 2, 3, 4, 1)], [(F32, (2, 2, 3, 4, 2))], {"dimensions": 4}),
    *(Node("polyop::CDist", [f(2, 3, 4), f(2, 5, 4)], [(F32, (2, 3, 5))], {"p": p}) for p in (0.0, 1.0, 2.0, 2.5, np.inf)),
    *(Node("polyop::CDist", [rows, rows], [(F32, (2, 1, 10))], {"p": p, "condensed": 1})
      for rows, p in ((f(2, 5, 3), 1.0), (f(2, 5, 3), 2.0))),
    *(Node("polyop::NonZero", [x], [(I64, None)], {"dimensions": d})
      for x in (f(3, 2, 4) > 0.5, np.array([[[0, 1, 0, 7]]], I64), np.array([[[0, 1.5]]], F32)) for d in (1, 2, 3, 5)),
    *(Node("polyop::RunStarts", [np.array([5, 5, -1, 7, 7, 5], t)], [(I64, None)]) for t in (I64, I32, F32)),
    Node("polyop::DFT", [f(3, 2, 6, 5, 2)], [(F32, (3, 2, 6, 5, 2))], {"dimensions": 2, "inverse": 1, "norm": "ortho"}),
    Node("polyop::DFT", [f(2, 4, 6, 1)], [(F32, (2, 4, 4, 2))], {"dimensions": 2, "onesided": 1}),
    Node("polyop::DFT", [f(2, 4, 2)], [(F32, (2, 7, 1))], {"inverse": 1, "onesided": 1, "odd": 1, "norm": "forward"}),
    *(Node("polyop::DeformConv", [x, weight, offset, *more], convolved, {"pads": [1, 1, 1, 1], "offset_group": 2})
      for more in ([], [f(6)], [None, mask], [f(6), mask])),
    Node("org.openvinotoolkit::DeformableConv2D", [x, offset, weight], convolved,
         {"strides": [1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1], "group": 1, "deformable_groups": 2}),
    Node("mmdeploy::MMCVMultiLevelRotatedRoiAlign", [rotated_rois(5), x, f(2, 4, 6, 5)], pooled,
         {**{k: v for k, v in levels.items() if k != "pool_mode"}, "clockwise": 1}),
    Node("mmdeploy::MMCVMultiScaleDeformableAttention",
         [f(2, 26, 3, 4), np.array([[4, 5], [2, 3]], I64), np.array([0, 20], I64), f(2, 7, 3, 2, 4, 2), f(2, 7, 3, 2, 4)],
         [(F32, (2, 7, 12))]),
    Node("mmdeploy::GridPriorsTRT", [f(3, 4), np.zeros(4, I64), np.zeros(5, I64)], [(F32, (60, 4))],
         {"stride_h": 8, "stride_w": 16}),
    Node("mmdeploy::ScaledDotProductAttentionTRT", [f(2, 5, 8), f(2, 6, 8), f(2, 6, 8)], [(F32, (2, 5, 8)), (F32, (2, 5, 6))]),
    Node("mmdeploy::ScaledDotProductAttentionTRT", [f(2, 5, 8), f(2, 6, 8), f(2, 6, 8), f(5, 6)],
         [(F32, (2, 5, 8)), (F32, (2, 5, 6))]),
    Node("mmdeploy::GatherTopk", [f(2, 9, 4), np.array([[8, 0], [3, 3]], I32)], [(F32, (2, 2, 4))]),
    *(Node(f"{d}::EfficientNMS_TRT", [boxes(2, 9), f(2, 9, 3)], detected, efficient) for d in ("", "TRT", "polyop")),
    Node("polyop::EfficientNMS_TRT", [boxes(2, 9, 1), f(2, 9, 3)], detected, efficient),
    Node("TRT::EfficientNMS_TRT", [boxes(2, 9), f(2, 9, 1), boxes(1, 9)], detected,
         {**efficient, "box_coding": 1, "score_activation": 1, "class_agnostic": 1}),
    *(Node(f"{d}::EfficientNMSX_TRT", [boxes(2, 9, 3), f(2, 9, 3)], [*detected, (I32, (2, 4))], efficient)
      for d in ("", "TRT", "polyop")),
    *(Node(name, [f(2, 4, 3, 2), f(2, 3, 2, 5), *ranks], [(F32, (1, 3, 4, 5))], {"out_height": 3, "out_width": 4})
      for name in ("mmdeploy::bev_pool_v2", "::BEVPoolV2TRT", "custom::BEVPoolV2TRT2")),
    *(Node(name, [f(2, 4, 3, 2), f(2, 3, 2, 5), *ranks], [(F32, shape)], {"output_height": 3, "output_width": 4, "output_z": z})
      for name in ("mmdeploy::bev_pool_v2", "::BEVPoolV2TRT", "polyop::BEVPoolV2TRT2")
      for z, shape in ((1, (1, 3, 4, 5)), (2, (1, 2, 3, 4, 5)))),
    Node("mmdeploy::bev_pool_v2", [f(2, 4, 3, 2), f(2, 3, 2, 5), *ranks], [(F32, (1, 3, 3, 2, 5))],
         {"out_height": 3, "out_width": 2, "output_z": 3}),
    Node("autoware::QuickCumsumCuda", [f(3, 5), pillars[:, [2, 3, 1, 0]], np.array([1, 2], I32), np.array([0, 1], I32)],
         [(F32, (2, 1, 3, 4, 5))], {"batch_size": 2, "dimension": 1, "height": 3, "width": 4}),
    Node("polyop::PillarScatter", [f(3, 5), pillars], [(F32, (2, 5, 3, 4))], {"dense_shape": [3, 4], "batch_size": 2}),
    *(Node(f"{d}::PPScatterPlugin", [f(3, 5), pillars, np.array([2], I32)], [(F32, (1, 5, 3, 4))], {"dense_shape": [3, 4]})
      for d in ("", "polyop")),
    *(Node(f"{d}::PillarScatterPlugin", [f(2, 3, 5), np.stack([pillars] * 2), np.array([2, 3], I32)], [(F32, (2, 5, 3, 4))],
           {"dense_shape": [3, 4]}) for d in ("", "polyop")),
    *(Node("mmdeploy::TRTDCNv3", [f(2, 9, 8, 12), f(2, 5, 4, 3 * p * 2), f(2, 5, 4, 3 * p)], [(F32, (2, 5, 4, 12))],
           {**window, "offset_scale": 0.5, "im2col_step": 256, **removed})
      for p, removed in ((9, {}), (9, {"remove_center": 0}), (8, {"remove_center": 1}))),
    Node("polyop::DCNv4", [f(2, 9, 8, 12), f(2, 5, 4, 88)], [(F32, (2, 5, 4, 12))],
         {**window, "offset_scale": 0.5, "im2col_step": 256, "remove_center": 0}),
    *(Node(f"mmcv::{name}", [x, f(2, 50, 24, 20)], [(F32, (2, 4, 24, 20))],
           {"kernel_size": 5, "group_size": 2, "scale_factor": 2.0}) for name in ("MMCVCARAFE", "MMCVCARAFENaive")),
    Node("mmcv::MMCVBorderAlign", [x, boxes(2, 7)], [(F32, (2, 1, 7, 4))], {"pool_size": 10}),
    *(Node("mmcv::MMCVDeformRoIPool", [x, rois(5), *offset_of], pooled,
           {"pooled_height": 3, "pooled_width": 2, "spatial_scale": 0.5, "sampling_ratio": 0.0, "gamma": 0.1})
      for offset_of in ([], [f(5, 2, 3, 2)])),
    Node("mmcv::PrRoIPool", [x, rois(5)], pooled, {"pooled_height": 3, "pooled_width": 2, "spatial_scale": 0.5}),
    *(Node(name, [x, rois(5)], [*pooled, (I32, pooled[0][1])], {"output_height": 3, "output_width": 2, "spatial_scale": 0.5, **rounded})
      for name, rounded in (("polyop::RoIPool", {}), ("polyop::RoIPool", {"rounded": 0}), ("mmcv::MMCVRoIPool", {}))),
    *(Node("mmcv::MMCVPSAMask", [f(2, 35, 4, 3)], [(F32, (2, 12, 4, 3))], {"psa_type": kind, "mask_size": [7, 5]})
      for kind in (0, 1)),
    *(Node("mmcv::MMCVMaskedConv2d", [x[:1], where, weight, f(6)], [(F32, (1, 6, 12, 10))], {"stride": s, "padding": p})
      for where in (f(1, 12, 10) - 0.5, f(1, 12, 10) > 0.5) for s, p in (([1], [1]), ([1, 1], [1, 1]))),
    *(Node("polyop::FlashDeformAttn",
           [f(2, 26, 3, 4), np.array([[4, 5], [2, 3]], t), np.array([0, 20], t), f(2, 7, 3, 24)], [(F32, (2, 7, 12))],
           {"points": 4, "im2col_step": 64}) for t in (I64, I32)),
    Node("polyop::HardVoxelize", [f(30, 4)], [(F32, None), (I32, None), (I32, None)], voxels),
    Node("polyop::HardVoxelize", [f(2, 30, 4)], [(F32, (2, 8, 3, 4)), (I32, (2, 8, 3)), (I32, (2, 8)), (I32, (2,))],
         {**voxels, "return_voxel_num": 1}),
    Node("polyop::DynamicVoxelize", [f(30, 5) * 1.2 - 0.1], [(I32, (30, 3))], grid),
    *(Node(f"{d}::VoxelGeneratorPlugin", [f(2, 30, 4), np.array([30, 7], I32)],
           [(F32, (2, 8, 3, 10)), (I32, (2, 8, 4)), (I32, (2,))], generator) for d in ("", "TRT", "polyop")),
    *(Node("polyop::DynamicScatter", [f(4, 5), coors.astype(t)], [(F32, (2, 5)), (t, (2, 3)), (I32, (4,)), (I32, (2,))],
           {"reduce_type": reduce}) for reduce, t in (("max", I64), ("mean", I32), ("sum", I64))),
    *(Node(f"{d}::SegmentCSR", [f(9, 5) + 0.5, np.array([1, 4, 4, 8], t)], [(F32, (3, 5))], {"reduce": reduce})
      for d, t in (("autoware", I64), ("", I32)) for reduce in ("sum", "mean", "mul", "div", "min", "max")),
    *(Node("polyop::EmbeddingBag", [f(6, 5) - 0.5, np.array([1, 5, 2, 2, 0, 2], t), np.array([0, 3, 3, 5], t)], [(F32, (rows, 5))],
           {"mode": mode, "include_last_offset": 4 - rows, "padding_idx": padding})
      for mode in ("sum", "mean", "max") for t, rows, padding in ((I64, 4, -1), (I32, 3, 2))),
    Node("polyop::EmbeddingBag", [f(6, 5), np.array([1, 5, 2], I64), np.array([0, 2], I64), f(3)], [(F32, (2, 5))]),
    *(Node(f"{d}::CustomUnique", [np.array([5, -1, 5, 7], t)], [(t, (3,)), (I64, (4,)), (I64, (3,)), (I64, ())])
      for d, t in (("autoware", I64), ("", I32))),
    *(Node(f"{d}::Argsort", [np.array([5, -1, 5, 7], t)], [(I64, (4,))]) for d, t in (("autoware", I64), ("", I32))),
    Node("polyop::Argsort", [f(2, 3, 5)], [(I64, (2, 3, 5))], {"descending": 1}),
    *(Node(f"{d}::SelectAndPadPlugin", [f(2, 6, 3), np.array([0, 1, 0, 2, 1, 1], t), f(3)], [(F32, (2, rows, 3))], {"P": rows})
      for d in ("", "polyop") for rows, t in ((3, I32), (7, I64))),
    *(Node(f"{d}::DecodeBbox3DPlugin", [f(2, 3, 4, 6), f(2, 3, 4, 14), f(2, 3, 4, 4)], [(F32, (2, 24, 9)), (I32, (2,))], decoded)
      for d in ("", "polyop")),
    Node("polyop::NMS3D", [boxes3d(9), f(9)], [(I64, None)], {"iou_threshold": 0.5}),
    Node("polyop::NMS3D", [boxes3d(9), f(9)], [(I64, None)], {"iou_threshold": 0.5, "normal": 1}),
    *(Node("polyop::BoxesIoU3D", [boxes3d(9), boxes3d(4)], [(F32, (9, 4))], {"mode": mode}) for mode in range(3)),
    *(Node(name, [rotated(9), rotated(4)], [(F32, (9, 4))], {"mode": mode})
      for name in ("polyop::BoxIoURotated", "mmcv::MMCVBoxIoURotated") for mode in ("iou", "iof")),
    Node("polyop::BoxIoURotated", [rotated(9, 1), rotated(9, 1)], [(F32, (9, 1, 1))]),
    *(Node(name, [f(30, 2) * 4, f(7, 8) * 4], [(I32, (30, 7))])
      for name in ("polyop::PointsInPolygons", "mmcv::MMCVPointsInPolygons")),
    Node("polyop::RoIPointPool3d", [f(2, 20, 3), f(2, 20, 4), boxes3d(2, 5)], [(F32, (2, 5, 6, 7)), (I32, (2, 5))],
         {"num_sampled_points": 6}),
    *(Node("polyop::RoIAwarePool3d", [boxes3d(5), f(60, 3) * 4, f(60, 4)], [(F32, (5, 2, 3, 2, 4))],
           {"out_size": [2, 3, 2], "max_pts_per_voxel": 4, "mode": mode}) for mode in ("max", "avg")),
    *(Node(f"{d}::{name}", [x, offset, mask, weight, f(6)], convolved,
           {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "group": 1, "deformable_group": 2})
      for d in ("", "polyop") for name in ("ModulatedDeformConv2d",)),
    *(Node(f"::ModulatedDeformableConv2dTRT{n}", [x, offset, mask, weight], convolved, deform) for n in ("", "2")),
    *(Node(f"{d}::MultiscaleDeformableAttnPlugin_TRT", [f(2, 26, 3, 4), *attn_levels, f(2, 7, 3, 2, 4, 2), f(2, 7, 3, 2, 4)],
           [(F32, (2, 7, 3, 4))]) for d in ("", "TRT", "polyop")),
    *(Node(f"{d}::MultiScaleDeformableAttentionPlugin", [f(2, 26, 3, 4), *attn_levels, f(2, 7, 3, 2, 4, 2), f(2, 7, 3, 2, 4)],
           [(F32, (2, 7, 12))]) for d in ("", "polyop")),
    *(Node(f"{d}::MultiScaleDeformableAttnTRT{n}",
           [f(2, 26, 3, 4), attn_levels[0], f(2, 7, 1, 4), f(2, 7, 3, 16) * 4 - 2, f(2, 7, 3, 8)], [(F32, (2, 7, 3, 4))])
      for d in ("", "polyop") for n in ("", "2")),
    *(Node(name, [x[0], np.array(30, F32), np.array([5, 6.5], F32)], [(F32, (4, 12, 10))], {"interpolation": i})
      for i, name in enumerate(["::RotateTRT", "polyop::RotateTRT2"])),
    Node("::RotatePlugin", [x[0], np.array([-90], F32), np.array([5, 6], F32)], [(F32, (4, 12, 10))], {"interpolation": 0}),
    *(Node(f"{d}::ROIAlign{n}_TRT", [x, rois(5)[:, 1:], np.array([0, 1, 1, 0, 1], I32)], pooled,
           {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.5, "mode": mode,
            "coordinate_transformation_mode": mode})
      for d in ("", "TRT") for n in ("", "X") for mode in (0, 1)),
    *(Node(f"{d}::GridSampler2DTRT{n}", [x, f(2, 2, 5, 6) * 20 - 10], [(F32, (2, 4, 5, 6))],
           {"interpolation_mode": 0, "padding_mode": 0, "align_corners": 0}) for d in ("", "polyop") for n in ("", "2")),
    *(Node(f"{d}::GridSampler3DTRT{n}", [f(1, 2, 4, 5, 6), f(1, 3, 3, 4, 5) * 20 - 10], [(F32, (1, 2, 3, 4, 5))],
           {"interpolation_mode": 1, "padding_mode": 1, "align_corners": 1}) for d in ("", "polyop") for n in ("", "2")),
    *(Node(f"{d}::InverseTRT", [f(2, 3, 4, 4)], [(F32, (2, 3, 4, 4))]) for d in ("", "polyop")),
    *(Node(f"{d}::QKVTRT{n}", [f(2, 5, 8), f(2, 6, 8), f(2, 6, 7)], [(F32, (2, 5, 7))])
      for d in ("", "polyop") for n in ("", "2")),
    Node("mmdeploy::TRTBicubicInterpolate", [x], [(F32, (2, 4, 24, 30))], {"scale_factor": [2.0, 3.0], "align_corners": 0}),
    *(Node("polyop::RiRoIAlignRotated", [x, rotated_rois(5)], pooled,
           {"pooled_height": 3, "pooled_width": 2, "spatial_scale": 0.5, "num_samples": samples, "num_orientations": 4, "clockwise": 1})
      for samples in (0, 2)),
    *(Node("polyop::BezierAlign", [x, np.concatenate([rois(5)[:, :1], f(5, 16) * 20], 1)], pooled,
           {"output_height": 3, "output_width": 2, "spatial_scale": 0.5, "sampling_ratio": ratio, "aligned": aligned})
      for ratio, aligned in ((2, 1), (0, 0))),
    *(Node("polyop::ActiveRotatedFilter", [f(3, 2, 4, 3, 3), RNG.permuted(np.tile(np.arange(36) + 1, (8, 1)), axis=1).T.reshape(4, 3, 3, 8).astype(t)],
           [(F32, (24, 8, 3, 3))]) for t in (I32, I64)),
    *(Node("polyop::AssignScoreWithK", [f(2, 7, 3, 4), f(2, 9, 4, 5), f(2, 9, 4, 5), RNG.integers(0, 10, (2, 7, 3)).astype(t)],
           [(F32, (2, 5, 7, 3))]) for t in (I32, I64)),
    Node("polyop::MinAreaPolygons", [f(9, 18) * 10], [(F32, (9, 8))]),
    *(Node("polyop::BoxIoUQuadri", [f(*lead, 9, 8) * 4, f(*lead, 4, 8) * 4], [(F32, (*lead, 9, 4))], {"mode": mode})
      for lead in ((), (2,)) for mode in ("iou", "iof")),
    Node("polyop::NMSQuadri", [f(9, 8) * 4, f(9)], [(I64, None)], {"iou_threshold": 0.5, "score_threshold": 0.1}),
    *(Node("polyop::DiffIoURotated", [f(2, 9, 2 * d + 1) * 3 + 0.5, f(2, 9, 2 * d + 1) * 3 + 0.5], [(F32, (2, 9))], {"dimensions": d})
      for d in (2, 3)),
    Node("polyop::ConvexIoU", [f(9, 18) * 4, f(4, 8) * 4], [(F32, (9, 4))]),
    Node("polyop::Correlation", [x, f(*x.shape)], [(F32, (2, 5, 5, 12, 10))], {"max_displacement": 2, "dilation_patch": [2, 1]}),
    Node("polyop::Correlation", [x, f(*x.shape)], [(F32, (2, 3, 3, 6, 5))], {"kernel_size": [3], "padding": [1], "stride": [2, 2]}),
    Node("polyop::CorrelationLookup", [f(2, 3, 4, 5, 6), f(2, 2, 3, 4) * 6], [(F32, (2, 81, 3, 4))]),
    Node("polyop::CorrelationLookup", [f(2, 3, 4, 1, 9), f(2, 2, 3, 4) * 2], [(F32, (2, 7, 3, 4))], {"radius": [0, 3]}),
    *(Node("polyop::SelectiveScan", [f(2, 6, n), f(2, 6, n), -f(6, 3), f(2, groups, 3, n), f(2, groups, 3, n), f(6), *rest],
           [(F32, (2, 6, n)), (F32, (2, 6, 3))], {"delta_softplus": softplus})
      for n, groups, softplus, rest in ((9, 2, 0, [f(2, 6, 9), f(6), f(2, 6, 3)]), (5, 1, 1, []), (1, 1, 1, [None, f(6), f(2, 6, 3)]))),
    *(Node("polyop::CausalConv1d", [f(2, 6, 9), f(6, 4), *rest], [(F32, (2, 6, 9)), (F32, (2, 6, 3))], {"activation": activation})
      for activation, rest in (("silu", [f(6), f(2, 6, 3)]), ("none", []))),
    *(Node("polyop::NeighborhoodAttention", [f(2, *sizes, 2, 4), f(2, *sizes, 2, 4), f(2, *sizes, 2, 3)], [(F32, (2, *sizes, 2, 3))], window)
      for sizes, window in (((9,), {"kernel_size": [4], "is_causal": [1]}), ((7, 6), {"kernel_size": [3], "dilation": [2, 1], "scale": 0.5}),
                            ((3, 4, 5), {"kernel_size": [2, 3, 3]}))),
    *(Node("polyop::ChamferDistance", [f(2, 7, d), f(2, 20, d)], [(F32, (2, 7)), (F32, (2, 20)), (I32, (2, 7)), (I32, (2, 20))])
      for d in (2, 3)),
    Node("polyop::ConvexGIoU", [f(9, 18) * 4, f(9, 8) * 4], [(F32, (9, 19))]),
    Node("polyop::DiffIoURotatedSortVertices", [f(2, 5, 24, 2) - 0.5, f(2, 5, 24) < 0.3, RNG.integers(0, 9, (2, 5)).astype(I32)],
         [(I32, (2, 5, 9))]),
    *(Node("polyop::ContourExpand", [(f(3, 9, 8) > 0.3).astype(t), (f(9, 8) > 0.9).astype(I32)], [(I32, (9, 8))],
           {"min_kernel_area": 2}) for t in (np.uint8, np.bool_)),
    *(Node("polyop::PixelGroup", [f(9, 8), (f(9, 8) > 0.3).astype(t), f(9, 8, 4), (f(9, 8) * 3.5).astype(I32), np.ones((9, 8), t)],
           [(I32, (9, 8)), (F32, (4,)), (I32, (4,))], {"kernel_region_num": 4, "distance_threshold": 0.5})
      for t in (np.uint8, np.bool_)),
    *(Node("polyop::QuantizedCubicResize", [codes(t, *x.shape), np.array([7, 15])], [(t, (2, 4, 7, 15))], steps(t)) for t in (np.uint8, np.int8)),
    *(Node("polyop::QuantizedDeformConv",
           [codes(t, 2, 4, 9, 8), codes(np.int8, 6, 2, 3, 3), f(6) * 0.01, f(2, 18, 7, 6) * 3, *rest], [(t, (2, 6, 7, 6))],
           {"group": 2, **steps(t)})
      for t, rest in ((np.uint8, [f(6), f(2, 9, 7, 6)]), (np.int8, []))),
    *(Node("polyop::QuantizedGridSample", [codes(t, 2, 4, *sizes), f(2, *[5] * len(sizes), len(sizes)) * 2 - 1],
           [(t, (2, 4, *[5] * len(sizes)))], {"mode": mode, **steps(t)})
      for t, sizes, mode in ((np.uint8, (9, 8), "cubic"), (np.int8, (4, 6, 5), "linear"))),
    *(Node("polyop::QuantizedMultiScaleDeformableAttention",
           [codes(t, 2, 26, 2, 4), np.array([[4, 5], [2, 3]]), np.array([0, 20]), f(2, 3, 2, 2, 2, 2), f(2, 3, 2, 2, 2)],
           [(t, (2, 3, 8))], steps(t)) for t in (np.uint8, np.int8)),
    *(Node("polyop::QuantizedRoiAlign", [codes(t, *x.shape), boxes(5), RNG.integers(0, 2, 5)], [(t, (5, 4, 3, 2))],
           {"output_height": 3, "output_width": 2, "sampling_ratio": 2, **steps(t)}) for t in (np.uint8, np.int8)),
]  # fmt: skip
