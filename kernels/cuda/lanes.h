// The 32 threads of a warp, which exchange values without shared memory.
#pragma once

#include "kernels/cuda/cuda.h"

namespace polyop {

inline constexpr int kLanes = 32;

/// A variable with a separate value per lane, within a phase of Block::ForWarps.
template <class T>
class Lanes {
 public:
#ifdef __CUDACC__
  __device__ T& operator[](int) { return value_; }

 private:
  T value_;
#else
  T& operator[](int lane) { return values_[lane]; }
  const T& operator[](int lane) const { return values_[lane]; }

 private:
  T values_[kLanes];
#endif
};

/// Calls f(lane) for every lane. Lanes must not exchange values through memory.
template <class F>
POLYOP_DEVICE void ForLanes(const F& f) {
#ifdef __CUDACC__
  f(static_cast<int>(threadIdx.x % kLanes));
#else
  cuda_emulation::InOrder(kLanes, [&](int64_t lane) { f(static_cast<int>(lane)); });
#endif
}

/// Sets every lane's value to the sum by `add` of all of them, in a fixed order. Requires: `add` is associative and
/// commutative.
/// T is a number of 32 or 64 bits.
template <class T, class Add>
POLYOP_DEVICE void ReduceLanes(Lanes<T>& values, const Add& add) {
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
#ifdef __CUDACC__
    values[0] = add(values[0], __shfl_xor_sync(0xffffffffu, values[0], distance));
#else
    const Lanes<T> before = values;
    for (int lane = 0; lane < kLanes; ++lane) values[lane] = add(before[lane], before[lane ^ distance]);
#endif
  }
}

}  // namespace polyop
