#pragma once

#include "core/operator.h"
#include "families/sampling/grid_rule.h"

namespace polyop {

/// grid_sampler for grids whose coordinates lie in planes, and are ten times as large.
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
      .summary = "grid_sampler for grids whose coordinates lie in planes, and are ten times as large.",
      .semantics =
          "The grid's planes are x, y (and z), -10 to 10 over the picture: a tenth of them is what grid_sampler takes. "
          "All else is as there.",
      .source = "GridSampler2DTRT and GridSampler3DTRT of BEVFormer_tensorrt; `torch.nn.functional.grid_sample`",
      .differences = "The plugins' second versions compute fp16 in fp16.",
  };

  /// What grids are to be divided by.
  static constexpr float kScale = 10;
};

}  // namespace polyop
