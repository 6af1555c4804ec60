# SPDX-License-Identifier: Apache-2.0
"""Calls that every runtime refuses with the same message."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

BOXES = np.array([[0, 0, 4, 4], [1, 1, 5, 5]], np.float32)
SCORES = np.array([0.9, 0.8], np.float32)
IMAGE = np.zeros((1, 2, 4, 4), np.float32)
ROIS = np.zeros((1, 5), np.float32)
PYRAMID = [np.zeros((1, 1, 4, 4), np.float32)]


@dataclass(frozen=True)
class Wrong:
    """A call that is refused, and a part of the message."""

    what: str
    operator: str
    node: str
    inputs: tuple
    message: str
    attributes: dict = field(default_factory=dict)
    node_attributes: dict | None = None  # if the node's names or codes differ from the operator's
    not_in: dict = field(default_factory=dict)  # runtime: why it cannot run the call
    outputs: tuple = ("y",)


ALIGN = {"output_height": 2, "output_width": 2}
LEVELS = {**ALIGN, "finest_scale": 56, "roi_scale_factor": -1.0}
STATIC = "TensorRT's parser checks types and ranks first"

WRONG = [
    Wrong("attribute out of range", "roi_align", "mmcv::MMCVRoiAlign", (IMAGE, ROIS),
          "attribute 'output_height': expected a number in [1, 4096], got 0", {**ALIGN, "output_height": 0}),
    Wrong("attribute too small for the kernel's type", "soft_nms", "mmcv::SoftNonMaxSuppression", (BOXES, SCORES),
          "attribute 'sigma': expected", {"sigma": 1e-50}, outputs=("dets", "keep")),  # a file holds 0, PyTorch 1e-50
    Wrong("unknown choice", "roi_align", "mmcv::MMCVRoiAlign", (IMAGE, ROIS),
          "attribute 'mode': expected one of {avg, max}, got median", {**ALIGN, "mode": "median"}),
    Wrong("unknown code", "grid_sampler", "mmcv::grid_sampler",
          (IMAGE, np.zeros((1, 3, 3, 2), np.float32)),
          "attribute 'interpolation_mode': expected", {"interpolation_mode": "cubic"}, {"interpolation_mode": 7}),
    Wrong("rank", "roi_align", "mmcv::MMCVRoiAlign", (IMAGE[0], ROIS),
          "'input': expected rank 4, got 3 (shape [2, 4, 4] for [N, C, H, W])", ALIGN),
    Wrong("extent", "roi_align", "mmcv::MMCVRoiAlign", (IMAGE, ROIS[:, :4]),
          "'rois': expected dimension 1 to be 5, got 4 (shape [1, 4] for [R, 5])", ALIGN),
    Wrong("extents that belong together", "nms", "mmcv::NonMaxSuppression", (BOXES, SCORES[:1]),
          "expected dimension 0 to be N = 2 as in 'boxes', got 1"),
    Wrong("nine dimensions", "my_add", "custom::my_add", (np.zeros((1,) * 9, np.float32), SCORES[:1]),
          "'a': expected at most 8 dimensions, got 9",
          not_in={"tensorrt": "it has at most 8 dimensions itself"}),
    Wrong("element type", "roi_align", "mmcv::MMCVRoiAlign", (IMAGE.astype(np.int32), ROIS),
          "no kernel takes inputs (i32[1, 2, 4, 4], f32[1, 5])", ALIGN,
          not_in={"onnxruntime": "it refuses the type when it loads the model", "program": "the same",
                  "tensorrt": STATIC}),
    Wrong("too many tensors", "multi_level_roi_align", "mmdeploy::MMCVMultiLevelRoiAlign", (ROIS, *PYRAMID * 17),
          "'feats': expected at most 16 tensors, got 17", {**LEVELS, "featmap_strides": [4.0] * 16}),
    Wrong("far too many tensors", "multi_level_roi_align", "mmdeploy::MMCVMultiLevelRoiAlign", (ROIS, *PYRAMID * 40),
          "'feats': expected at most 16 tensors, got 40", {**LEVELS, "featmap_strides": [4.0] * 16}),
    Wrong("too few inputs", "multi_level_roi_align", "mmdeploy::MMCVMultiLevelRoiAlign", (ROIS,),
          "expected at least 2 inputs, got 1", {**LEVELS, "featmap_strides": [4.0]},
          not_in={"onnxruntime": "it counts inputs when it loads the model", "program": "the same"}),
    Wrong("size that overflows", "grid_priors", "mmdeploy::GridPriorsTRT",
          (np.zeros((2**20, 4), np.float32), np.zeros(2**20, np.float32), np.zeros(2**20, np.float32)),
          "expected a size that fits in 64 bits", {"stride_h": 1, "stride_w": 1},
          not_in={"tensorrt": "its extents have 32 bits"}),
]  # fmt: skip
