#pragma once

#include "core/operator.h"

namespace polyop {

/// BorderAlign: the largest of samples along each side of a box, each side in channels of its own.
struct BorderAlign {
  int64_t pool_size = 1;

  static constexpr const char* kName = "border_align";
  static constexpr Signature kSignature = "input: T[N, C4, H, W], boxes: T[N, K, 4] -> output: T[N, C4/4, K, 4]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVBorderAlign"};
  static constexpr std::tuple kAttributes = {
      Attr("pool_size", &BorderAlign::pool_size, "steps from one end of a side to the other")
          .Between(1, 1024)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Takes the largest of bilinear samples along each side of a box (BorderDet).",
      .semantics =
          "A box is (x1, y1, x2, y2) in pixels. The input's channels are those of the top sides, then of the left, the "
          "bottom and the right ones, C4 / 4 of each; the output's last dimension has the sides in this order. Top and "
          "left begin at (x1, y1), bottom and right at (x2, y2) and go back; a side has pool_size + 1 samples, at "
          "equal steps from end to end. A sample beyond -1 or the extent is 0, up to there it takes the border's "
          "value, "
          "as in roi_align. NaN is passed over in the maximum, and of NaN alone it is 0; so it is for a box with a NaN "
          "or infinite coordinate. Places are computed in double precision.",
      .source = "Qiu et al., BorderDet: Border Feature for Dense Object Detection, 2020; `mmcv.ops.border_align`",
      .differences = "MMCV has it on GPUs alone, and a side that begins at NaN is NaN there.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int64_t channels = inputs[0].shape[1];
    if (channels % 4 == 0) return Status::Ok();
    return InvalidArgument("'input' has ", channels, " channels, wanted a multiple of 4: so many for each side");
  }
};

}  // namespace polyop
