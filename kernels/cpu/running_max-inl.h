// SPDX-License-Identifier: Apache-2.0
// Running maxima and minima within a vector's lanes and down the columns of a matrix. Compiled once per instruction
// set; include it from a kernel file.

// Outside of the guard because Highway redefines its macros for each target.
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"

#ifndef POLYOP_KERNELS_CPU_RUNNING_MAX_INL_H_
#define POLYOP_KERNELS_CPU_RUNNING_MAX_INL_H_

#include <algorithm>
#include <type_traits>

namespace polyop {

/// The type in which elements of T are compared.
template <class T>
using Compared = std::conditional_t<std::is_integral_v<T>, T, float>;

template <class T>
Compared<T> ToCompared(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return ToFloat(x);
  }
}
template <class T>
T FromCompared(Compared<T> x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return FromFloat<T>(x);
  }
}

/// Returns whether `x` replaces `best`, which precedes it: if it is better, equal or NaN.
template <bool kMin, class C>
bool Replaces(C x, C best) {
  return (kMin ? x <= best : x >= best) || x != x;
}

/// Elements of a row, or columns, that are processed together, so that their state and results stay in the L1 cache.
inline constexpr int64_t kRunningPart = 2048;

/// Calls body(plane, column, columns) for strips of at most `max_columns` <= kRunningPart columns of `planes` matrices
/// of `width` columns, in parallel. Strips are whole cache lines, and narrower if there would be few.
template <class Body>
void ForColumnStrips(const Context& context, int64_t planes, int64_t width, int64_t max_columns,
                     double nanoseconds_per_column, const Body& body) {
  const int64_t even = (planes * width / 16 + 63) / 64 * 64, strip = std::min(max_columns, std::max<int64_t>(64, even));
  const int64_t strips = (width + strip - 1) / strip;
  const int64_t grain = GrainFor(nanoseconds_per_column * static_cast<double>(std::min(strip, width)));
  context.ParallelFor(planes * strips, grain, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t column = item % strips * strip;
      body(item / strips, column, std::min(strip, width - column));
    }
    hwy::FlushStream();
  });
}

}  // namespace polyop
#endif  // POLYOP_KERNELS_CPU_RUNNING_MAX_INL_H_

#if defined(POLYOP_KERNELS_CPU_RUNNING_MAX_TARGET_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_RUNNING_MAX_TARGET_H_
#undef POLYOP_KERNELS_CPU_RUNNING_MAX_TARGET_H_
#else
#define POLYOP_KERNELS_CPU_RUNNING_MAX_TARGET_H_
#endif

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
/// Stores consecutive vectors of indices, which have lanes of 32 or 64 bits.
template <bool kStream, class DI>
class IndexWriter {
 public:
  /// Starts a run of `count` indices. Requires: a multiple of the vector length.
  HWY_INLINE IndexWriter(int64_t* to, int64_t count) : run_(to, count) {}
  HWY_INLINE void Put(hn::Vec<DI> v) {
    if constexpr (sizeof(hn::TFromD<DI>) == 8) {
      run_.Put(v);
    } else {
      run_.Put(hn::PromoteLowerTo(DL(), v));
      run_.Put(hn::PromoteUpperTo(DL(), v));
    }
  }
  HWY_INLINE void Finish() { run_.Finish(); }

 private:
  using DL = hn::Repartition<int64_t, DI>;
  RunWriter<kStream, DL, int64_t> run_;
};

/// Computes the maxima of the lanes up to each lane (kReverse: from each lane on) in log2(lanes) steps. A lane without
/// a partner is combined with itself, which does not change a maximum.
template <class D, bool kReverse = false>
struct PrefixMax {
  static constexpr size_t kSteps = hwy::CeilLog2(hn::MaxLanes(D()));
  using DI = hn::RebindToSigned<D>;
  decltype(hn::IndicesFromVec(D(), hn::Zero(DI()))) table[kSteps], last;

  HWY_INLINE PrefixMax() {
    const D d;
    const DI di;
    const auto lane = hn::Iota(di, 0), end = hn::Set(di, static_cast<hn::TFromD<DI>>(hn::Lanes(di) - 1));
    for (size_t s = 0; s < kSteps; ++s) {
      const auto shift = hn::Set(di, hn::TFromD<DI>{1} << s);
      const auto other = kReverse ? hn::Add(lane, shift) : hn::Sub(lane, shift);
      const auto outside = kReverse ? hn::Gt(other, end) : hn::Lt(other, hn::Zero(di));
      table[s] = hn::IndicesFromVec(d, hn::IfThenElse(outside, lane, other));
    }
    last = hn::IndicesFromVec(d, kReverse ? hn::Zero(di) : end);
  }
  HWY_INLINE hn::Vec<D> operator()(hn::Vec<D> v) const {
    for (size_t s = 0; s < kSteps; ++s) v = hn::Max(v, hn::TableLookupLanes(v, table[s]));
    return v;
  }
  /// Broadcasts the last lane in scan order. V's lanes are as wide as D's.
  template <class V>
  HWY_INLINE V Last(V v) const {
    return hn::BitCast(hn::DFromV<V>(), hn::TableLookupLanes(hn::BitCast(D(), v), last));
  }
};

/// Scans `length` rows of `width` <= kRunningPart neighbouring columns, which are `step` elements apart (negative:
/// upwards), and writes the running maxima (kMin: minima), with kIndices also their row indices. Requires: row indices
/// fit in lanes of the compared type; with kStream, the task ends with hwy::FlushStream().
template <bool kMin, bool kIndices, bool kStream, class T>
void RunDownColumns(const T* input, int64_t length, int64_t step, int64_t width, T* values, int64_t* indices) {
  using C = Compared<T>;
  using D = hn::ScalableTag<C>;
  using DI = hn::RebindToSigned<D>;
  using I = hn::TFromD<DI>;
  const D d;
  const DI di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = width / lanes * lanes;
  HWY_ALIGN C best[kRunningPart];
  HWY_ALIGN I best_row[kIndices ? kRunningPart : 1];
  for (int64_t j = 0; j < width; ++j) best[j] = ToCompared(input[j]);
  if constexpr (kIndices) std::fill_n(best_row, width, I{0});
  const bool one_run = whole == step;  // output rows are contiguous
  RunWriter<kStream, D, T> value_run(values, whole);
  IndexWriter<kStream && kIndices, DI> index_run(indices, kIndices ? whole : 0);
  for (int64_t k = 0; k < length; ++k, input += step, values += step) {
    if (k > 0 && !one_run) {
      value_run = RunWriter<kStream, D, T>(values, whole);
      index_run = IndexWriter < kStream && kIndices, DI > (indices, kIndices ? whole : 0);
    }
    for (int64_t j = 0; j < whole; j += lanes) {
      const auto x = LoadCompared(d, input + j), b = hn::Load(d, best + j);
      auto take = kMin ? hn::Le(x, b) : hn::Ge(x, b);
      if constexpr (std::is_same_v<C, float>) take = hn::Or(take, hn::IsNaN(x));
      const auto value = hn::IfThenElse(take, x, b);
      hn::Store(value, d, best + j);
      value_run.Put(value);
      if constexpr (kIndices) {
        const auto row = hn::Set(di, static_cast<I>(k));
        const auto index = hn::IfThenElse(hn::RebindMask(di, take), row, hn::Load(di, best_row + j));
        hn::Store(index, di, best_row + j);
        index_run.Put(index);
      }
    }
    const bool ends = !one_run || k + 1 == length;
    if (ends) value_run.Finish();
    for (int64_t j = whole; j < width; ++j) {
      const C x = ToCompared(input[j]);
      const bool take = Replaces<kMin>(x, best[j]);
      if (take) best[j] = x;
      values[j] = FromCompared<T>(best[j]);
      if constexpr (kIndices) {
        if (take) best_row[j] = static_cast<I>(k);
        indices[j] = best_row[j];
      }
    }
    if constexpr (kIndices) {
      if (ends) index_run.Finish();
      indices += step;
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif  // per-target part
