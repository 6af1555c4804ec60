// SPDX-License-Identifier: Apache-2.0
// Copies of rows of images in fp32. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_FEATURE_MAPS_CORRELATION_CORRELATION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_FEATURE_MAPS_CORRELATION_CORRELATION_ROWS_INL_H_
#undef POLYOP_OPS_FEATURE_MAPS_CORRELATION_CORRELATION_ROWS_INL_H_
#else
#define POLYOP_OPS_FEATURE_MAPS_CORRELATION_CORRELATION_ROWS_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Copies columns [from, to) of a row of `channels` planes to rows of `pitch` floats. Columns outside of the image are
// 0.
template <class T>
void CopyRow(const T* row, int64_t channels, int64_t plane, int64_t width, int64_t from, int64_t to, float* copy,
             int64_t pitch) {
  const int64_t first = std::clamp<int64_t>(from, 0, width), last = std::clamp<int64_t>(to, first, width);
  for (int64_t c = 0; c < channels; ++c) {
    float* const out = copy + c * pitch;
    std::fill_n(out, first - from, 0.0f);
    WidenRow(row + c * plane + first, last - first, out + first - from);
    std::fill_n(out + last - from, pitch - (last - from), 0.0f);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
