// SPDX-License-Identifier: Apache-2.0
// How elements are combined, which CPU and GPU share.
#pragma once

#include <type_traits>

#include "core/dtype.h"
#include "core/host_device.h"

namespace polyop {

/// The type in which elements of T are combined.
template <class T>
using Accumulated = std::conditional_t<std::is_integral_v<T>, T, double>;

template <class T>
POLYOP_HD Accumulated<T> ToAccumulated(T x) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>) {
    return x;
  } else {
    return ToFloat(x);
  }
}

template <class T>
POLYOP_HD T FromAccumulated(Accumulated<T> x) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>) {
    return x;
  } else {
    return FromFloat<T>(static_cast<float>(x));
  }
}

/// The result of no elements.
template <bool kProduct, class A>
inline constexpr A kOfNone = kProduct ? A{1} : A{0};

/// Returns the sum or the product. Integers wrap around.
template <bool kProduct, class A>
POLYOP_HD A Combined(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    using U = std::make_unsigned_t<A>;
    const U x = static_cast<U>(a), y = static_cast<U>(b);
    return static_cast<A>(kProduct ? x * y : x + y);
  } else {
    return kProduct ? a * b : a + b;
  }
}

}  // namespace polyop
