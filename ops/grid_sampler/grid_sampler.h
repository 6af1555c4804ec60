#pragma once

#include "core/operator.h"
#include "families/sampling/grid_rule.h"

namespace polyop {

/// Samples pictures or volumes at given coordinates: grid_sample.
struct GridSampler : GridRule {
  static constexpr const char* kName = "grid_sampler";
  static constexpr Signature kSignatures[] = {
      "input: T[N, C, H, W], grid: T[N, OH, OW, 2] -> output: T[N, C, OH, OW]",
      "input: T[N, C, D, H, W], grid: T[N, OD, OH, OW, 3] -> output: T[N, C, OD, OH, OW]",
  };
  static constexpr NodeName kNodes[] = {
      "mmcv::grid_sampler",
      "mmdeploy::grid_sampler",
      NodeName("polyop::GridSample")
          .Rename("interpolation_mode", "mode")
          .Spell("bilinear", "linear")
          .Spell("bicubic", "cubic")
          .Mirror(16)
          .Mirror(20)
          .Mirror(22),
  };
  static constexpr auto kAttributes = kGridAttributes;
  static constexpr Doc kDoc = {
      .summary = "Samples a picture or a volume at the coordinates that a grid gives.",
      .semantics =
          "The last dimension of the grid is (x, y) or (x, y, z), -1 to 1 over the picture. `nearest` rounds halves to "
          "even. "
          "Bicubic (a = -0.75) exists for pictures only. Coordinates are computed in float. A NaN coordinate samples "
          "nothing "
          "with padding zeros (the result is 0) and pixel 0 of its axis with the others; so does infinity with zeros "
          "and "
          "reflection, while border takes the edge. Coordinates beyond 2^24 pixels are taken as 2^24.",
      .source = "`torch.nn.functional.grid_sample`",
      .differences = "torch leaves NaN coordinates undefined. MMDeploy has no volumes.",
  };

  /// ONNX rounds a coordinate before it is reflected, torch afterwards: halves differ.
  bool LeaveToStandard(std::span<const AnyTensor>) const {
    return interpolation_mode == Interpolation::kNearest && padding_mode == Padding::kReflection;
  }
};

}  // namespace polyop
