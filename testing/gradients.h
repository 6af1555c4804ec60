// SPDX-License-Identifier: Apache-2.0
// Checks that the tests of several gradients share.
#pragma once

#include <vector>

#include "testing/testing.h"

namespace polyop::testing {

/// Returns the sum of the products of elements. Requires: the tensors have equally many elements.
inline double InnerProduct(const HostTensor& a, const HostTensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) sum += a.at(i) * b.at(i);
  return sum;
}

/// Runs a gradient of `count` outputs with every `output_mask`. Expects only the requested outputs, with the bytes that
/// they have if all are requested.
template <class G>
void ExpectOnlyRequestedGradients(G op, const std::vector<HostTensor>& inputs, size_t count) {
  std::vector<HostTensor> all;
  ASSERT_TRUE(Run(op, inputs, &all).ok());
  ASSERT_EQ(all.size(), count);
  for (int64_t mask = 0; mask < int64_t{1} << count; ++mask) {
    op.output_mask = mask;
    std::vector<HostTensor> some;
    ASSERT_TRUE(Run(op, inputs, &some).ok());
    some.resize(count);  // absent at the end
    for (size_t o = 0; o < count; ++o) {
      EXPECT_EQ(some[o].present(), (mask >> o & 1) != 0) << "mask " << mask << ", output " << o;
      if (!some[o].present()) continue;
      EXPECT_TRUE(some[o].SameBytes(all[o])) << "mask " << mask << ", output " << o;
    }
  }
}

/// Compares a gradient of `count` outputs with the reference, for every `output_mask` that requests at least one.
template <class G>
void ExpectAllMasksMatchReference(G op, const std::vector<HostTensor>& inputs, size_t count,
                                  const Tolerance& tolerance) {
  for (op.output_mask = 1; op.output_mask < int64_t{1} << count; ++op.output_mask) {
    SCOPED_TRACE(Concat("mask ", op.output_mask));
    ExpectMatchesReference(op, inputs, tolerance);
  }
}

}  // namespace polyop::testing
