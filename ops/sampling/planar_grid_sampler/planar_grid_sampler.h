// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/sampling/grid_rule.h"

namespace polyop {

/// Like grid_sampler, but the grid has a plane per coordinate, in a range ten times as large.
struct PlanarGridSampler : GridRule {
  static constexpr const char* kName = "planar_grid_sampler";
  static constexpr Signature kSignatures[] = {
      "input: T[N, C, H, W], grid: T[N, 2, OH, OW] -> output: T[N, C, OH, OW]",
      "input: T[N, C, D, H, W], grid: T[N, 3, OD, OH, OW] -> output: T[N, C, OD, OH, OW]",
  };
  static constexpr NodeName kNodes[] = {
      "polyop::GridSampler2DTRT", "polyop::GridSampler2DTRT2", "polyop::GridSampler3DTRT", "polyop::GridSampler3DTRT2",
      "::GridSampler2DTRT",       "::GridSampler2DTRT2",       "::GridSampler3DTRT",       "::GridSampler3DTRT2",
  };
  static constexpr auto kAttributes = kGridAttributes;
  static constexpr Doc kDoc = {
      .summary = "Like grid_sampler, but the grid has a plane per coordinate, in a range ten times as large.",
      .semantics = R"(The planes of the grid are x, y (and z) and range over [-10, 10] across the image. They are
          divided by 10 and used as in grid_sampler.)",
      .source = "GridSampler2DTRT and GridSampler3DTRT of BEVFormer_tensorrt; `torch.nn.functional.grid_sample`",
      .differences = "For fp16, the plugins' second versions compute in fp16.",
  };

  /// Grids are divided by this.
  static constexpr float kScale = 10;
};

}  // namespace polyop
