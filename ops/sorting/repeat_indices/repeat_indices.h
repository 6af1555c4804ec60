// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// The index of each row of a tensor whose rows are repeated.
struct RepeatIndices {
  static constexpr const char* kName = "repeat_indices";
  static constexpr Signature kSignature = "repeats: I[N], total: i64[] -> indices: i64[total]";
  static constexpr NodeName kNodes[] = {"polyop::RepeatIndices"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Repeats each index as often as its element says.",
      .semantics =
          R"(`indices` begins with repeats[0] times 0, followed by repeats[1] times 1, and so on. `total` is the
          sum of `repeats`. It is an error if an element is negative, or if `total` is neither 0 nor the sum. If `total`
          is 0, `indices` is empty. On a GPU, elements after the sum are -1.)",
      .source = "`torch.repeat_interleave(repeats, output_size=total)`",
  };
};

}  // namespace polyop
