// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// 2 * a + b with NumPy broadcasting: the first operator of the tutorials.
struct MyAdd {
  static constexpr const char* kName = "my_add";
  static constexpr Signature kSignature = "a: T[...A], b: T[...B] -> c: T[...broadcast(A, B)]";
  static constexpr NodeName kNodes[] = {"custom::my_add"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "2 * a + b, element by element, with broadcasting.",
      .semantics = "Shapes broadcast as in NumPy. fp16 and bf16 are computed in float and rounded once.",
      .source = "`2 * a + b` in torch",
  };
};

}  // namespace polyop
