// Stores that go past the caches, for outputs that are too large to stay there until they are read. They save
// fetching each line before it is overwritten: a copy moves two thirds of the bytes.

// Outside of the guard: Highway sets its macros anew each time a target is compiled.
#include "hwy/cache_control.h"
#include "kernels/cpu/simd.h"

#ifndef POLYOP_KERNELS_CPU_STREAM_INL_H_
#define POLYOP_KERNELS_CPU_STREAM_INL_H_
namespace polyop {

/// Outputs of this many bytes are streamed: they do not fit into a core's own caches.
inline constexpr int64_t kStreamBytes = int64_t{4} << 20;

/// True if each of `count` rows of `row_bytes` bytes from `data` on can be streamed: all are aligned for every
/// instruction set, and together they are large.
inline bool ShouldStream(const void* data, int64_t row_bytes, int64_t count) {
  constexpr int64_t kAlign = 64;
  return reinterpret_cast<uintptr_t>(data) % kAlign == 0 && (row_bytes % kAlign == 0 || count == 1) &&
         row_bytes >= kAlign && row_bytes * count >= kStreamBytes;
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

/// Stores all lanes. With kStream past the caches: `p` must be aligned then, and the task must end with
/// hwy::FlushStream().
template <bool kStream, class D>
HWY_INLINE void StoreOrStream(hn::Vec<D> v, D d, hn::TFromD<D>* p) {
  if constexpr (kStream) {
    hn::Stream(v, d, p);
  } else {
    hn::StoreU(v, d, p);
  }
}

/// Copies `bytes` bytes; streams all that is aligned if `stream` is set. Nothing may overlap.
HWY_INLINE void CopyBytes(const void* from, void* to, int64_t bytes, bool stream) {
  if (bytes == 0) return;  // the pointers may be null
  const uint8_t* source = static_cast<const uint8_t*>(from);
  uint8_t* target = static_cast<uint8_t*>(to);
  const hn::ScalableTag<uint8_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (!stream || bytes < 4 * lanes) {
    hwy::CopyBytes(source, target, static_cast<size_t>(bytes));
    return;
  }
  int64_t i =
      (lanes - static_cast<int64_t>(reinterpret_cast<uintptr_t>(target) % static_cast<uintptr_t>(lanes))) % lanes;
  hwy::CopyBytes(source, target, static_cast<size_t>(i));
  for (; i + lanes <= bytes; i += lanes) hn::Stream(hn::LoadU(d, source + i), d, target + i);
  hwy::CopyBytes(source + i, target + i, static_cast<size_t>(bytes - i));
  hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif  // per-target part
