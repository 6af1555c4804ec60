// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/host_device.h"
#include "core/operator.h"

namespace polyop {

/// The greatest common divisor of each pair of integers.
struct Gcd {
  static constexpr const char* kName = "gcd";
  static constexpr Signature kSignature = "a: T[...S], b: T[...S] -> y: T[...S]";
  static constexpr NodeName kNodes[] = {"polyop::Gcd"};
  static constexpr std::tuple kAttributes = {};
  static constexpr Doc kDoc = {
      .summary = "Computes the greatest common divisor of each pair of integers.",
      .semantics = R"(The result is not negative, and that of 0 and x is |x|. As in torch, the absolute value of the
          lowest integer is this integer itself, because the type has no other.)",
      .source = "`torch.gcd`",
      .differences = "For the lowest integer, torch's result can have the opposite sign.",
      .not_portable = "The number of steps depends on the elements.",
  };
};

/// Returns the absolute value of an integer.
template <class T>
POLYOP_HD inline std::make_unsigned_t<T> Magnitude(T x) {
  using U = std::make_unsigned_t<T>;
  if constexpr (std::is_signed_v<T>) {
    if (x < 0) return static_cast<U>(U{0} - static_cast<U>(x));
  }
  return static_cast<U>(x);
}

}  // namespace polyop
