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

// Uses fused multiply-adds; each thread keeps 4 x 8 sums.
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
  POLYOP_DEVICE void Add(const T* a, int a_step, const T* b, int b_step, int depth) {
    ForLanes([&](int lane, Sums& sums) {
      for (int k = 0; k < depth; ++k) {
        const T* const down = Aligned(a + k * a_step + Row(lane));
        const T* const across = Aligned(b + k * b_step + Column(lane));
        for (int i = 0; i < kRows; ++i) {
          for (int j = 0; j < kColumns; ++j) {
            sums.of[i][j] = std::fma(ToFloat(down[i]), ToFloat(across[j]), sums.of[i][j]);
          }
        }
      }
    });
  }
  template <int kHalf>
  POLYOP_DEVICE void Store(float* to) {
    ForLanes([&](int lane, Sums& sums) {
      if (Row(lane) / 16 != kHalf) return;
      for (int i = 0; i < kRows; ++i) {
        for (int j = 0; j < kColumns; ++j) to[(Row(lane) % 16 + i) * 32 + Column(lane) + j] = sums.of[i][j];
      }
    });
  }

 private:
  static constexpr int kRows = 4, kColumns = 8;
  struct Sums {
    float of[kRows][kColumns];
  };
  POLYOP_HD static int Row(int lane) { return lane / 4 * kRows; }
  POLYOP_HD static int Column(int lane) { return lane % 4 * kColumns; }
  POLYOP_HD static const T* Aligned(const T* at) {
    return static_cast<const T*>(__builtin_assume_aligned(at, kRows * sizeof(T)));
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

// Uses tensor cores: 2 x 2 squares of 16 x 16.
template <class T>
class TensorSums {
 public:
  __device__ void Clear() {
    for (auto& row : sums_) {
      for (auto& square : row) nvcuda::wmma::fill_fragment(square, 0.0f);
    }
  }
  __device__ void Add(const T* a, int a_step, const T* b, int b_step, int depth) {
    using nvcuda::wmma::fragment;
    for (int k = 0; k < depth; k += kSquare) {
      fragment<nvcuda::wmma::matrix_a, kSquare, kSquare, kSquare, Element, nvcuda::wmma::col_major> down[2];
      fragment<nvcuda::wmma::matrix_b, kSquare, kSquare, kSquare, Element, nvcuda::wmma::row_major> across[2];
      for (int i = 0; i < 2; ++i) {
        nvcuda::wmma::load_matrix_sync(down[i], Elements(a + k * a_step + i * kSquare), static_cast<unsigned>(a_step));
        nvcuda::wmma::load_matrix_sync(across[i], Elements(b + k * b_step + i * kSquare),
                                       static_cast<unsigned>(b_step));
      }
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) nvcuda::wmma::mma_sync(sums_[i][j], down[i], across[j], sums_[i][j]);
      }
    }
  }
  template <int kHalf>
  __device__ void Store(float* to) {
    for (int j = 0; j < 2; ++j) {
      nvcuda::wmma::store_matrix_sync(to + j * kSquare, sums_[kHalf][j], 32, nvcuda::wmma::mem_row_major);
    }
  }

 private:
  static constexpr int kSquare = 16;
  using Element = TensorCoreType<T>;
  __device__ static const Element* Elements(const T* at) { return reinterpret_cast<const Element*>(at); }

  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kSquare, kSquare, kSquare, float> sums_[2][2];
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

/// 32 x 32 sums of products in float. Uses tensor cores if the GPU supports T (f16, and bf16 since sm_80), else fused
/// multiply-adds. All threads of a warp must call its functions together (Block::ForWarps).
///
///   Clear()                               sets all sums to 0
///   Add(a, a_step, b, b_step, depth)      sum[i][j] += a[k * a_step + i] * b[k * b_step + j] for k < depth
///   Store<half>(to)                       writes the upper (0) or lower (1) 16 rows to to[16][32]
///
/// Requires: `a`, `b` and `to` are shared memory aligned to 32 bytes; steps are multiples of 8, `depth` is a multiple
/// of 16.
template <class T>
using WarpSums = warp_sums_internal::Sums<T>;

}  // namespace polyop
