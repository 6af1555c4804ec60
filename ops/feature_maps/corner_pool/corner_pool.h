// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Computes the running maximum of an image towards one of its edges (CornerNet).
struct CornerPool {
  enum class Mode { kTop, kBottom, kLeft, kRight };

  Mode mode = Mode::kTop;

  static constexpr const char* kName = "corner_pool";
  static constexpr Signature kSignature = "input: T[N, C, H, W] -> output: T[N, C, H, W]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVCornerPool"};
  static constexpr std::tuple kAttributes = {
      Attr("mode", &CornerPool::mode, "edge towards which maxima are carried").Codes("top", "bottom", "left", "right"),
  };
  static constexpr Doc kDoc = {
      .summary = "Corner pooling: computes the running maximum along rows or columns towards an edge.",
      .semantics = R"(Mode top: output[y] is the maximum of input[y .. H - 1] of the column; bottom: of input[0 .. y];
          left: output[x] is the maximum of input[x .. W - 1] of the row; right: of input[0 .. x]. NaN compares greater
          than every number, as in `torch.cummax`. An empty input gives an empty output.)",
      .source = R"(H. Law, J. Deng, CornerNet: Detecting Objects as Paired Keypoints, 2018; `torch.cummax` of the
          flipped (top, left) or plain (bottom, right) input)",
      .differences = "MMCV's operator for ONNX Runtime may lose NaN.",
  };
};

}  // namespace polyop
