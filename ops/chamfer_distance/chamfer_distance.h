#pragma once

#include "core/operator.h"
#include "families/points/point_count.h"

namespace polyop {

/// How far each point of two clouds is from the other cloud.
struct ChamferDistance {
  static constexpr const char* kName = "chamfer_distance";
  static constexpr Signature kSignature =
      "xyz1: T[B, N, D], xyz2: T[B, M, D] -> dist1: T[B, N], dist2: T[B, M], idx1: i32[B, N], idx2: i32[B, M]";
  static constexpr NodeName kNodes[] = {"polyop::ChamferDistance"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Of each point of one cloud the nearest point of the other, and its squared distance, both ways.",
      .semantics =
          "Points have 2 or 3 coordinates. Distances are compared in fp64; of points at the same distance the one with "
          "the lowest index is taken. A point with NaN or infinity in it is nobody's neighbour and has none: index 0 "
          "at an infinite distance. A cloud without points is an error where the other has some.",
      .source =
          "`mmcv.ops.chamfer_distance`; H. Fan, H. Su, L. Guibas, A Point Set Generation Network for 3D Object "
          "Reconstruction from a Single Image, 2017",
      .differences =
          "MMCV takes points of 2 coordinates alone, and compares every point with every other, in their own type. The "
          "search here is exact too, but in a k-d tree.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &a = inputs[0].shape, &b = inputs[1].shape;
    if (a[2] != 2 && a[2] != 3) return InvalidArgument("'xyz1' has points of ", a[2], " coordinates, wanted 2 or 3");
    POLYOP_RETURN_IF_ERROR(CheckPointCount("xyz1", inputs[0], 1));
    POLYOP_RETURN_IF_ERROR(CheckPointCount("xyz2", inputs[1], 1));
    if (a[0] == 0 || (a[1] == 0) == (b[1] == 0)) return Status::Ok();
    return InvalidArgument(a[1] == 0 ? "'xyz1'" : "'xyz2'", " has no points, wanted at least 1 for those of ",
                           a[1] == 0 ? "'xyz2'" : "'xyz1'");
  }
};

}  // namespace polyop
