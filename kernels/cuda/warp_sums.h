// SPDX-License-Identifier: Apache-2.0
// A small matrix product computed by the 32 threads of a warp.
#pragma once

#include <type_traits>

#include "kernels/cuda/cuda.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <mma.h>
#endif

namespace polyop {

namespace warp_sums_internal {

inline constexpr int kDepth = 16;  // of a call of Add
inline constexpr int kBand = 16;   // rows
inline constexpr int kBands = 4;

// Uses fused multiply-adds; each thread keeps 2 x 8 sums of each band.
template <class T>
class LaneSums {
 public:
  POLYOP_DEVICE void Clear() {
    ForLanes([](int, Sums& sums) {
      for (auto& row : sums.of) {
        for (float& sum : row) sum = 0;
      }
    });
  }
  template <int kUsed>
  POLYOP_DEVICE void Add(const T* a, int a_step, const T* b, int b_step) {
    ForLanes([&](int lane, Sums& sums) {
      for (int k = 0; k < kDepth; ++k) {
        const T* const across = Aligned<4>(b + k * b_step + Column(lane));
        float right[kColumns];
        for (int j = 0; j < kColumns; ++j) right[j] = ToFloat(across[j]);
        for (int band = 0; band < kUsed; ++band) {
          const T* const down = Aligned<kRows>(a + k * a_step + band * kBand + Row(lane));
          for (int i = 0; i < kRows; ++i) {
            const float left = ToFloat(down[i]);
            float* const row = sums.of[band * kRows + i];
            for (int j = 0; j < kColumns; ++j) row[j] = std::fma(left, right[j], row[j]);
          }
        }
      }
    });
  }
  template <int kWhich>
  POLYOP_DEVICE void Store(float* to) {
    ForLanes([&](int lane, Sums& sums) {
      for (int i = 0; i < kRows; ++i) {
        for (int j = 0; j < kColumns; ++j) {
          to[(Row(lane) + i) * 32 + Column(lane) + j] = sums.of[kWhich * kRows + i][j];
        }
      }
    });
  }

 private:
  static constexpr int kRows = 2, kColumns = 8;
  struct Sums {
    float of[kBands * kRows][kColumns];
  };
  POLYOP_HD static int Row(int lane) { return lane / 4 * kRows; }
  POLYOP_HD static int Column(int lane) { return lane % 4 * kColumns; }
  template <int kElements>
  POLYOP_HD static const T* Aligned(const T* at) {
    return static_cast<const T*>(__builtin_assume_aligned(at, kElements * sizeof(T)));
  }

#ifdef __CUDACC__
  template <class F>
  __device__ void ForLanes(const F& f) {
    f(static_cast<int>(threadIdx.x % 32), sums_);
  }
  Sums sums_;
#else
  template <class F>
  void ForLanes(const F& f) {
    cuda_emulation::InOrder(32, [&](int64_t lane) { f(static_cast<int>(lane), sums_[lane]); });
  }
  Sums sums_[32];
#endif
};

#ifdef __CUDACC__
template <class T>
using TensorCoreType = std::conditional_t<std::is_same_v<T, Half>, __half, __nv_bfloat16>;

// Uses tensor cores: kBands x 2 squares of 16 x 16.
template <class T>
class TensorSums {
 public:
  __device__ void Clear() {
    for (auto& band : sums_) {
      for (auto& square : band) nvcuda::wmma::fill_fragment(square, 0.0f);
    }
  }
  template <int kUsed>
  __device__ void Add(const T* a, int a_step, const T* b, int b_step) {
    using nvcuda::wmma::fragment;
    fragment<nvcuda::wmma::matrix_b, kBand, kBand, kDepth, Element, nvcuda::wmma::row_major> across[2];
    for (int j = 0; j < 2; ++j) {
      nvcuda::wmma::load_matrix_sync(across[j], Elements(b + j * kBand), static_cast<unsigned>(b_step));
    }
    for (int band = 0; band < kUsed; ++band) {
      fragment<nvcuda::wmma::matrix_a, kBand, kBand, kDepth, Element, nvcuda::wmma::col_major> down;
      nvcuda::wmma::load_matrix_sync(down, Elements(a + band * kBand), static_cast<unsigned>(a_step));
      for (int j = 0; j < 2; ++j) nvcuda::wmma::mma_sync(sums_[band][j], down, across[j], sums_[band][j]);
    }
  }
  template <int kWhich>
  __device__ void Store(float* to) {
    for (int j = 0; j < 2; ++j) {
      nvcuda::wmma::store_matrix_sync(to + j * kBand, sums_[kWhich][j], 32, nvcuda::wmma::mem_row_major);
    }
  }

 private:
  using Element = TensorCoreType<T>;
  __device__ static const Element* Elements(const T* at) { return reinterpret_cast<const Element*>(at); }

  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kBand, kBand, kDepth, float> sums_[kBands][2];
};
#endif

// The implementation for this GPU architecture.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <class T>
inline constexpr bool kHasTensorCores = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
template <class T>
inline constexpr bool kHasTensorCores = std::is_same_v<T, Half>;
#endif

#ifdef __CUDA_ARCH__
template <class T>
using Sums = std::conditional_t<kHasTensorCores<T>, TensorSums<T>, LaneSums<T>>;
#else
template <class T>
using Sums = LaneSums<T>;
#endif

}  // namespace warp_sums_internal

/// Up to 4 bands of 16 x 32 sums of products in float. Uses tensor cores if the GPU supports T (f16, and bf16 since
/// sm_80), else fused multiply-adds. All threads of a warp must call its functions together (Block::ForWarps).
///
///   Clear()                              sets all sums to 0
///   Add<bands>(a, a_step, b, b_step)     sum[i][j] += a[k * a_step + i] * b[k * b_step + j] for k < 16 and i in the
///                                        first bands
///   Store<band>(to)                      writes a band to to[16][32]
///
/// Requires: `a`, `b` and `to` are shared memory aligned to 32 bytes; the bytes of steps are multiples of 16.
template <class T>
using WarpSums = warp_sums_internal::Sums<T>;

}  // namespace polyop
