#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cummax/cummax_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"
#include "ops/cummax/cummax.h"

#ifndef POLYOP_OPS_CUMMAX_ONCE_
#define POLYOP_OPS_CUMMAX_ONCE_
namespace polyop {
namespace {

// What elements T are compared as.
template <class T>
struct ComparedAs {
  using Type = float;
};
template <>
struct ComparedAs<int32_t> {
  using Type = int32_t;
};
template <>
struct ComparedAs<int64_t> {
  using Type = int64_t;
};
template <class T>
using Compared = typename ComparedAs<T>::Type;

template <class T>
Compared<T> ToCompared(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return ToFloat(x);
  }
}

// True if `x`, which comes later, takes the place of `best`: ties go to the later one, and so does NaN.
template <bool kMin, class C>
bool TakesPlace(C x, C best) {
  return (kMin ? x <= best : x >= best) || x != x;
}

// Columns of a strip that is walked along the dimension: the state of one stays in the L1 cache.
constexpr int64_t kStrip = 1024;

// One row, an element at a time. `at` elements were done before; the last of them left `best` and `index`.
template <bool kMin, class T>
void ScanElements(const T* input, int64_t at, int64_t length, Compared<T> best, int64_t index, T* values,
                  int64_t* indices) {
  for (int64_t i = at; i < length; ++i) {
    const Compared<T> x = ToCompared(input[i]);
    if (i == 0 || TakesPlace<kMin>(x, best)) {
      best = x;
      index = i;
    }
    values[i] = input[index];
    indices[i] = index;
  }
}

}  // namespace
}  // namespace polyop
#endif  // POLYOP_OPS_CUMMAX_ONCE_

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class D, class T>
HWY_INLINE hn::Vec<D> LoadCompared(D d, const T* p) {
  if constexpr (std::is_integral_v<T>) {
    return hn::LoadU(d, p);
  } else {
    return LoadFloat(d, p);
  }
}

template <class D, class T>
HWY_INLINE void StoreValues(hn::Vec<D> v, D d, bool stream, T* p) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    stream ? StoreOrStream<true>(v, d, p) : StoreOrStream<false>(v, d, p);
  } else {
    StoreFloat(v, d, p);
  }
}

template <class DI>
HWY_INLINE void StoreIndices(hn::Vec<DI> v, DI d, bool stream, int64_t* p) {
  if constexpr (sizeof(hn::TFromD<DI>) == 8) {
    stream ? StoreOrStream<true>(v, d, p) : StoreOrStream<false>(v, d, p);
  } else {
    const hn::Repartition<int64_t, DI> dl;
    const hn::Half<DI> dh;
    const auto low = hn::PromoteTo(dl, hn::LowerHalf(dh, v)), high = hn::PromoteTo(dl, hn::UpperHalf(dh, v));
    stream ? StoreOrStream<true>(low, dl, p) : StoreOrStream<false>(low, dl, p);
    stream ? StoreOrStream<true>(high, dl, p + hn::Lanes(dl)) : StoreOrStream<false>(high, dl, p + hn::Lanes(dl));
  }
}

// `width` neighbouring columns, walked along the dimension; `length` fits in the indices' lanes.
template <bool kMin, class T>
void ScanColumns(const T* input, int64_t length, int64_t step, int64_t width, bool stream, T* values,
                 int64_t* indices) {
  using C = Compared<T>;
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  using I = hn::TFromD<decltype(di)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = width / lanes * lanes;
  HWY_ALIGN C best[kStrip];
  HWY_ALIGN I best_index[kStrip];
  for (int64_t j = 0; j < width; ++j) {
    best[j] = ToCompared(input[j]);
    best_index[j] = 0;
  }
  for (int64_t k = 0; k < length; ++k, input += step, values += step, indices += step) {
    const auto place = hn::Set(di, static_cast<I>(k));
    for (int64_t j = 0; j < whole; j += lanes) {
      const auto x = LoadCompared(d, input + j), b = hn::Load(d, best + j);
      auto take = kMin ? hn::Le(x, b) : hn::Ge(x, b);
      if constexpr (std::is_same_v<C, float>) take = hn::Or(take, hn::IsNaN(x));
      const auto value = hn::IfThenElse(take, x, b);
      const auto index = hn::IfThenElse(hn::RebindMask(di, take), place, hn::Load(di, best_index + j));
      hn::Store(value, d, best + j);
      hn::Store(index, di, best_index + j);
      StoreValues(value, d, stream, values + j);
      StoreIndices(index, di, stream, indices + j);
    }
    for (int64_t j = whole; j < width; ++j) {
      const C x = ToCompared(input[j]);
      if (TakesPlace<kMin>(x, best[j])) {
        best[j] = x;
        best_index[j] = static_cast<I>(k);
      }
      values[j] = input[j - (k - best_index[j]) * step];
      indices[j] = best_index[j];
    }
  }
}

// Integers in the order of the elements: zeros of both signs are equal, NaN is the greatest.
template <bool kMin, class V>
HWY_INLINE auto SortKey(V v) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  if constexpr (std::is_integral_v<hn::TFromV<V>>) {
    return kMin ? hn::Not(v) : v;
  } else {
    const auto bits = hn::BitCast(di, hn::Add(v, hn::Zero(d)));
    const auto key = hn::Xor(bits, hn::And(hn::ShiftRight<31>(bits), hn::Set(di, 0x7FFFFFFF)));
    return hn::IfThenElse(hn::RebindMask(di, hn::IsNaN(v)), hn::Set(di, 0x7FFFFFFF), kMin ? hn::Not(key) : key);
  }
}

// Moves lanes up, for a prefix sum-like scan in log2(lanes) steps. A lane that has no lane below to take
// from keeps its own value, which does not change a maximum.
template <class DI>
struct PrefixMax {
  static constexpr size_t kSteps = hwy::CeilLog2(hn::MaxLanes(DI()));
  using Table = decltype(hn::IndicesFromVec(DI(), hn::Zero(DI())));
  Table table[kSteps], last;

  HWY_INLINE PrefixMax() {
    const DI di;
    const auto lane = hn::Iota(di, 0);
    for (size_t s = 0; s < kSteps; ++s) {
      const auto below = hn::Sub(lane, hn::Set(di, 1 << s));
      table[s] = hn::IndicesFromVec(di, hn::IfThenElse(hn::Lt(below, hn::Zero(di)), lane, below));
    }
    last = hn::IndicesFromVec(di, hn::Set(di, static_cast<int32_t>(hn::Lanes(di) - 1)));
  }
  HWY_INLINE hn::Vec<DI> operator()(hn::Vec<DI> v) const {
    for (size_t s = 0; s < kSteps; ++s) v = hn::Max(v, hn::TableLookupLanes(v, table[s]));
    return v;
  }
  template <class V>
  HWY_INLINE V Last(V v) const {
    const hn::DFromV<V> d;
    return hn::BitCast(d, hn::TableLookupLanes(hn::BitCast(DI(), v), last));
  }
};

// Rows of contiguous elements of 32 bits or fewer; `length` fits in 31 bits.
template <bool kMin, class T>
void ScanRows(const T* input, int64_t rows, int64_t length, bool stream, T* values, int64_t* indices) {
  const hn::ScalableTag<Compared<T>> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const PrefixMax<decltype(di)> prefix_max;
  const auto lane = hn::Iota(di, 0);
  for (int64_t r = 0; r < rows; ++r, input += length, values += length, indices += length) {
    auto best = hn::Set(d, ToCompared(input[0]));
    auto best_key = SortKey<kMin>(best), best_index = hn::Zero(di);
    int64_t i = 0;
    for (; i + lanes <= length; i += lanes) {
      const auto x = LoadCompared(d, input + i);
      // Most vectors of an unsorted row hold nothing new.
      if (!hn::AllTrue(d, kMin ? hn::Gt(x, best) : hn::Lt(x, best))) {
        // The best of this vector up to each lane, and the latest lane that holds it; then the best of before,
        // where it is better. In this order little depends on the vector before.
        const auto key = SortKey<kMin>(x), running = prefix_max(key);
        const auto from = prefix_max(hn::IfThenElseZero(hn::Eq(key, running), lane));
        const auto moved = hn::TableLookupLanes(x, hn::IndicesFromVec(d, from));
        const auto old = hn::Lt(running, best_key);
        const auto value = hn::IfThenElse(hn::RebindMask(d, old), best, moved);
        const auto index = hn::IfThenElse(old, best_index, hn::Add(from, hn::Set(di, static_cast<int32_t>(i))));
        best_key = prefix_max.Last(hn::Max(running, best_key));
        StoreValues(value, d, stream, values + i);
        StoreIndices(index, di, stream, indices + i);
        best = prefix_max.Last(value);
        best_index = prefix_max.Last(index);
        continue;
      }
      StoreValues(best, d, stream, values + i);
      StoreIndices(best_index, di, stream, indices + i);
    }
    ScanElements<kMin>(input, i, length, hn::GetLane(best), hn::GetLane(best_index), values, indices);
  }
}

template <bool kMin, class T>
void Scan(const Context& context, const T* input, int64_t outer, int64_t length, int64_t inner, T* values,
          int64_t* indices) {
  const bool is_short = length <= std::numeric_limits<int32_t>::max();
  if (inner == 1) {
    const bool stream = ShouldStream(values, length * static_cast<int64_t>(sizeof(T)), outer) &&
                        ShouldStream(indices, length * 8, outer);
    context.ParallelFor(outer, GrainFor(static_cast<double>(length)), [&](int64_t begin, int64_t end) HWY_ATTR {
      const int64_t at = begin * length;
      if constexpr (sizeof(T) <= 4) {
        if (is_short) {
          ScanRows<kMin>(input + at, end - begin, length, stream, values + at, indices + at);
          if (stream) hwy::FlushStream();
          return;
        }
      }
      for (int64_t i = at; i < end * length; i += length) {
        ScanElements<kMin>(input + i, 0, length, Compared<T>{}, 0, values + i, indices + i);
      }
    });
    return;
  }
  // Strips of whole cache lines, narrower where there are few: threads share them.
  const int64_t even = (outer * inner / 16 + 63) / 64 * 64;
  const int64_t strip = std::min(is_short || sizeof(T) == 8 ? kStrip : 1, std::max<int64_t>(64, even));
  const int64_t strips = (inner + strip - 1) / strip;
  const bool stream = ShouldStream(values, inner * static_cast<int64_t>(sizeof(T)), outer * length) &&
                      ShouldStream(indices, inner * 8, outer * length);
  const double nanoseconds = static_cast<double>(length) * static_cast<double>(std::min(strip, inner)) * 0.5;
  context.ParallelFor(outer * strips, GrainFor(nanoseconds), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t column = item % strips * strip, at = item / strips * length * inner + column;
      ScanColumns<kMin>(input + at, length, inner, std::min(strip, inner - column), stream, values + at, indices + at);
    }
    if (stream) hwy::FlushStream();
  });
}

template <class T>
Status CumMaxCpu(const CumMax& op, const Context& context, Tensor<const T, kAnyRank> input, Tensor<T, kAnyRank> values,
                 Tensor<int64_t, kAnyRank> indices) {
  ScanExtents extents;
  POLYOP_RETURN_IF_ERROR(ScanExtents::Of(op, input.shape(), &extents));
  if (input.size() == 0) return Status::Ok();
  const auto scan = op.mode == CumMax::Mode::kMin ? &Scan<true, T> : &Scan<false, T>;
  scan(context, input.data(), extents.outer, extents.length, extents.inner, values.data(), indices.data());
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(CumMax, CumMaxF32, CumMaxCpu<float>);
POLYOP_CPU_KERNEL(CumMax, CumMaxF16, CumMaxCpu<Half>);
POLYOP_CPU_KERNEL(CumMax, CumMaxBF16, CumMaxCpu<BFloat16>);
POLYOP_CPU_KERNEL(CumMax, CumMaxI32, CumMaxCpu<int32_t>);
POLYOP_CPU_KERNEL(CumMax, CumMaxI64, CumMaxCpu<int64_t>);
}  // namespace polyop
#endif
