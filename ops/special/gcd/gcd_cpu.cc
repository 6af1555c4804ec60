// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstdint>
#include <utility>

#include "core/operator.h"
#include "ops/special/gcd/gcd.h"

namespace polyop {
namespace {

// Stein's algorithm: differences and shifts take less time than divisions.
template <class U>
U DivisorOf(U a, U b) {
  if (a == 0) return b;
  if (b == 0) return a;
  const int twos = std::countr_zero(static_cast<U>(a | b));
  a = static_cast<U>(a >> std::countr_zero(a));
  while (b != 0) {
    b = static_cast<U>(b >> std::countr_zero(b));
    if (a > b) std::swap(a, b);
    b = static_cast<U>(b - a);
  }
  return static_cast<U>(a << twos);
}

template <class T>
Status GcdCpu(const Gcd&, const Context& context, Tensor<const T, kAnyRank> a, Tensor<const T, kAnyRank> b,
              Tensor<T, kAnyRank> y) {
  constexpr int64_t kGrain = 2048;
  context.ParallelFor(y.size(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(DivisorOf(Magnitude(a[i]), Magnitude(b[i])));
  });
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(Gcd, GcdCpu, int8_t, uint8_t, int16_t, int32_t, int64_t);

}  // namespace
}  // namespace polyop
