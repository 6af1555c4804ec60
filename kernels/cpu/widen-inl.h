// SPDX-License-Identifier: Apache-2.0
// Converts rows of any floating type to float and back. Compiled once per instruction set; include it from a kernel
// file.
#if defined(POLYOP_KERNELS_CPU_WIDEN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_WIDEN_INL_H_
#undef POLYOP_KERNELS_CPU_WIDEN_INL_H_
#else
#define POLYOP_KERNELS_CPU_WIDEN_INL_H_
#endif

#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Sets to[i] to from[i] * factor.
template <class T>
void WidenRow(const T* from, int64_t count, float* to, float factor = 1) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Mul(LoadFloat(d, from + i), f), d, to + i);
  for (; i < count; ++i) to[i] = ToFloat(from[i]) * factor;
}

/// Returns the elements as floats: `from` itself if T is float, else `buffer`, to which they are converted.
template <class T>
const float* AsFloats(const T* from, int64_t count, float* buffer) {
  if constexpr (std::is_same_v<T, float>) {
    return from;
  } else {
    WidenRow(from, count, buffer);
    return buffer;
  }
}

/// Sets to[i] to from[i], rounded to T.
template <class T>
void NarrowRow(const float* from, int64_t count, T* to) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) StoreFloat(hn::LoadU(d, from + i), d, to + i);
  for (; i < count; ++i) to[i] = FromFloat<T>(from[i]);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
