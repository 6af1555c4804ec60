// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/bev/pillar_scatter/pillar_scatter.h"

namespace polyop {

/// The gradient with respect to the features: a pillar receives the gradient of its position, unless another pillar
/// overwrites it.
struct PillarScatterBackward : GradientOf<PillarScatter> {
  static constexpr const char* kName = "pillar_scatter_backward";
  static constexpr Signature kSignatures[] = {
      "grad_canvas: T[(batch_size), C, dense_shape[0], dense_shape[1]], features: T[P, C], coords: I[P, 4], "
      "num?: I[1] -> grad_features: T[P, C]",
      "grad_canvas: T[N, C, dense_shape[0], dense_shape[1]], features: T[N, P, C], coords: I[N, P, 4], num: I[N] -> "
      "grad_features: T[N, P, C]",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return PillarScatter::CheckInputs(inputs.subspan(1)); }
};

}  // namespace polyop
