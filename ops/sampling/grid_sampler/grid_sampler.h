// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/sampling/grid_rule.h"

namespace polyop {

/// Samples images or volumes at the coordinates of a grid (grid_sample).
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
      .summary = "Samples an image or a volume at the coordinates of a grid.",
      .semantics = R"(The last dimension of the grid is (x, y) or (x, y, z), with -1 to 1 spanning the image. `nearest`
          rounds halves to even. `bicubic` (a = -0.75) supports images only. Coordinates are computed in fp32. A NaN
          coordinate gives 0 with padding `zeros` and samples pixel 0 of its axis with `border` and `reflection`. An
          infinite coordinate does the same with `zeros` and `reflection`, and samples the edge with `border`.
          Coordinates beyond 2^24 pixels are clamped to 2^24.)",
      .source = "`torch.nn.functional.grid_sample`",
      .differences = "PyTorch leaves NaN coordinates undefined. MMDeploy does not support volumes.",
  };

  /// ONNX rounds a coordinate before reflecting it, PyTorch afterwards: the results differ at halves.
  bool LeaveToStandard(std::span<const AnyTensor>) const {
    return interpolation_mode == Interpolation::kNearest && padding_mode == Padding::kReflection;
  }
};

}  // namespace polyop
