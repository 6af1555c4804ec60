// SPDX-License-Identifier: Apache-2.0
// Converts a mask to bits. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_KERNELS_CPU_MASK_BITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_MASK_BITS_INL_H_
#undef POLYOP_KERNELS_CPU_MASK_BITS_INL_H_
#else
#define POLYOP_KERNELS_CPU_MASK_BITS_INL_H_
#endif

#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Returns one bit per lane, at most 64. Assembling bytes instead would make clang store and reload the mask.
template <class D, class M>
HWY_INLINE uint64_t BitsOf(D d, M mask) {
  static_assert(hn::MaxLanes(d) <= 64);
  uint64_t bits = 0;
  hn::StoreMaskBits(d, mask, reinterpret_cast<uint8_t*>(&bits));
  return bits;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif  // per-target part
