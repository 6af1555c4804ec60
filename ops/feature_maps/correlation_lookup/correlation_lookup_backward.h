// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/feature_maps/correlation_lookup/correlation_lookup.h"

namespace polyop {

/// The gradient of CorrelationLookup with respect to the volume, of which it reads only the shape. Positions have no
/// gradient, as in RAFT.
struct CorrelationLookupBackward : GradientOf<CorrelationLookup> {
  static constexpr const char* kName = "correlation_lookup_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, (2*radius[0] + 1)*(2*radius[1] + 1), H, W], volume: T[N, H, W, rows, columns], "
      "coords: P[N, 2, H, W] -> grad_volume: T[N, H, W, rows, columns]";
};

}  // namespace polyop
