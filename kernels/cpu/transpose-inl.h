// SPDX-License-Identifier: Apache-2.0
// Transposes small matrices in registers. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_KERNELS_CPU_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_TRANSPOSE_INL_H_
#undef POLYOP_KERNELS_CPU_TRANSPOSE_INL_H_
#else
#define POLYOP_KERNELS_CPU_TRANSPOSE_INL_H_
#endif

#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using QuadTag = hn::FixedTag<float, 4>;

/// Transposes 4 x 4 values.
HWY_INLINE void Transpose(hn::Vec<QuadTag> rows[4]) {
  const QuadTag q;
  const auto low01 = hn::InterleaveLower(q, rows[0], rows[1]), high01 = hn::InterleaveUpper(q, rows[0], rows[1]);
  const auto low23 = hn::InterleaveLower(q, rows[2], rows[3]), high23 = hn::InterleaveUpper(q, rows[2], rows[3]);
  rows[0] = hn::ConcatLowerLower(q, low23, low01);
  rows[1] = hn::ConcatUpperUpper(q, low23, low01);
  rows[2] = hn::ConcatLowerLower(q, high23, high01);
  rows[3] = hn::ConcatUpperUpper(q, high23, high01);
}

/// Adds the halves of a vector until four lanes are left.
template <class D>
HWY_INLINE hn::Vec<QuadTag> FoldToQuad(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return FoldToQuad(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

/// Returns the sums of the lanes of four vectors.
template <class D>
HWY_INLINE hn::Vec<QuadTag> SumsOfLanes(D d, const hn::Vec<D> v[4]) {
  hn::Vec<QuadTag> quad[4] = {FoldToQuad(d, v[0]), FoldToQuad(d, v[1]), FoldToQuad(d, v[2]), FoldToQuad(d, v[3])};
  Transpose(quad);
  return hn::Add(hn::Add(quad[0], quad[1]), hn::Add(quad[2], quad[3]));
}

using EightTag = hn::FixedTag<uint16_t, 8>;

/// Transposes 8 x 8 values of 16 bits.
HWY_INLINE void Transpose(hn::Vec<EightTag> rows[8]) {
  const EightTag d;
  const hn::RepartitionToWide<EightTag> d32;
  const hn::RepartitionToWide<decltype(d32)> d64;
  hn::Vec<decltype(d32)> pairs[8];  // columns 0 to 3, then 4 to 7, of two rows each
  for (int k = 0; k < 4; ++k) {
    pairs[k] = hn::BitCast(d32, hn::InterleaveLower(d, rows[2 * k], rows[2 * k + 1]));
    pairs[4 + k] = hn::BitCast(d32, hn::InterleaveUpper(d, rows[2 * k], rows[2 * k + 1]));
  }
  for (int half = 0; half < 2; ++half) {
    const auto* const from = pairs + 4 * half;
    const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d32, from[0], from[1]));
    const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d32, from[0], from[1]));
    const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d32, from[2], from[3]));
    const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d32, from[2], from[3]));
    rows[4 * half] = hn::BitCast(d, hn::InterleaveLower(d64, low01, low23));
    rows[4 * half + 1] = hn::BitCast(d, hn::InterleaveUpper(d64, low01, low23));
    rows[4 * half + 2] = hn::BitCast(d, hn::InterleaveLower(d64, high01, high23));
    rows[4 * half + 3] = hn::BitCast(d, hn::InterleaveUpper(d64, high01, high23));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
