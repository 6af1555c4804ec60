#pragma once

#include "core/operator.h"

namespace polyop {

/// The anchors of every cell of a feature map.
struct GridPriors {
  int64_t stride_h = 1, stride_w = 1;

  static constexpr const char* kName = "grid_priors";
  static constexpr Signature kSignature = "base: T[A, 4], height: any[H], width: any[W] -> priors: T[A*H*W, 4]";
  static constexpr NodeName kNodes[] = {"mmdeploy::GridPriorsTRT"};
  static constexpr std::tuple kAttributes = {
      Attr("stride_h", &GridPriors::stride_h, "distance of neighbouring cells, downwards").AtLeast(1),
      Attr("stride_w", &GridPriors::stride_w, "distance of neighbouring cells, to the right").AtLeast(1),
  };
  static constexpr Doc kDoc = {
      .summary = "Repeats base anchors (x1, y1, x2, y2) over the cells of a grid, moved by the strides.",
      .semantics =
          "The anchor a of the cell (y, x) is base[a] + (x * stride_w, y * stride_h, x * stride_w, y * stride_h); it "
          "stands in row (y * W + x) * A + a. Only the lengths H and W of `height` and `width` matter, not their "
          "values or types.",
      .source = "mmdet's `AnchorGenerator.single_level_grid_priors`",
      .differences = "MMDeploy's TensorRT plugin takes fp32 only.",
  };
};

}  // namespace polyop
