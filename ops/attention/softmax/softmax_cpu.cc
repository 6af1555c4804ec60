// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/softmax/softmax_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/attention/softmax/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using SoftmaxTag = hn::ScalableTag<float>;
using SoftmaxVector = hn::Vec<SoftmaxTag>;

constexpr int64_t kMaxColumns = 256;      // of a block, whose maxima and sums are on the stack
constexpr int64_t kBlockElements = 8192;  // of a block, which stays in the first cache

// Returns the larger number, or NaN if one of them is NaN.
HWY_INLINE SoftmaxVector MaxOrNan(SoftmaxVector max, SoftmaxVector x) {
  return hn::IfThenElse(hn::Or(hn::Gt(x, max), hn::IsNaN(x)), x, max);
}

// Returns exp(x - max), and 0 if that is NaN: lines with such an element have a sum of 0, so that they become NaN.
HWY_INLINE SoftmaxVector Power(SoftmaxVector x, SoftmaxVector max) { return hn::Exp(SoftmaxTag(), hn::Sub(x, max)); }

// Returns the result of an element, of which `power` is exp(x - max). `scale` is 1 / sum, or log(sum).
template <bool kLog>
HWY_INLINE SoftmaxVector ResultOf(SoftmaxVector x, SoftmaxVector max, SoftmaxVector power, SoftmaxVector scale) {
  if constexpr (kLog) return hn::Sub(hn::Sub(x, max), scale);
  return hn::Mul(power, scale);
}

template <bool kLog>
HWY_INLINE SoftmaxVector ScaleOf(SoftmaxVector sum) {
  const SoftmaxTag d;
  if constexpr (kLog) return hn::IfThenElse(hn::Gt(sum, hn::Zero(d)), hn::Log(d, sum), hn::Set(d, NAN));
  return hn::IfThenElse(hn::Gt(sum, hn::Zero(d)), hn::Div(hn::Set(d, 1.0f), sum), hn::Set(d, NAN));
}

// The width of a whole vector. Masked loads and stores, which other widths need, take several times as long.
struct WholeVector {};

template <class T>
HWY_INLINE SoftmaxVector Load(const T* from, WholeVector) {
  return LoadFloat(SoftmaxTag(), from);
}
template <class T>
HWY_INLINE SoftmaxVector Load(const T* from, size_t width) {
  return LoadFloatN(SoftmaxTag(), from, width);
}
template <class T>
HWY_INLINE void Store(SoftmaxVector v, T* to, WholeVector) {
  StoreFloat(v, SoftmaxTag(), to);
}
template <class T>
HWY_INLINE void Store(SoftmaxVector v, T* to, size_t width) {
  StoreFloatN(v, SoftmaxTag(), to, width);
}

// Returns the lanes of v inside of the width, and those of `other` elsewhere.
HWY_INLINE SoftmaxVector Inside(SoftmaxVector v, SoftmaxVector, WholeVector) { return v; }
HWY_INLINE SoftmaxVector Inside(SoftmaxVector v, SoftmaxVector other, size_t width) {
  return hn::IfThenElse(hn::FirstN(SoftmaxTag(), width), v, other);
}

// Calls f(column, width) for the vectors of `columns` adjacent elements.
template <class F>
HWY_INLINE void ForColumns(int64_t columns, const F& f) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(SoftmaxTag()));
  int64_t j = 0;
  for (; j + lanes <= columns; j += lanes) f(j, WholeVector());
  if (j < columns) f(j, static_cast<size_t>(columns - j));
}

// Normalizes `columns` adjacent lines of `length` elements that are `stride` apart.
template <bool kLog, class T>
void NormalizeColumns(const T* from, int64_t length, int64_t stride, int64_t columns, T* to) {
  const SoftmaxTag d;
  HWY_ALIGN float maxima[kMaxColumns + hn::MaxLanes(SoftmaxTag())];
  HWY_ALIGN float sums[kMaxColumns + hn::MaxLanes(SoftmaxTag())];
  ForColumns(columns, [&](int64_t j, auto) HWY_ATTR {
    hn::StoreU(hn::Set(d, -std::numeric_limits<float>::infinity()), d, maxima + j);
    hn::StoreU(hn::Zero(d), d, sums + j);
  });
  for (int64_t i = 0; i < length; ++i) {
    const T* const row = from + i * stride;
    ForColumns(columns, [&](int64_t j, auto width) HWY_ATTR {
      hn::StoreU(MaxOrNan(hn::LoadU(d, maxima + j), Load(row + j, width)), d, maxima + j);
    });
  }
  constexpr bool kKept = !kLog && std::is_same_v<T, float>;  // the output holds the powers
  for (int64_t i = 0; i < length; ++i) {
    const T* const row = from + i * stride;
    ForColumns(columns, [&](int64_t j, auto width) HWY_ATTR {
      const auto power = Power(Load(row + j, width), hn::LoadU(d, maxima + j));
      if constexpr (kKept) Store(power, to + i * stride + j, width);
      hn::StoreU(hn::Add(hn::LoadU(d, sums + j), power), d, sums + j);
    });
  }
  ForColumns(columns,
             [&](int64_t j, auto) HWY_ATTR { hn::StoreU(ScaleOf<kLog>(hn::LoadU(d, sums + j)), d, sums + j); });
  for (int64_t i = 0; i < length; ++i) {
    ForColumns(columns, [&](int64_t j, auto width) HWY_ATTR {
      const int64_t at = i * stride + j;
      const auto x = Load((kKept ? to : from) + at, width), max = hn::LoadU(d, maxima + j);
      auto power = x;
      if constexpr (!kKept && !kLog) power = Power(x, max);
      Store(ResultOf<kLog>(x, max, power, hn::LoadU(d, sums + j)), to + at, width);
    });
  }
}

// Normalizes a line of adjacent elements.
template <bool kLog, class T>
void NormalizeLine(const T* from, int64_t length, T* to) {
  const SoftmaxTag d;
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto max = lowest;
  ForColumns(length, [&](int64_t i, auto width) HWY_ATTR {
    const auto x = Load(from + i, width);
    max = MaxOrNan(max, Inside(x, lowest, width));
  });
  const bool any_nan = !hn::AllFalse(d, hn::IsNaN(max));
  max = hn::Set(d, any_nan ? NAN : hn::ReduceMax(d, max));
  auto sum = hn::Zero(d);
  ForColumns(length, [&](int64_t i, auto width) HWY_ATTR {
    const auto power = Power(Load(from + i, width), max);
    sum = hn::Add(sum, Inside(power, hn::Zero(d), width));
  });
  const auto scale = ScaleOf<kLog>(hn::Set(d, hn::ReduceSum(d, sum)));
  ForColumns(length, [&](int64_t i, auto width) HWY_ATTR {
    const auto x = Load(from + i, width);
    auto power = x;
    if constexpr (!kLog) power = Power(x, max);
    Store(ResultOf<kLog>(x, max, power, scale), to + i, width);
  });
}

template <bool kLog, class T>
void Normalize(const Context& context, const SoftmaxLines& lines, const T* from, T* to) {
  constexpr double kNanoseconds = 1;  // for each element
  const int64_t length = lines.length, inner = lines.inner, area = length * inner;
  if (inner == 1) {
    context.ParallelFor(lines.outer, GrainFor(10 + kNanoseconds * static_cast<double>(length)),
                        [&](int64_t begin, int64_t end) HWY_ATTR {
                          for (int64_t i = begin; i < end; ++i)
                            NormalizeLine<kLog>(from + i * length, length, to + i * length);
                        });
    return;
  }
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(SoftmaxTag()));
  const int64_t fitting = kBlockElements / length / lanes * lanes;
  const int64_t columns = std::clamp(fitting, lanes, std::max(lanes, kMaxColumns / lanes * lanes));
  const int64_t blocks = (inner + columns - 1) / columns;
  const double elements = static_cast<double>(length) * static_cast<double>(std::min(columns, inner));
  context.ParallelFor(lines.outer * blocks, GrainFor(10 + kNanoseconds * elements),
                      [&](int64_t begin, int64_t end) HWY_ATTR {
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t first = i % blocks * columns, at = i / blocks * area + first;
                          NormalizeColumns<kLog>(from + at, length, inner, std::min(columns, inner - first), to + at);
                        }
                      });
}

template <class T>
Status SoftmaxCpu(const Softmax& op, const Context& context, Tensor<const T, kAnyRank> x, Tensor<T, kAnyRank> y) {
  const SoftmaxLines lines(op, x.shape());
  op.log != 0 ? Normalize<true>(context, lines, x.data(), y.data())
              : Normalize<false>(context, lines, x.data(), y.data());
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Softmax, SoftmaxCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
