// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/feature_maps/instance_norm/instance_norm.h"

namespace polyop {

/// The gradients of all inputs. NaN or infinity in the gradient or in the input make the gradients of the channel, of
/// the sample in `grad_input`, not finite.
struct InstanceNormBackward : GradientOf<InstanceNorm> {
  static constexpr const char* kName = "instance_norm_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, C, L, ...S], input: T[N, C, L, ...S], scale: T[C] -> "
      "grad_input?: T[N, C, L, ...S], grad_scale?: T[C], grad_B?: T[C]";
};

}  // namespace polyop
