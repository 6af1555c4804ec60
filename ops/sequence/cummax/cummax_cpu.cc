// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sequence/cummax/cummax_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/running_max-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"
#include "ops/sequence/cummax/cummax.h"

#ifndef POLYOP_OPS_CUMMAX_ONCE_
#define POLYOP_OPS_CUMMAX_ONCE_
namespace polyop {
namespace {

// Scans elements [at, length) of a row one at a time. `best` and `index` are the running extremum of the elements
// before.
template <bool kMin, class T>
void ScanElements(const T* input, int64_t at, int64_t length, Compared<T> best, int64_t index, T* values,
                  int64_t* indices) {
  for (int64_t i = at; i < length; ++i) {
    const Compared<T> x = ToCompared(input[i]);
    if (i == 0 || Replaces<kMin>(x, best)) {
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

// Maps elements to integers of the same order: zeros of both signs are equal, NaN is the greatest.
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

// Scans rows of contiguous elements of at most 32 bits. Requires: `length` fits in 31 bits.
template <bool kMin, bool kStream, class T>
void ScanRows(const T* input, int64_t rows, int64_t length, T* values, int64_t* indices) {
  using D = hn::ScalableTag<Compared<T>>;
  using DI = hn::RebindToSigned<D>;
  const D d;
  const DI di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = length / lanes * lanes;
  const PrefixMax<DI> prefix_max;
  const auto lane = hn::Iota(di, 0);
  const bool one_run = whole == length;  // rows are contiguous, without a remainder
  RunWriter<kStream, D, T> value_run(values, whole);
  IndexWriter<kStream, DI> index_run(indices, whole);
  for (int64_t r = 0; r < rows; ++r, input += length, values += length, indices += length) {
    auto best = hn::Set(d, ToCompared(input[0]));
    auto best_key = SortKey<kMin>(best), best_index = hn::Zero(di);
    if (r > 0 && !one_run) {
      value_run = RunWriter<kStream, D, T>(values, whole);
      index_run = IndexWriter<kStream, DI>(indices, whole);
    }
    for (int64_t i = 0; i < whole; i += lanes) {
      const auto x = LoadCompared(d, input + i);
      // Most vectors of an unsorted row hold no new extremum.
      if (hn::AllTrue(d, kMin ? hn::Gt(x, best) : hn::Lt(x, best))) {
        value_run.Put(best);
        index_run.Put(best_index);
        continue;
      }
      // First the running extremum within this vector and its latest lane, then the extremum of the vectors before
      // where it is better. This order keeps the dependency on the previous vector short.
      const auto key = SortKey<kMin>(x), running = prefix_max(key);
      const auto from = prefix_max(hn::IfThenElseZero(hn::Eq(key, running), lane));
      const auto gathered = hn::TableLookupLanes(x, hn::IndicesFromVec(d, from));
      const auto use_before = hn::Lt(running, best_key);
      const auto value = hn::IfThenElse(hn::RebindMask(d, use_before), best, gathered);
      const auto index = hn::IfThenElse(use_before, best_index, hn::Add(from, hn::Set(di, static_cast<int32_t>(i))));
      best_key = prefix_max.Last(hn::Max(running, best_key));
      value_run.Put(value);
      index_run.Put(index);
      best = prefix_max.Last(value);
      best_index = prefix_max.Last(index);
    }
    if (!one_run || r + 1 == rows) {
      value_run.Finish();
      index_run.Finish();
    }
    ScanElements<kMin>(input, whole, length, hn::GetLane(best), hn::GetLane(best_index), values, indices);
  }
}

template <bool kMin, bool kStream, class T>
void Scan(const Context& context, const T* input, int64_t outer, int64_t length, int64_t inner, T* values,
          int64_t* indices) {
  const bool is_short = length <= std::numeric_limits<int32_t>::max();
  if (inner == 1) {
    context.ParallelFor(outer, GrainFor(static_cast<double>(length)), [&](int64_t begin, int64_t end) HWY_ATTR {
      const int64_t at = begin * length;
      if constexpr (sizeof(T) <= 4) {
        if (is_short) {
          ScanRows<kMin, kStream>(input + at, end - begin, length, values + at, indices + at);
          if (kStream) hwy::FlushStream();
          return;
        }
      }
      for (int64_t i = at; i < end * length; i += length) {
        ScanElements<kMin>(input + i, 0, length, Compared<T>{}, 0, values + i, indices + i);
      }
    });
    return;
  }
  const auto scan = [&](int64_t plane, int64_t column, int64_t columns) HWY_ATTR {
    const int64_t at = plane * length * inner + column;
    RunDownColumns<kMin, true, kStream>(input + at, length, inner, columns, values + at, indices + at);
  };
  ForColumnStrips(context, outer, inner, is_short || sizeof(T) == 8 ? kRunningPart : 1,
                  static_cast<double>(length) * 0.5, scan);
}

template <bool kMin, class T>
void Scan(const Context& context, const T* input, const ScanExtents& e, T* values, int64_t* indices) {
  const int64_t run = e.inner == 1 ? e.length : e.inner;
  const bool stream = ShouldStream(run * static_cast<int64_t>(sizeof(T)), e.outer * e.length * e.inner / run);
  (stream ? Scan<kMin, true, T> : Scan<kMin, false, T>)(context, input, e.outer, e.length, e.inner, values, indices);
}

template <class T>
Status CumMaxCpu(const CumMax& op, const Context& context, Tensor<const T, kAnyRank> input, Tensor<T, kAnyRank> values,
                 Tensor<int64_t, kAnyRank> indices) {
  const ScanExtents extents = ScanExtents::Of(op.dim, input.shape());
  if (op.mode == CumMax::Mode::kMin) {
    Scan<true>(context, input.data(), extents, values.data(), indices.data());
  } else {
    Scan<false>(context, input.data(), extents, values.data(), indices.data());
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(CumMax, CumMaxCpu, float, Half, BFloat16, int32_t, int64_t);
}  // namespace polyop
#endif
