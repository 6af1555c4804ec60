#pragma once

#include <cmath>

#include "core/dtype.h"
#include "core/operator.h"
#include "families/boxes/rotated_boxes.h"

namespace polyop {

/// How much the turned boxes of two sets overlap.
struct BoxIouRotated {
  enum class Mode { kIou, kIof };
  Mode mode = Mode::kIou;

  static constexpr const char* kName = "box_iou_rotated";
  static constexpr Signature kSignatures[] = {
      "boxes_a: T[M, 5], boxes_b: T[N, 5] -> overlap: T[M, N]",
      "boxes_a: T[B, M, 5], boxes_b: T[B, N, 5] -> overlap: T[B, M, N]",
  };
  static constexpr NodeName kNodes[] = {"polyop::BoxIoURotated", "mmcv::MMCVBoxIoURotated"};
  static constexpr std::tuple kAttributes = {
      Attr("mode", &BoxIouRotated::mode, "what the shared area is divided by: that of both together, or of the first")
          .OneOf("iou", "iof"),
  };
  static constexpr Doc kDoc = {
      .summary = "How much each of M turned boxes overlaps each of N others in the plane.",
      .semantics =
          "A box is (cx, cy, width, height, angle); the angle is in radians and turns x towards y, so it grows "
          "clockwise in a picture. The shared area is exact; all is computed in fp64 and rounded once. A box with NaN "
          "or infinity in it, or of an area below 1e-14, overlaps nothing. In batches, boxes meet those of their own "
          "alone: pairs [N, 1, 5] and [N, 1, 5] are compared one by one.",
      .source = "`mmcv.ops.box_iou_rotated`",
      .differences = "MMCV computes in fp32, which loses small and distant boxes' digits.",
      .not_portable =
          "No standard operator intersects rotated boxes; cut by their eight edges, all pairs of them would take "
          "hundreds of nodes.",
  };

  /// A box of area 0 if it overlaps nothing.
  template <class T>
  POLYOP_HD static RotatedBox BoxOf(const T* row) {
    float numbers[5];
    bool finite = true;
    for (int k = 0; k < 5; ++k) {
      numbers[k] = ToFloat(row[k]);
      finite = finite && std::fabs(numbers[k]) < INFINITY;
    }
    RotatedBox box = RotatedBox::Of(numbers);
    if (!finite || !(box.area >= RotatedOverlapRule{}.least_area)) box.area = 0;
    return box;
  }
  POLYOP_HD double Measure(const RotatedBox& a, const RotatedBox& b) const {
    if (!(a.area > 0) || !(b.area > 0)) return 0;
    const double shared = SharedArea(a, b);
    return shared / (mode == Mode::kIof ? a.area : a.area + b.area - shared);
  }
};

}  // namespace polyop
