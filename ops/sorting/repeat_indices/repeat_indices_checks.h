// SPDX-License-Identifier: Apache-2.0
// The sum of the repeats and its checks, shared by the CPU kernel and the reference.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/check_indices.h"
#include "ops/sorting/repeat_indices/repeat_indices.h"

namespace polyop {

/// Returns an error if an element is not in [0, total].
template <class I>
Status CheckRepeats(const Context& context, const Tensor<const I, 1>& repeats, int64_t total) {
  return CheckIndices(context, "repeats", repeats.data(), repeats.dim(0), total + 1, "at most 'total'");
}

/// Returns the sum of the elements [begin, end), or total + 1 if it is greater. Requires: each is in [0, total].
template <class I>
int64_t SumOfRepeats(const Tensor<const I, 1>& repeats, int64_t begin, int64_t end, int64_t total) {
  constexpr int64_t kBlock = 1024;  // the sum of a block cannot overflow, because memory holds `total` elements
  int64_t sum = 0;
  for (int64_t k = begin; k < end;) {
    const int64_t stop = std::min(end, k + kBlock);
    int64_t block = 0;
    for (; k < stop; ++k) block += repeats[k];
    sum = std::min(total + 1, sum + block);
  }
  return sum;
}

/// Returns the error of a total that is not the sum.
template <class I>
Status WrongTotal(const Tensor<const I, 1>& repeats, int64_t total) {
  const int64_t sum = SumOfRepeats(repeats, 0, repeats.dim(0), total);
  if (sum > total) return InvalidArgument("'total': expected the sum of 'repeats', got ", total, ", which is less");
  return InvalidArgument("'total': expected the sum of 'repeats', ", sum, ", got ", total);
}

}  // namespace polyop
