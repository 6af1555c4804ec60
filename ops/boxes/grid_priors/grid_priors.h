// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Computes the anchors of every cell of a feature map.
struct GridPriors {
  int64_t stride_h = 1, stride_w = 1;

  static constexpr const char* kName = "grid_priors";
  static constexpr Signature kSignature = "base: T[A, 4], height: any[H], width: any[W] -> priors: T[A*H*W, 4]";
  static constexpr NodeName kNodes[] = {"mmdeploy::GridPriorsTRT"};
  static constexpr std::tuple kAttributes = {
      Attr("stride_h", &GridPriors::stride_h, "vertical distance between cells").AtLeast(1),
      Attr("stride_w", &GridPriors::stride_w, "horizontal distance between cells").AtLeast(1),
  };
  static constexpr Doc kDoc = {
      .summary = "Repeats base anchors (x1, y1, x2, y2) over the cells of a grid, shifted by the strides.",
      .semantics = R"(Anchor a of cell (y, x) is base[a] + (x * stride_w, y * stride_h, x * stride_w, y * stride_h), in
          row (y * W + x) * A + a. Only the lengths H and W of `height` and `width` are used, not their values or
          types.)",
      .source = "mmdet's `AnchorGenerator.single_level_grid_priors`",
      .differences = "MMDeploy's TensorRT plugin accepts fp32 only.",
  };
};

}  // namespace polyop
