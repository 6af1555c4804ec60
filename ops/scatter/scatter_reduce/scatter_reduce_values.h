// SPDX-License-Identifier: Apache-2.0
// How elements are combined, which CPU and GPU share.
#pragma once

#include <limits>
#include <type_traits>

#include "core/host_device.h"
#include "ops/scatter/scatter_reduce/scatter_reduce.h"

namespace polyop {

template <class T>
POLYOP_HD T Combine(ScatterReduce::Reduction reduction, T a, T b) {
  using enum ScatterReduce::Reduction;
  switch (reduction) {
    case kMul:
      if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) * static_cast<std::make_unsigned_t<T>>(b));
      } else {
        return a * b;
      }
    case kMax: return a >= b || a != a ? a : b;
    case kMin: return a <= b || a != a ? a : b;
    default:
      if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
      } else {
        return a + b;
      }
  }
}

/// Returns the number that changes nothing.
template <class T>
POLYOP_HD T NeutralOf(ScatterReduce::Reduction reduction) {
  using enum ScatterReduce::Reduction;
  constexpr bool kReal = std::is_floating_point_v<T>;
  switch (reduction) {
    case kMul: return T{1};
    case kMax: return kReal ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
    case kMin: return kReal ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
    default: return T{0};
  }
}

}  // namespace polyop
