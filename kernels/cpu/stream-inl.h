// Stores that go past the caches, for outputs that are too large to stay there until they are read. They save
// fetching each line before it is overwritten: a copy moves two thirds of the bytes.

// Outside of the guard: Highway sets its macros anew each time a target is compiled.
#include "core/words.h"
#include "hwy/cache_control.h"
#include "kernels/cpu/simd.h"

#ifndef POLYOP_KERNELS_CPU_STREAM_INL_H_
#define POLYOP_KERNELS_CPU_STREAM_INL_H_

#include <algorithm>
#include <type_traits>

namespace polyop {

/// Outputs of this many bytes are streamed: they do not fit into a core's own caches.
inline constexpr int64_t kStreamBytes = int64_t{4} << 20;

/// Whole lines alone are streamed: a part of one would be read, changed and written by the memory.
inline constexpr int64_t kCacheLine = 64;

/// True if an output that is written in `count` runs of `run_bytes` bytes is large enough to be streamed.
inline bool ShouldStream(int64_t run_bytes, int64_t count) {
  return run_bytes >= kCacheLine && run_bytes * count >= kStreamBytes;
}

/// Calls the line to the cache, to be written: what is stored next to streamed lines would wait for it.
inline void PrefetchForWrite(const void* p) { __builtin_prefetch(p, 1); }

/// Elements from `p` on that lie before the first whole cache line. `p` is a multiple of an element's size.
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

/// Stores all lanes. With kStream past the caches: `p` must be aligned then, its neighbours up to whole cache lines
/// must follow at once, and the task must end with hwy::FlushStream().
template <bool kStream, class D>
HWY_INLINE void StoreOrStream(hn::Vec<D> v, D d, hn::TFromD<D>* p) {
  if constexpr (kStream) {
    hn::Stream(v, d, p);
  } else {
    hn::StoreU(v, d, p);
  }
}

/// Writes `count` zeros; with `stream` past the caches but for the ends, and the task must end with hwy::FlushStream().
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

/// Streams vectors that follow each other (with kReverse: each lies in front of the one before) to a run of memory that
/// begins anywhere. Whole vectors are put together of two of them; the run's ends are stored. The task must end with
/// hwy::FlushStream().
template <class D, bool kReverse = false>
class ShiftedStream {
 public:
  using T = hn::TFromD<D>;

  /// The run has `count` elements, a whole number of vectors.
  HWY_INLINE ShiftedStream(T* to, int64_t count) : at_(kReverse ? to + count : to) {
    const D d;
    const hn::RebindToUnsigned<D> du;
    constexpr uintptr_t kBytes = hn::MaxLanes(D()) * sizeof(T);
    ahead_ = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % kBytes / sizeof(T));
    from_ = hn::IndicesFromVec(d, hn::Iota(du, static_cast<hn::TFromD<decltype(du)>>(ahead_)));
    last_ = hn::Zero(d);
    if (ahead_ == 0) return;  // its ends are streamed, too
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
  /// To be called once, behind the last vector.
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
  // The lanes of the vector at `to` that lie behind the last whole vector of memory before it.
  HWY_INLINE void StoreEnd(hn::Vec<D> v, T* to) {
    const D d;
    if (ahead_ == 0) {
      hn::Stream(v, d, to);
    } else {
      hn::StoreN(hn::TwoTablesLookupLanes(d, v, v, from_), d, to + ahead_, hn::Lanes(d) - static_cast<size_t>(ahead_));
    }
  }

  T* at_;          // where the next vector begins; reversed, where the last one did
  int64_t ahead_;  // elements in front of the first whole vector of memory
  bool begun_ = false;
  decltype(hn::IndicesFromVec(D(), hn::Zero(hn::RebindToUnsigned<D>()))) from_;
  hn::Vec<D> last_;
};

/// Stores vectors of floats, or of T itself, one behind the other (or in front of it) as T; with kStream, where T is
/// what the lanes hold, past the caches.
template <bool kStream, class D, class T, bool kReverse = false>
class RunWriter {
 public:
  /// The run has `count` elements, a whole number of vectors.
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
  /// To be called once, behind the last vector.
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

/// Copies a run of `count` elements, which is in a cache, and streams the whole lines of the target, wherever they
/// begin. The task must end with hwy::FlushStream().
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

/// The same of floats that are multiplied on the way.
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
