// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/sampling/grid_sampler/grid_sampler.h"

namespace polyop {

/// The gradients of grid sampling with respect to the input and the grid, as in torch.nn.functional.grid_sample. A
/// coordinate that is clamped to the border, or not finite, has none; neither has one in mode nearest.
struct GridSamplerBackward : GradientOf<GridSampler> {
  static constexpr const char* kName = "grid_sampler_backward";
  static constexpr Signature kSignatures[] = {
      "grad_output: T[N, C, OH, OW], input: T[N, C, H, W], grid: T[N, OH, OW, 2] -> grad_input?: T[N, C, H, W], "
      "grad_grid?: T[N, OH, OW, 2]",
      "grad_output: T[N, C, OD, OH, OW], input: T[N, C, D, H, W], grid: T[N, OD, OH, OW, 3] -> "
      "grad_input?: T[N, C, D, H, W], grad_grid?: T[N, OD, OH, OW, 3]",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return GridRule::CheckInputs(inputs.subspan(1)); }
};

}  // namespace polyop
