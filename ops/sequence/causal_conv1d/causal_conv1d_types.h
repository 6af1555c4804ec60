// SPDX-License-Identifier: Apache-2.0
// The types of features and weights, as the single argument of a kernel template for POLYOP_CPU_KERNELS.
#pragma once

#include "core/dtype.h"

namespace polyop {

template <class R, class W>
struct FeaturesAndWeights {
  using Real = R;
  using Weight = W;
};

using ConvF32 = FeaturesAndWeights<float, float>;
using ConvF16 = FeaturesAndWeights<Half, Half>;
using ConvBF16 = FeaturesAndWeights<BFloat16, BFloat16>;
using ConvF16ByF32 = FeaturesAndWeights<Half, float>;
using ConvBF16ByF32 = FeaturesAndWeights<BFloat16, float>;

}  // namespace polyop
