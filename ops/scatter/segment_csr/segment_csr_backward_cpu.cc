// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scatter/segment_csr/segment_csr_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/reduce_rows_backward-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/scatter/segment_csr/segment_csr_backward.h"
#include "ops/scatter/segment_csr/segment_csr_values.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Converts a vector of floats to two of doubles, and back.
struct Doubles {
  using D = hn::Repartition<double, hn::ScalableTag<float>>;
  hn::Vec<D> low, high;

  static HWY_INLINE Doubles Of(hn::Vec<hn::ScalableTag<float>> v) {
    return {hn::PromoteLowerTo(D(), v), hn::PromoteUpperTo(D(), v)};
  }
  template <class T>
  static HWY_INLINE Doubles Load(const T* from) {
    const hn::ScalableTag<float> d;
    if constexpr (std::is_same_v<T, float>) {
      const hn::Half<decltype(d)> half;
      return {hn::PromoteTo(D(), hn::LoadU(half, from)), hn::PromoteTo(D(), hn::LoadU(half, from + hn::Lanes(half)))};
    } else {
      return Of(LoadFloat(d, from));
    }
  }
  static HWY_INLINE Doubles All(double x) { return {hn::Set(D(), x), hn::Set(D(), x)}; }
  HWY_INLINE Doubles operator*(const Doubles& b) const { return {hn::Mul(low, b.low), hn::Mul(high, b.high)}; }
  HWY_INLINE Doubles operator/(const Doubles& b) const { return {hn::Div(low, b.low), hn::Div(high, b.high)}; }
  HWY_INLINE hn::Vec<hn::ScalableTag<float>> Round() const {
    const hn::ScalableTag<float> d;
    const hn::Half<decltype(d)> half;
    return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
  }
};

// Returns which of the dividends can be divided in float: those in its range, and 0.
template <class V>
HWY_INLINE auto FitFloat(V dividend, V grad) {
  const hn::ScalableTag<float> d;
  const auto size = hn::Abs(dividend);
  const auto in_range = hn::And(hn::Ge(size, hn::Set(d, 1e-37f)), hn::Le(size, hn::Set(d, 1e37f)));
  return hn::Or(in_range, hn::Eq(grad, hn::Zero(d)));
}

// ProductBackward of kVectors vectors of columns without factors of 0, whose dividends fit a float. Returns false, and
// writes nothing, if there are others.
template <bool kInverse, int kVectors, class T>
HWY_INLINE bool DivideProducts(const T* rows, int64_t count, int64_t channels, const T* grad, T* to) {
  const hn::ScalableTag<float> d;
  const Doubles::D dd;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Doubles products[kVectors];
  for (Doubles& product : products) product = Doubles::All(1);
  for (int64_t r = 0; r < count; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      products[v] = products[v] * Doubles::Load(rows + r * channels + v * lanes);
    }
  }
  hn::Vec<decltype(d)> dividends[kVectors];
  bool fit = true;
  for (int v = 0; v < kVectors; ++v) {
    const auto g = LoadFloat(d, grad + v * lanes);
    const Doubles factor = kInverse ? Doubles::All(-1) / products[v] : products[v];
    dividends[v] = (Doubles::Of(g) * factor).Round();
    const auto zero = hn::Zero(dd);
    const bool some_zero = !hn::AllFalse(dd, hn::Or(hn::Eq(products[v].low, zero), hn::Eq(products[v].high, zero)));
    fit = fit && !some_zero && hn::AllTrue(d, FitFloat(dividends[v], g));
  }
  if (!fit) return false;
  for (int64_t r = 0; r < count; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = r * channels + v * lanes;
      StoreFloat(hn::Div(dividends[v], LoadFloat(d, rows + at)), d, to + at);
    }
  }
  return true;
}

// The gradient of a product with respect to each factor is the product of the others: the product divided by the
// factor. A factor of 0 gets the product without it. With kInverse, the result was divided by the factors. Computes in
// double, whose range holds the products of many floats; but divides in float where the dividends are in its range.
template <bool kInverse, class T>
HWY_NOINLINE void ProductBackward(const T* rows, int64_t count, int64_t channels, const T* grad, T* to) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  constexpr int kVectors = 4;
  for (int64_t c = 0; c < channels; c += lanes) {
    if (c + kVectors * lanes <= channels &&
        DivideProducts<kInverse, kVectors>(rows + c, count, channels, grad + c, to + c)) {
      c += (kVectors - 1) * lanes;
      continue;
    }
    const auto width = static_cast<size_t>(std::min(lanes, channels - c));
    const auto used = hn::FirstN(d, width);
    const auto load = [&](const T* row) HWY_ATTR {
      return c + lanes <= channels ? LoadFloat(d, row + c) : hn::IfThenElse(used, LoadFloatN(d, row + c, width), one);
    };
    Doubles others = Doubles::All(1);  // the product; without kInverse, that of the factors other than 0
    auto zeros = zero;
    for (int64_t r = 0; r < count; ++r) {
      const auto x = load(rows + r * channels);
      const auto is_zero = hn::Eq(x, zero);
      others = others * Doubles::Of(kInverse ? x : hn::IfThenElse(is_zero, one, x));
      if (!kInverse) zeros = hn::Add(zeros, hn::IfThenElseZero(is_zero, one));
    }
    const Doubles product = others * Doubles::Of(hn::IfThenElse(hn::Gt(zeros, zero), zero, one));
    const Doubles of_grad = Doubles::Of(load(grad));
    const Doubles numerator = kInverse ? of_grad * (Doubles::All(-1) / product) : of_grad * product;
    const Doubles of_zero = of_grad * others;
    const auto single_zero = hn::IfThenElseZero(hn::Eq(zeros, one), of_zero.Round());
    const auto rounded = numerator.Round();
    const bool in_float = hn::AllTrue(d, hn::Or(hn::Gt(zeros, zero), FitFloat(rounded, load(grad))));
    for (int64_t r = 0; r < count; ++r) {
      const auto x = load(rows + r * channels);
      auto gradient = in_float ? hn::Div(rounded, x) : (numerator / Doubles::Of(x)).Round();
      if constexpr (!kInverse) gradient = hn::IfThenElse(hn::Eq(x, zero), single_zero, gradient);
      T* const at = to + r * channels + c;
      if (c + lanes <= channels) {
        StoreFloat(gradient, d, at);
      } else {
        StoreFloatN(gradient, d, at, width);
      }
    }
  }
}

template <class T>
void SegmentBackward(SegmentCsr::Reduce reduce, const T* rows, int64_t count, int64_t channels, const T* out,
                     const T* grad, T* to) {
  using Reduce = SegmentCsr::Reduce;
  switch (reduce) {
    case Reduce::kSum:
    case Reduce::kMean:
      for (int64_t r = 0; r < count; ++r) {
        DivideRow(grad, channels, reduce == Reduce::kMean ? count : 1, to + r * channels);
      }
      return;
    case Reduce::kMul: return ProductBackward<false>(rows, count, channels, grad, to);
    case Reduce::kDiv: return ProductBackward<true>(rows, count, channels, grad, to);
    case Reduce::kMin:
    case Reduce::kMax:
      return ExtremeOfRowsBackward<false>(rows, [](int64_t r) { return r; }, count, channels, out, grad, to);
  }
}

template <class Types, class T = typename Types::Real>
Status SegmentCsrBackwardCpu(const SegmentCsrBackward& op, const Context& context, Tensor<const T, 2> grad_out,
                             Tensor<const T, 2> src, Tensor<const typename Types::Int, 1> indptr,
                             Tensor<const T, 2> out, Tensor<T, 2> grad_src) {
  POLYOP_RETURN_IF_ERROR(CheckIndptr(indptr, src.dim(0)));
  const int64_t segments = out.dim(0), channels = out.dim(1), rows = src.dim(0);
  const int64_t first = indptr[0], last = indptr[segments];
  std::fill_n(grad_src.data(), first * channels, FromFloat<T>(0));
  std::fill_n(grad_src.data() + last * channels, (rows - last) * channels, FromFloat<T>(0));
  const double of_segment = 1 + static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(segments, 1));
  context.ParallelFor(segments, GrainFor(2 + 0.4 * static_cast<double>(channels) * of_segment),
                      [&](int64_t begin, int64_t end) HWY_ATTR {
                        for (int64_t m = begin; m < end; ++m) {
                          const int64_t at = indptr[m] * channels;
                          SegmentBackward(op.reduce, src.data() + at, indptr[m + 1] - indptr[m], channels,
                                          out.data() + m * channels, grad_out.data() + m * channels,
                                          grad_src.data() + at);
                        }
                      });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(SegmentCsrBackward, SegmentCsrBackwardCpu, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
}  // namespace polyop
#endif
