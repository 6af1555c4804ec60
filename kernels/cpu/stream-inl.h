// SPDX-License-Identifier: Apache-2.0
// Non-temporal stores, which bypass the caches, for outputs that are too large to stay there until they are read. They
// avoid fetching each line before it is overwritten, so that a copy moves two thirds of the bytes.

// Outside of the guard: Highway sets its macros anew each time a target is compiled.
#include "core/words.h"
#include "hwy/cache_control.h"
#include "kernels/cpu/simd.h"

#ifndef POLYOP_KERNELS_CPU_STREAM_INL_H_
#define POLYOP_KERNELS_CPU_STREAM_INL_H_

#include <algorithm>
#include <type_traits>

namespace polyop {

/// Minimum size of outputs that are streamed, because they do not fit into a core's own caches.
inline constexpr int64_t kStreamBytes = int64_t{4} << 20;

/// Only whole lines are streamed; a partial line would need a read-modify-write cycle.
inline constexpr int64_t kCacheLine = 64;

/// Returns whether an output that is written in `count` runs of `run_bytes` bytes is large enough to be streamed.
inline bool ShouldStream(int64_t run_bytes, int64_t count) {
  return run_bytes >= kCacheLine && run_bytes * count >= kStreamBytes;
}

/// Prefetches a line for writing, because a store next to streamed lines would wait for it.
inline void PrefetchForWrite(const void* p) { __builtin_prefetch(p, 1); }

/// Returns the number of elements from `p` to the first whole cache line. Requires: `p` is aligned to the element's
/// size.
template <class T>
int64_t ElementsBeforeLine(const T* p) {
  return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(p) % uintptr_t{kCacheLine} / sizeof(T));
}

}  // namespace polyop
#endif  // POLYOP_KERNELS_CPU_STREAM_INL_H_

#if defined(POLYOP_KERNELS_CPU_STREAM_TARGET_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_STREAM_TARGET_H_
#undef POLYOP_KERNELS_CPU_STREAM_TARGET_H_
#else
#define POLYOP_KERNELS_CPU_STREAM_TARGET_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {

/// Writes `count` zeros. With `stream`, whole lines bypass the caches, and the task must end with hwy::FlushStream().
template <class T>
void FillWithZeros(T* to, int64_t count, bool stream) {
  using Word = WordOf<T>;
  const hn::CappedTag<Word, kCacheLine / sizeof(Word)> d;
  constexpr int64_t kLine = kCacheLine / sizeof(Word);
  auto* const words = reinterpret_cast<Word*>(to);
  int64_t i = stream ? std::min(count, ElementsBeforeLine(words)) : count;
  std::fill_n(words, i, Word{0});
  for (; i + kLine <= count; i += kLine) {
    for (int64_t k = 0; k < kLine; k += static_cast<int64_t>(hn::Lanes(d))) hn::Stream(hn::Zero(d), d, words + i + k);
  }
  std::fill_n(words + i, count - i, Word{0});
}

/// Streams consecutive vectors (with kReverse, in descending order) to unaligned memory. Aligned vectors are assembled
/// from two of them; the ends of the run are stored normally. Requires: the task ends with hwy::FlushStream().
template <class D, bool kReverse = false>
class ShiftedStream {
 public:
  using T = hn::TFromD<D>;

  /// Starts a run of `count` elements. Requires: a multiple of the vector length.
  HWY_INLINE ShiftedStream(T* to, int64_t count) : at_(kReverse ? to + count : to) {
    const D d;
    const hn::RebindToUnsigned<D> du;
    constexpr uintptr_t kBytes = hn::MaxLanes(D()) * sizeof(T);
    ahead_ = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % kBytes / sizeof(T));
    from_ = hn::IndicesFromVec(d, hn::Iota(du, static_cast<hn::TFromD<decltype(du)>>(ahead_)));
    last_ = hn::Zero(d);
    if (ahead_ == 0) return;  // aligned: the ends are streamed, too
    PrefetchForWrite(to);
    PrefetchForWrite(to + count);
  }
  HWY_INLINE void Put(hn::Vec<D> v) {
    const D d;
    constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
    if constexpr (kReverse) at_ -= kLanes;
    if (HWY_LIKELY(begun_)) {
      const auto whole =
          kReverse ? hn::TwoTablesLookupLanes(d, v, last_, from_) : hn::TwoTablesLookupLanes(d, last_, v, from_);
      hn::Stream(whole, d, at_ + ahead_ - (kReverse ? 0 : kLanes));
    } else if constexpr (kReverse) {
      StoreEnd(v, at_);
    } else {
      hn::StoreN(v, d, at_, static_cast<size_t>(ahead_));
    }
    begun_ = true;
    last_ = v;
    if constexpr (!kReverse) at_ += kLanes;
  }
  /// Must be called once after the last vector.
  HWY_INLINE void Finish() {
    const D d;
    constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
    if (!begun_) return;
    if constexpr (kReverse) {
      hn::StoreN(last_, d, at_, static_cast<size_t>(ahead_));
    } else {
      StoreEnd(last_, at_ - kLanes);
    }
  }

 private:
  // Stores the lanes of the vector at `to` that are after the last aligned vector.
  HWY_INLINE void StoreEnd(hn::Vec<D> v, T* to) {
    const D d;
    if (ahead_ == 0) {
      hn::Stream(v, d, to);
    } else {
      hn::StoreN(hn::TwoTablesLookupLanes(d, v, v, from_), d, to + ahead_, hn::Lanes(d) - static_cast<size_t>(ahead_));
    }
  }

  T* at_;          // start of the next vector; with kReverse, of the last one
  int64_t ahead_;  // elements before the first aligned vector
  bool begun_ = false;
  decltype(hn::IndicesFromVec(D(), hn::Zero(hn::RebindToUnsigned<D>()))) from_;
  hn::Vec<D> last_;
};

/// Stores consecutive vectors of floats, or of T, as T (with kReverse, in descending order). With kStream, bypasses the
/// caches if the lanes have type T.
template <bool kStream, class D, class T, bool kReverse = false>
class RunWriter {
 public:
  /// Starts a run of `count` elements. Requires: a multiple of the vector length.
  HWY_INLINE RunWriter(T* to, int64_t count) : stream_(to, count), at_(kReverse ? to + count : to) {}
  HWY_INLINE void Put(hn::Vec<D> v) {
    const D d;
    if constexpr (kShifted) {
      stream_.Put(v);
    } else {
      if constexpr (kReverse) at_ -= hn::Lanes(d);
      if constexpr (std::is_integral_v<T>) {
        hn::StoreU(v, d, at_);
      } else {
        StoreFloat(v, d, at_);
      }
      if constexpr (!kReverse) at_ += hn::Lanes(d);
    }
  }
  /// Must be called once after the last vector.
  HWY_INLINE void Finish() {
    if constexpr (kShifted) stream_.Finish();
  }

 private:
  static constexpr bool kShifted = kStream && std::is_same_v<T, hn::TFromD<D>>;
  struct Nothing {
    Nothing(T*, int64_t) {}
  };
  std::conditional_t<kShifted, ShiftedStream<D, kReverse>, Nothing> stream_;
  T* at_;
};

/// Copies `count` elements that are in a cache and streams the whole lines of the target. Requires: the task ends with
/// hwy::FlushStream().
template <class T>
HWY_INLINE void StreamRun(const T* from, int64_t count, T* to) {
  using Lane = hwy::UnsignedFromSize<sizeof(T)>;
  constexpr int64_t kLine = kCacheLine / static_cast<int64_t>(sizeof(T));
  const hn::CappedTag<Lane, static_cast<size_t>(kLine)> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = std::min(count, ElementsBeforeLine(to));
  std::copy_n(from, i, to);
  for (; i + kLine <= count; i += kLine) {
    for (int64_t k = i; k < i + kLine; k += lanes) {
      hn::Stream(hn::LoadU(d, reinterpret_cast<const Lane*>(from + k)), d, reinterpret_cast<Lane*>(to + k));
    }
  }
  std::copy_n(from + i, count - i, to + i);
}

/// Like StreamRun for floats, which are multiplied by `factor`.
HWY_INLINE void StreamScaled(const float* from, float factor, int64_t count, float* to) {
  constexpr int64_t kLine = kCacheLine / static_cast<int64_t>(sizeof(float));
  const hn::CappedTag<float, static_cast<size_t>(kLine)> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), head = std::min(count, ElementsBeforeLine(to));
  const int64_t lines = head + (count - head) / kLine * kLine;
  const auto f = hn::Set(d, factor);
  int64_t i = 0;
  for (; i < head; ++i) to[i] = from[i] * factor;
  for (; i < lines; i += lanes) hn::Stream(hn::Mul(hn::LoadU(d, from + i), f), d, to + i);
  for (; i < count; ++i) to[i] = from[i] * factor;
}

}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif  // per-target part
