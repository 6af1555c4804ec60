// SPDX-License-Identifier: Apache-2.0
// Gradients of the reductions of rows in reduce_rows-inl.h. Compiled once per instruction set; include it from a kernel
// file.
#if defined(POLYOP_KERNELS_CPU_REDUCE_ROWS_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_REDUCE_ROWS_BACKWARD_INL_H_
#undef POLYOP_KERNELS_CPU_REDUCE_ROWS_BACKWARD_INL_H_
#else
#define POLYOP_KERNELS_CPU_REDUCE_ROWS_BACKWARD_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Sets to[c] to grad[c] / count, the gradient of a mean; with a count of 1, of a sum.
template <class T>
HWY_INLINE void DivideRow(const T* grad, int64_t channels, int64_t count, T* to) {
  if (count == 1) {
    std::copy_n(grad, channels, to);
    return;
  }
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto divisor = hn::Set(d, static_cast<float>(count));
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) StoreFloat(hn::Div(LoadFloat(d, grad + c), divisor), d, to + c);
  if (c == channels) return;
  const size_t rest = static_cast<size_t>(channels - c);
  StoreFloatN(hn::Div(LoadFloatN(d, grad + c, rest), divisor), d, to + c, rest);
}

/// Computes the gradient of the minimum or maximum `extreme` [channels] of `count` rows: in each channel the first row
/// that attains it gets grad[channel], the others get 0. With kNan, NaN attains it. Row r is row_of(r) of `rows` and of
/// `to`.
template <bool kNan, class T, class RowOf>
void ExtremeOfRowsBackward(const T* rows, const RowOf& row_of, int64_t count, int64_t channels, const T* extreme,
                           const T* grad, T* to) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto attains = [](auto x, auto best)
                           HWY_ATTR { return kNan ? hn::Or(hn::Eq(x, best), hn::IsNaN(x)) : hn::Eq(x, best); };
  int64_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) {
    const auto best0 = LoadFloat(d, extreme + c), best1 = LoadFloat(d, extreme + c + lanes),
               best2 = LoadFloat(d, extreme + c + 2 * lanes), best3 = LoadFloat(d, extreme + c + 3 * lanes);
    // The gradients that no row has got yet.
    auto left0 = LoadFloat(d, grad + c), left1 = LoadFloat(d, grad + c + lanes),
         left2 = LoadFloat(d, grad + c + 2 * lanes), left3 = LoadFloat(d, grad + c + 3 * lanes);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t at = row_of(r) * channels + c;
      const auto step = [&](auto best, auto& left, int64_t i) HWY_ATTR {
        const auto hit = attains(LoadFloat(d, rows + i), best);
        StoreFloat(hn::IfThenElseZero(hit, left), d, to + i);
        left = hn::IfThenZeroElse(hit, left);
      };
      step(best0, left0, at);
      step(best1, left1, at + lanes);
      step(best2, left2, at + 2 * lanes);
      step(best3, left3, at + 3 * lanes);
    }
  }
  for (; c < channels; c += lanes) {
    const size_t width = static_cast<size_t>(std::min(lanes, channels - c));
    const auto best = LoadFloatN(d, extreme + c, width);
    auto left = LoadFloatN(d, grad + c, width);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t at = row_of(r) * channels + c;
      const auto hit = attains(LoadFloatN(d, rows + at, width), best);
      StoreFloatN(hn::IfThenElseZero(hit, left), d, to + at, width);
      left = hn::IfThenZeroElse(hit, left);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
