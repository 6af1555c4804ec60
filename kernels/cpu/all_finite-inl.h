// SPDX-License-Identifier: Apache-2.0
// Whether numbers are finite. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_KERNELS_CPU_ALL_FINITE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_ALL_FINITE_INL_H_
#undef POLYOP_KERNELS_CPU_ALL_FINITE_INL_H_
#else
#define POLYOP_KERNELS_CPU_ALL_FINITE_INL_H_
#endif

#include <cstdint>

#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Returns whether all numbers are finite.
template <class R>
HWY_NOINLINE bool AllFinite(const R* values, int64_t count) {
  const hn::ScalableTag<R> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d);
  auto sum0 = zero, sum1 = zero;  // products of 0 and infinity or NaN are NaN
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    sum0 = hn::MulAdd(hn::LoadU(d, values + i), zero, sum0);
    sum1 = hn::MulAdd(hn::LoadU(d, values + i + lanes), zero, sum1);
  }
  R sum = hn::ReduceSum(d, hn::Add(sum0, sum1));
  for (; i < count; ++i) sum += values[i] * 0;
  return sum == 0;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
