// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/points/point_count.h"

namespace polyop {

/// Finds the nearest neighbour of each point of two clouds in the other cloud.
struct ChamferDistance {
  static constexpr const char* kName = "chamfer_distance";
  static constexpr Signature kSignature =
      "xyz1: T[B, N, D], xyz2: T[B, M, D] -> dist1: T[B, N], dist2: T[B, M], idx1: i32[B, N], idx2: i32[B, M]";
  static constexpr NodeName kNodes[] = {"polyop::ChamferDistance"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Finds the nearest point of the other cloud and its squared distance for each point of two clouds.",
      .semantics = R"(Points have 2 or 3 coordinates. Distances are compared in fp64; of points at the same distance,
          the one with the lowest index is chosen. A point with a NaN or infinite coordinate is never a neighbour and
          has none: its index is 0 and its distance infinite. An empty cloud is an error if the other cloud has
          points.)",
      .source = R"(`mmcv.ops.chamfer_distance`; H. Fan, H. Su, L. Guibas, A Point Set Generation Network for 3D Object
          Reconstruction from a Single Image, 2017)",
      .differences = R"(MMCV accepts 2 coordinates only and compares all pairs in the points' own type. polyop's search
          is exact too, but uses a k-d tree.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &a = inputs[0].shape, &b = inputs[1].shape;
    if (a[2] != 2 && a[2] != 3) return InvalidArgument("'xyz1': expected points of 2 or 3 coordinates, got ", a[2]);
    POLYOP_RETURN_IF_ERROR(CheckPointCount("xyz1", inputs[0], 1));
    POLYOP_RETURN_IF_ERROR(CheckPointCount("xyz2", inputs[1], 1));
    if (a[0] == 0 || (a[1] == 0) == (b[1] == 0)) return Status::Ok();
    return InvalidArgument(a[1] == 0 ? "'xyz1'" : "'xyz2'", ": expected at least 1 point, because ",
                           a[1] == 0 ? "'xyz2'" : "'xyz1'", " has points; got 0");
  }
};

}  // namespace polyop
