// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/host_device.h"
#include "core/operator.h"

namespace polyop {

/// The position of values in sorted sequences.
struct SearchSorted {
  int64_t right = 0;

  static constexpr const char* kName = "search_sorted";
  static constexpr Signature kSignature = "sorted_sequence: T[...B, N], values: T[...B, M] -> indices: i64[...B, M]";
  static constexpr NodeName kNodes[] = {"polyop::SearchSorted"};
  static constexpr std::tuple kAttributes = {
      Attr("right", &SearchSorted::right, "0: the first element that is not less; 1: the first element that is greater")
          .Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Finds the index at which each value would be inserted into a sorted sequence.",
      .semantics = R"(indices[m] is the index of the first element of the sequence that is not less than values[m], or
          with `right` of the first that is greater; N if there is none. The search halves the sequence: it compares
          the element at begin + (end - begin) / 2, and continues before it if the element is not less, or greater.
          A sequence that is not sorted gives the results of this search. Comparisons with NaN are false, so that a
          NaN among the values gives N.)",
      .source = "`torch.searchsorted`, `torch.bucketize`",
      .not_portable = "ONNX has no operator for searches. Comparisons of all values with all elements take too long.",
  };
};

/// Returns the index for one value.
template <class T>
POLYOP_HD int64_t SearchOne(const T* sequence, int64_t count, T value, bool right) {
  int64_t begin = 0;
  while (count > 0) {
    const int64_t half = count / 2;
    const T element = sequence[begin + half];
    // Arithmetic instead of branches, which a processor would predict wrongly in half of the steps.
    const int64_t before = right ? !(element > value) : !(element >= value);
    begin += before * (half + 1);
    count = half - (before & ~count & 1);
  }
  return begin;
}

}  // namespace polyop
