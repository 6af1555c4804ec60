// SPDX-License-Identifier: Apache-2.0
// Values of the 32 threads of a warp, which they exchange without shared memory. All threads of a warp must call these
// functions together (Block::ForWarps):
//
//   block.ForWarps([&](int warp) {
//     Lanes<float> values;
//     ForLanes([&](int lane) { values[lane] = …; });
//     const float sum = values.Reduce([](float a, float b) { return a + b; });
//   });
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/cuda.h"

namespace polyop {

inline constexpr int kWarpLanes = 32;

/// Calls f(lane) for each thread of a warp. Does not wait: threads exchange values by Lanes only.
template <class F>
POLYOP_DEVICE void ForLanes(const F& f) {
#ifdef __CUDACC__
  f(static_cast<int>(threadIdx.x % kWarpLanes));
#else
  cuda_emulation::InOrder(kWarpLanes, [&](int64_t lane) { f(static_cast<int>(lane)); });
#endif
}

/// Returns a bit per lane: whether f(lane) is true.
template <class F>
POLYOP_DEVICE uint32_t Ballot(const F& f) {
#ifdef __CUDACC__
  return __ballot_sync(~0u, f(static_cast<int>(threadIdx.x % kWarpLanes)));
#else
  uint32_t bits = 0;
  for (int lane = 0; lane < kWarpLanes; ++lane) bits |= static_cast<uint32_t>(f(lane) ? 1 : 0) << lane;
  return bits;
#endif
}

/// Returns the index of the lowest bit that is set. Requires: bits != 0.
POLYOP_HD inline int LowestBit(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __ffs(static_cast<int>(bits)) - 1;
#else
  return __builtin_ctz(bits);
#endif
}

/// A value per thread of a warp. Requires: T is trivially copyable and consists of 32-bit words.
template <class T>
class Lanes {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);

 public:
  /// Returns the value of a thread to itself.
  POLYOP_DEVICE T& operator[](int lane) { return values_[Index(lane)]; }

  /// Returns the value of a lane to every thread.
  POLYOP_DEVICE T At(int lane) const {
#ifdef __CUDACC__
    return Exchange([&](unsigned word) { return __shfl_sync(~0u, word, lane); });
#else
    return values_[lane];
#endif
  }

  /// Returns the value of lane from(lane) to each thread.
  template <class From>
  POLYOP_DEVICE Lanes Gather(const From& from) const {
    Lanes result;
#ifdef __CUDACC__
    const int source = from(static_cast<int>(threadIdx.x % kWarpLanes));
    result.values_[0] = Exchange([&](unsigned word) { return __shfl_sync(~0u, word, source); });
#else
    for (int lane = 0; lane < kWarpLanes; ++lane) result.values_[lane] = values_[from(lane)];
#endif
    return result;
  }

  /// Replaces each value by the sum, by add(a, b), of the values of all lanes that differ from its own only in the bits
  /// from `kFrom` up to, without, `kTo`; both are powers of two. Requires: `add` is associative and commutative.
  template <int kFrom, int kTo, class Add>
  POLYOP_DEVICE void Sum(const Add& add) {
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int step = kFrom; step < kTo; step *= 2) {
#ifdef __CUDACC__
      const T other = Exchange([&](unsigned word) { return __shfl_xor_sync(~0u, word, step); });
      values_[0] = add(values_[0], other);
#else
      const Lanes before = *this;
      for (int lane = 0; lane < kWarpLanes; ++lane)
        values_[lane] = add(before.values_[lane], before.values_[lane ^ step]);
#endif
    }
  }

  /// Returns the sum of all values to every thread. Requires: `add` is associative and commutative.
  template <class Add>
  POLYOP_DEVICE T Reduce(const Add& add) const {
    Lanes sums = *this;
    sums.template Sum<1, kWarpLanes>(add);
    return sums.values_[0];
  }

 private:
#ifdef __CUDACC__
  __device__ static int Index(int) { return 0; }
  template <class F>
  __device__ T Exchange(const F& exchange) const {
    unsigned words[sizeof(T) / 4];
    memcpy(words, &values_[0], sizeof(T));
#pragma unroll
    for (unsigned& word : words) word = exchange(word);
    T result;
    memcpy(&result, words, sizeof(T));
    return result;
  }

  T values_[1];
#else
  static int Index(int lane) { return lane; }

  T values_[kWarpLanes];
#endif
};

}  // namespace polyop
