// SPDX-License-Identifier: Apache-2.0
// Tests of operators whose results are rounded to 8 bits.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/cpu/simd.h"
#include "testing/testing.h"

namespace polyop::testing {

/// Returns bytes of all values.
inline HostTensor RandomCodes(DType dtype, const Shape& shape, std::mt19937& rng) {
  const double low = dtype == DType::kI8 ? -128 : 0;
  return HostTensor::Uniform(dtype, shape, rng, low, low + 256);
}

/// Runs every available instruction set with 1, 2 and 8 threads. Expects the same bytes for all numbers of threads, and
/// results that equal the reference's, except for sums that are a tie within rounding: at most one of 500 elements, or
/// one of a smaller tensor, may differ, by one step.
template <class P>
void ExpectWithinOneStep(const P& params, const std::vector<HostTensor>& inputs) {
  const Op& op = *FindOp(P::kName);
  std::vector<HostTensor> want;
  const Status reference = RunReference(op, &params, inputs, &want);
  ASSERT_TRUE(reference.ok()) << "reference: " << reference.message();
  for (const std::string& isa : AvailableIsas()) {
    std::vector<HostTensor> first;
    for (const int threads : {1, 2, 8}) {
      const std::string what = Concat(op.name, " on ", isa, " with ", threads, " thread(s)");
      std::vector<HostTensor> got;
      const Status status = RunOp(op, &params, inputs, &got, {Device::kCpu, threads, isa});
      ASSERT_TRUE(status.ok()) << what << ": " << status.message();
      ASSERT_EQ(got[0].shape(), want[0].shape()) << what;
      ASSERT_EQ(got[0].dtype(), inputs[0].dtype()) << what;
      if (threads > 1) {
        EXPECT_TRUE(got[0].SameBytes(first[0])) << what << ": depends on the threads";
        continue;
      }
      first = got;
      int64_t others = 0;
      for (int64_t i = 0; i < got[0].size(); ++i) {
        const double difference = std::fabs(got[0].at(i) - want[0].at(i));
        ASSERT_LE(difference, 1) << what << ": element " << i << ": expected " << want[0].at(i) << ", got "
                                 << got[0].at(i);
        others += difference > 0;
      }
      EXPECT_LE(others, 1 + got[0].size() / 500) << what << ": too many of " << got[0].size() << " elements differ";
    }
  }
}

}  // namespace polyop::testing
