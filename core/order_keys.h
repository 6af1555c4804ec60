// SPDX-License-Identifier: Apache-2.0
// Integers with the order of elements, which CPU and GPU share.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/dtype.h"
#include "core/host_device.h"

namespace polyop {

/// An unsigned integer of the size of T, or of float's for smaller ones.
template <class T>
using OrderKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

/// The key of NaN. Integers may have it, too.
template <class T>
inline constexpr OrderKey<T> kNanKey = std::numeric_limits<OrderKey<T>>::max();

/// Returns a key with the order of the elements, in which 0 and -0 are equal, and NaN is the greatest.
template <class T>
POLYOP_HD OrderKey<T> OrderKeyOf(T x) {
  using Key = OrderKey<T>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (sizeof(T) < sizeof(Key)) {
    return OrderKeyOf(ToFloat(x));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<Key>(x) ^ kSign;
  } else {
    if (x != x) return kNanKey<T>;
    union {
      T value;
      Key bits;
    } same = {x + T{0}};
    return (same.bits & kSign) != 0 ? ~same.bits : same.bits | kSign;
  }
}

/// Returns the integer of which OrderKeyOf returned the key.
POLYOP_HD inline int64_t IntegerOfKey(uint64_t key) { return static_cast<int64_t>(key ^ (uint64_t{1} << 63)); }

/// Returns true for the key of a NaN.
template <class T>
POLYOP_HD bool IsNanKey(OrderKey<T> key) {
  return !std::is_integral_v<T> && key == kNanKey<T>;
}

}  // namespace polyop
