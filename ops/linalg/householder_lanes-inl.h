// SPDX-License-Identifier: Apache-2.0
// QR factorizations of small matrices in lanes. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_LINALG_HOUSEHOLDER_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_HOUSEHOLDER_LANES_INL_H_
#undef POLYOP_OPS_LINALG_HOUSEHOLDER_LANES_INL_H_
#else
#define POLYOP_OPS_LINALG_HOUSEHOLDER_LANES_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/simd.h"
#include "ops/linalg/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Applies reflection k, whose vector is below the diagonal of `a`, to kCount columns of `to`.
template <int kCount>
HWY_INLINE void ReflectColumns(const LaneMatrices& a, int64_t k, Reals tau, int64_t column, const LaneMatrices& to) {
  Reals dots[kCount];
  for (int c = 0; c < kCount; ++c) dots[c] = to.Get(k, column + c);
  for (int64_t i = k + 1; i < a.rows; ++i) {
    const auto v = a.Get(i, k);
    for (int c = 0; c < kCount; ++c) dots[c] = hn::MulAdd(v, to.Get(i, column + c), dots[c]);
  }
  for (int c = 0; c < kCount; ++c) {
    dots[c] = hn::Mul(dots[c], tau);
    to.Set(k, column + c, hn::Sub(to.Get(k, column + c), dots[c]));
  }
  for (int64_t i = k + 1; i < a.rows; ++i) {
    const auto v = a.Get(i, k);
    for (int c = 0; c < kCount; ++c) to.Set(i, column + c, hn::NegMulAdd(dots[c], v, to.Get(i, column + c)));
  }
}

/// Applies reflection k to the columns of `to` from `first` on.
HWY_INLINE void ReflectColumnsFrom(const LaneMatrices& a, int64_t k, Reals tau, int64_t first, const LaneMatrices& to) {
  int64_t j = first;
  for (; j + 4 <= to.columns; j += 4) ReflectColumns<4>(a, k, tau, j, to);
  for (; j < to.columns; ++j) ReflectColumns<1>(a, k, tau, j, to);
}

/// linalg::FactorQr in lanes. Returns the lanes whose columns have lengths that neither overflow nor underflow. The
/// results of the others are undefined.
inline RealMask FactorQrInLanes(const LaneMatrices& a, double* taus) {
  const RealTag d;
  auto regular = AllLanes();
  for (int64_t k = 0; k < std::min(a.rows, a.columns); ++k) {
    auto sum = hn::Zero(d), largest = hn::Zero(d);
    for (int64_t i = k + 1; i < a.rows; ++i) {
      const auto x = a.Get(i, k);
      sum = hn::MulAdd(x, x, sum);
      largest = hn::Max(largest, hn::Abs(x));
    }
    const auto zero = hn::Eq(largest, hn::Zero(d));
    regular = hn::And(regular, hn::Or(zero, hn::And(hn::Gt(sum, RealsOf(0x1p-700)), hn::Lt(sum, RealsOf(0x1p700)))));
    const auto first = a.Get(k, k);
    const auto beta = hn::Neg(hn::CopySign(hn::Sqrt(hn::MulAdd(first, first, sum)), first));
    const auto factor = hn::IfThenZeroElse(zero, hn::Div(RealsOf(1), hn::Sub(first, beta)));
    const auto tau = hn::IfThenZeroElse(zero, hn::Div(hn::Sub(beta, first), beta));
    StoreReals(tau, taus + k * RealLanes());
    a.Set(k, k, hn::IfThenElse(zero, first, beta));
    for (int64_t i = k + 1; i < a.rows; ++i) a.Set(i, k, hn::Mul(a.Get(i, k), factor));
    ReflectColumnsFrom(a, k, tau, k + 1, a);
  }
  return regular;
}

/// Computes the first columns of the product of the reflections of FactorQrInLanes.
inline void ColumnsOfQInLanes(const LaneMatrices& a, const double* taus, const LaneMatrices& q) {
  SetToUnit(q);
  for (int64_t k = std::min(a.rows, a.columns); k-- > 0;) {
    ReflectColumnsFrom(a, k, LoadReals(taus + k * RealLanes()), k, q);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
