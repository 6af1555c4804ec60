// SPDX-License-Identifier: Apache-2.0
// Transposes a square of values in registers. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_KERNELS_CPU_TRANSPOSE_SQUARE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_TRANSPOSE_SQUARE_INL_H_
#undef POLYOP_KERNELS_CPU_TRANSPOSE_SQUARE_INL_H_
#else
#define POLYOP_KERNELS_CPU_TRANSPOSE_SQUARE_INL_H_
#endif

#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Transposes as many vectors as each of them has lanes, a power of two.
template <class D, int N>
HWY_INLINE void TransposeSquare(D d, hn::Vec<D> (&rows)[N]) {
  for (int step = 1; step < N; step *= 2) {
    hn::Vec<D> next[N];
    for (int i = 0; i < N / 2; ++i) {
      next[2 * i] = hn::InterleaveWholeLower(d, rows[i], rows[i + N / 2]);
      next[2 * i + 1] = hn::InterleaveWholeUpper(d, rows[i], rows[i + N / 2]);
    }
    for (int i = 0; i < N; ++i) rows[i] = next[i];
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
