// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// BorderAlign: takes the maximum of samples along each side of a box; each side has its own channels.
struct BorderAlign {
  int64_t pool_size = 1;

  static constexpr const char* kName = "border_align";
  static constexpr Signature kSignature = "input: T[N, C4, H, W], boxes: T[N, K, 4] -> output: T[N, C4/4, K, 4]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVBorderAlign"};
  static constexpr std::tuple kAttributes = {
      Attr("pool_size", &BorderAlign::pool_size, "number of steps from one end of a side to the other")
          .Between(1, 1024)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Takes the maximum of bilinear samples along each side of a box (BorderDet).",
      .semantics = R"(A box is (x1, y1, x2, y2) in pixels. The input has C4 / 4 channels for each side, in the order
          top, left, bottom, right; the output's last dimension has the same order. The top and left sides run from (x1,
          y1), the bottom and right sides back from (x2, y2). A side has pool_size + 1 samples at equal distances from
          end to end. A sample at a coordinate below -1 or above the extent is 0; between the border and that limit it
          takes the border's value, as in `roi_align`. NaN is ignored in the maximum; if all samples are NaN, the output
          is 0, and so it is for a box with a NaN or infinite coordinate. Coordinates are computed in fp64.)",
      .source = "Qiu et al., BorderDet: Border Feature for Dense Object Detection, 2020; `mmcv.ops.border_align`",
      .differences = "MMCV has GPU kernels only, and its maximum of a side that begins with NaN is NaN.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int64_t channels = inputs[0].shape[1];
    if (channels % 4 == 0) return Status::Ok();
    return InvalidArgument("'input': expected a multiple of 4 channels (a quarter for each side), got ", channels);
  }
};

}  // namespace polyop
