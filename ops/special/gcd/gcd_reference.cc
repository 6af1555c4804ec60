// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "ops/special/gcd/gcd.h"

namespace polyop {
namespace {

// std::gcd is undefined where a magnitude does not fit into the type, so it gets unsigned integers.
template <class T>
Status GcdReference(const Gcd&, const Context&, Tensor<const T, kAnyRank> a, Tensor<const T, kAnyRank> b,
                    Tensor<T, kAnyRank> y) {
  const auto magnitude = [](T x) { return x < 0 ? uint64_t{0} - static_cast<uint64_t>(x) : static_cast<uint64_t>(x); };
  for (int64_t i = 0; i < y.size(); ++i) y[i] = static_cast<T>(std::gcd(magnitude(a[i]), magnitude(b[i])));
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(Gcd, GcdReference, int8_t, uint8_t, int16_t, int32_t, int64_t);

}  // namespace
}  // namespace polyop
