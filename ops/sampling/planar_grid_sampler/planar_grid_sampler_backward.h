// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/sampling/planar_grid_sampler/planar_grid_sampler.h"

namespace polyop {

/// The gradients of planar grid sampling with respect to the input and the grid. A coordinate that is clamped to the
/// border, or not finite, has none; neither has one in mode nearest.
struct PlanarGridSamplerBackward : GradientOf<PlanarGridSampler> {
  static constexpr const char* kName = "planar_grid_sampler_backward";
  static constexpr Signature kSignatures[] = {
      "grad_output: T[N, C, OH, OW], input: T[N, C, H, W], grid: T[N, 2, OH, OW] -> grad_input?: T[N, C, H, W], "
      "grad_grid?: T[N, 2, OH, OW]",
      "grad_output: T[N, C, OD, OH, OW], input: T[N, C, D, H, W], grid: T[N, 3, OD, OH, OW] -> "
      "grad_input?: T[N, C, D, H, W], grad_grid?: T[N, 3, OD, OH, OW]",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return GridRule::CheckInputs(inputs.subspan(1)); }
};

}  // namespace polyop
