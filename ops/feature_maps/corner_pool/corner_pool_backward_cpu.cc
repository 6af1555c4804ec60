// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/feature_maps/corner_pool/corner_pool_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/feature_maps/corner_pool/corner_pool_backward.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Computes the gradients of up to a vector of columns of `length` elements, which are `step` apart. The first pass
// marks the elements that become the maximum; the second one, backwards, adds up the gradients until the previous such
// element.
template <bool kWhole, class T>
HWY_INLINE void VectorBackward(const T* input, const T* grad, int64_t length, int64_t step, size_t columns, T* to) {
  const hn::ScalableTag<float> d;
  const auto load = [&](const T* from) HWY_ATTR { return kWhole ? LoadFloat(d, from) : LoadFloatN(d, from, columns); };
  const auto store = [&](auto v, T* at) HWY_ATTR {
    if constexpr (kWhole) {
      StoreFloat(v, d, at);
    } else {
      StoreFloatN(v, d, at, columns);
    }
  };
  auto best = hn::Set(d, -INFINITY);
  for (int64_t i = 0; i < length; ++i) {
    const auto x = load(input + i * step);
    const auto replaces = hn::Or(hn::Ge(x, best), hn::IsNaN(x));
    best = hn::IfThenElse(replaces, x, best);
    store(hn::IfThenElseZero(replaces, hn::Set(d, 1.0f)), to + i * step);
  }
  auto sum = hn::Zero(d);
  for (int64_t i = length - 1; i >= 0; --i) {
    const auto replaced = hn::Ne(load(to + i * step), hn::Zero(d));
    sum = hn::Add(sum, load(grad + i * step));
    store(hn::IfThenElseZero(replaced, sum), to + i * step);
    sum = hn::IfThenZeroElse(replaced, sum);
  }
}

template <class T>
void ColumnsBackward(const T* input, const T* grad, int64_t length, int64_t step, int64_t columns, T* to) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  int64_t x = 0;
  for (; x + lanes <= columns; x += lanes) VectorBackward<true>(input + x, grad + x, length, step, 0, to + x);
  if (x < columns) {
    VectorBackward<false>(input + x, grad + x, length, step, static_cast<size_t>(columns - x), to + x);
  }
}

// A task owns strips of columns.
template <class T>
void VerticalBackward(const Context& context, const Shape& shape, const T* input, const T* grad, bool reverse, T* to) {
  constexpr int64_t kStrip = 64;
  const int64_t height = shape[2], width = shape[3], planes = shape[0] * shape[1];
  const int64_t strips = (width + kStrip - 1) / kStrip;
  context.ParallelFor(planes * strips, GrainFor(static_cast<double>(height * kStrip) * 0.5),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t item = begin; item < end; ++item) {
                          const int64_t x = item % strips * kStrip;
                          const int64_t at = (item / strips * height + (reverse ? height - 1 : 0)) * width + x;
                          ColumnsBackward(input + at, grad + at, height, reverse ? -width : width,
                                          std::min(kStrip, width - x), to + at);
                        }
                      });
}

// Computes the gradients of a row. An element that becomes the maximum receives the gradients up to the next such
// element. Most vectors have none of them, so their gradients are summed by lanes.
template <bool kReverse, class T>
void RowBackward(const T* input, const T* grad, int64_t width, T* to) {
  const hn::ScalableTag<float> d;
  constexpr size_t kMaxLanes = hn::MaxLanes(d);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float values[kMaxLanes], grads[kMaxLanes];
  float best = -INFINITY, sum = 0;
  int64_t winner = kReverse ? width - 1 : 0;
  auto sums = hn::Zero(d), best_of_all = hn::Set(d, best);
  for (int64_t k = 0; k < width; k += lanes) {  // in the direction of the scan
    const int64_t count = std::min(lanes, width - k), at = kReverse ? width - k - count : k;
    const size_t held = static_cast<size_t>(count);
    const auto x = count == lanes ? LoadFloat(d, input + at) : LoadFloatN(d, input + at, held);
    const auto g = count == lanes ? LoadFloat(d, grad + at) : LoadFloatN(d, grad + at, held);
    if (count == lanes) {
      StoreFloat(hn::Zero(d), d, to + at);
      if (hn::AllFalse(d, hn::Or(hn::Ge(x, best_of_all), hn::IsNaN(x)))) {
        sums = hn::Add(sums, g);
        continue;
      }
    } else {
      StoreFloatN(hn::Zero(d), d, to + at, held);
    }
    hn::Store(x, d, values);
    hn::Store(g, d, grads);
    sum += hn::ReduceSum(d, sums);
    sums = hn::Zero(d);
    for (int64_t l = 0; l < count; ++l) {
      const int64_t lane = kReverse ? count - 1 - l : l;
      if (values[lane] >= best || values[lane] != values[lane]) {
        if (k + l > 0) to[winner] = FromFloat<T>(sum);
        winner = at + lane;
        best = values[lane];
        sum = 0;
      }
      sum += grads[lane];
    }
    best_of_all = hn::Set(d, best);
  }
  to[winner] = FromFloat<T>(sum + hn::ReduceSum(d, sums));
}

template <class T>
void HorizontalBackward(const Context& context, const Shape& shape, const T* input, const T* grad, bool reverse,
                        T* to) {
  const int64_t width = shape[3], rows = shape[0] * shape[1] * shape[2];
  context.ParallelFor(rows, GrainFor(static_cast<double>(width)), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      // Memory is accessed in one direction.
      const int64_t at = (reverse ? begin + end - 1 - row : row) * width;
      (reverse ? RowBackward<true, T> : RowBackward<false, T>)(input + at, grad + at, width, to + at);
    }
  });
}

template <class T>
Status CornerPoolBackwardCpu(const CornerPoolBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                             Tensor<const T, 4> input, Tensor<T, 4> grad_input) {
  const bool vertical = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kBottom;
  const bool reverse = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kLeft;
  if (input.size() == 0) return Status::Ok();
  (vertical ? VerticalBackward<T> : HorizontalBackward<T>)(context, input.shape(), input.data(), grad_output.data(),
                                                           reverse, grad_input.data());
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(CornerPoolBackward, CornerPoolBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
