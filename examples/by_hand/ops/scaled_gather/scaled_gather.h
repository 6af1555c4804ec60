// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// y[k] = x[index[k]] * scale[k], the operator of by_hand.cc.
struct ScaledGather {
  static constexpr const char* kName = "scaled_gather";
  static constexpr Signature kSignature = "x: T[N, C], index: i64[K], scale?: T[K] -> y: T[K, C]";
  static constexpr NodeName kNodes[] = {"by_polyop::ScaledGather"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {.summary = "Gathers rows of x and scales each."};
};

}  // namespace polyop
