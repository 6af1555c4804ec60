// SPDX-License-Identifier: Apache-2.0
// Rows of a causal convolution. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_SEQUENCE_CAUSAL_CONV1D_CAUSAL_CONV1D_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_SEQUENCE_CAUSAL_CONV1D_CAUSAL_CONV1D_ROWS_INL_H_
#undef POLYOP_OPS_SEQUENCE_CAUSAL_CONV1D_CAUSAL_CONV1D_ROWS_INL_H_
#else
#define POLYOP_OPS_SEQUENCE_CAUSAL_CONV1D_CAUSAL_CONV1D_ROWS_INL_H_
#endif

#include <algorithm>

#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using RowTag = hn::ScalableTag<float>;

template <class V>
HWY_INLINE V Sigmoid(V x) {
  const RowTag d;
  const auto one = hn::Set(d, 1.0f);
  const auto power = hn::Exp(d, hn::Min(hn::Neg(x), hn::Set(d, 100.0f)));  // is defined up to 104
  const auto sigmoid = hn::Div(one, hn::Add(one, power));
  return hn::IfThenElse(hn::IsNaN(x), x, sigmoid);  // Exp(NaN) is 0
}

// Calls f(i) for vectors of a row of `count` elements; the last one reaches beyond the row.
template <class F>
HWY_INLINE void ForVectors(int64_t count, const F& f) {
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(RowTag()))) f(i);
}

// Sets to[i] to bias + the sum over k of weight[k] * from[i + k * step]. `step` is 1, or -1 for the gradient. Reads and
// writes up to a vector beyond the row. kWidth is the width, or 0 if it is not known.
template <int kWidth, int kStep>
void Convolve(const float* from, const float* weight, int64_t width, float bias, int64_t count, float* to) {
  const RowTag d;
  const int64_t known = kWidth == 0 ? width : kWidth;
  ForVectors(count, [&](int64_t i) HWY_ATTR {
    auto sum = hn::Set(d, bias);
    for (int64_t k = 0; k < known; ++k)
      sum = hn::MulAdd(hn::Set(d, weight[k]), hn::LoadU(d, from + i + k * kStep), sum);
    hn::StoreU(sum, d, to + i);
  });
}

template <int kStep>
void ConvolveRow(const float* from, const float* weight, int64_t width, float bias, int64_t count, float* to) {
  switch (width) {
    case 2: return Convolve<2, kStep>(from, weight, width, bias, count, to);
    case 3: return Convolve<3, kStep>(from, weight, width, bias, count, to);
    case 4: return Convolve<4, kStep>(from, weight, width, bias, count, to);
    default: return Convolve<0, kStep>(from, weight, width, bias, count, to);
  }
}

// Copies the initial state, or zeros, of a row.
template <class T>
void CopyState(const std::optional<Tensor<const T, 3>>& state, int64_t row, int64_t count, float* to) {
  if (state) {
    WidenRow(state->data() + row * count, count, to);
  } else {
    std::fill_n(to, count, 0.0f);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
