// SPDX-License-Identifier: Apache-2.0
// A tiled product of f16 or bf16 matrices, one tile per block, whose factors are in memory in pieces of 16 bytes:
// gathered rows, filters. Pieces are copied to shared memory while the warps multiply those of the previous step.
#pragma once

#include <type_traits>

#include "kernels/cuda/warp_lanes.h"
#include "kernels/cuda/warp_sums.h"

#ifndef __CUDACC__
#include <utility>
#include <vector>
#endif

namespace polyop {

/// Copies of 16 bytes to shared memory that a thread starts and later waits for; as of sm_80 they run meanwhile. A
/// barrier must follow a wait before other threads read the bytes. `from` must be aligned, also if it does not exist,
/// and then zeros are written.
class CopiesAhead {
 public:
#ifdef __CUDACC__
  __device__ void Start(void* to, const void* from, bool exists) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const auto at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(exists ? 16 : 0) : "memory");
#else
    *static_cast<uint4*>(to) = exists ? *static_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
#endif
  }
  __device__ void Wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  }
#else
  // Copies when the thread waits, so that a missing wait is detected.
  void Start(void* to, const void* from, bool exists) { started_.emplace_back(to, exists ? from : nullptr); }
  void Wait() {
    for (const auto& [to, from] : started_) {
      if (from != nullptr) {
        std::copy_n(static_cast<const char*>(from), 16, static_cast<char*>(to));
      } else {
        std::fill_n(static_cast<char*>(to), 16, char{0});
      }
    }
    started_.clear();
  }

 private:
  std::vector<std::pair<void*, const void*>> started_;
#endif
};

/// Where a factor's piece of 16 bytes is. `at` is aligned to 16 bytes even if the piece does not exist.
template <class T>
struct Piece {
  const T* at;
  bool exists;
};

namespace copied_product_internal {

// kBands x 16 rows and 32 columns of sums of a warp, by fused multiply-adds: each lane has a column.
template <class T, int kBands, bool kLeftByDepth, bool kRightByDepth>
class LaneTile {
 public:
  POLYOP_DEVICE void Clear() {
    ForLanes([&](int lane) { sums_[lane] = Sums{}; });
  }
  POLYOP_DEVICE void Add(const T* left, int left_step, const T* right, int right_step) {
    ForLanes([&](int lane) {
      Sums& sums = sums_[lane];
      for (int k = 0; k < 16; ++k) {
        const float factor = ToFloat(right[kRightByDepth ? k * right_step + lane : lane * right_step + k]);
        for (int i = 0; i < kBands * 16; ++i) {
          sums.of[i] =
              std::fma(ToFloat(left[kLeftByDepth ? k * left_step + i : i * left_step + k]), factor, sums.of[i]);
        }
      }
    });
  }
  POLYOP_DEVICE void Store(int band, float* to) {
    ForLanes([&](int lane) {
      for (int b = 0; b < kBands; ++b) {
        for (int i = 0; i < 16 && b == band; ++i) to[i * 32 + lane] = sums_[lane].of[b * 16 + i];
      }
    });
  }

 private:
  struct Sums {
    float of[kBands * 16];
  };
  Lanes<Sums> sums_;
};

#ifdef __CUDACC__
// The same by tensor cores.
template <class T, int kBands, bool kLeftByDepth, bool kRightByDepth>
class TensorTile {
 public:
  __device__ void Clear() {
    for (auto& band : sums_) {
      for (auto& square : band) nvcuda::wmma::fill_fragment(square, 0.0f);
    }
  }
  __device__ void Add(const T* left, int left_step, const T* right, int right_step) {
    using nvcuda::wmma::fragment;
    fragment<nvcuda::wmma::matrix_b, 16, 16, 16, Element, Order<kRightByDepth>> across[2];
    for (int j = 0; j < 2; ++j) {
      const T* const from = right + 16 * j * (kRightByDepth ? 1 : right_step);
      nvcuda::wmma::load_matrix_sync(across[j], Elements(from), static_cast<unsigned>(right_step));
    }
    for (int band = 0; band < kBands; ++band) {
      fragment<nvcuda::wmma::matrix_a, 16, 16, 16, Element, Order<!kLeftByDepth>> down;
      const T* const from = left + 16 * band * (kLeftByDepth ? 1 : left_step);
      nvcuda::wmma::load_matrix_sync(down, Elements(from), static_cast<unsigned>(left_step));
      for (int j = 0; j < 2; ++j) nvcuda::wmma::mma_sync(sums_[band][j], down, across[j], sums_[band][j]);
    }
  }
  __device__ void Store(int band, float* to) {
    for (int b = 0; b < kBands; ++b) {
      for (int j = 0; j < 2 && b == band; ++j) {
        nvcuda::wmma::store_matrix_sync(to + j * 16, sums_[b][j], 32, nvcuda::wmma::mem_row_major);
      }
    }
  }

 private:
  using Element = warp_sums_internal::TensorCoreType<T>;
  template <bool kByRows>
  using Order = std::conditional_t<kByRows, nvcuda::wmma::row_major, nvcuda::wmma::col_major>;
  __device__ static const Element* Elements(const T* at) { return reinterpret_cast<const Element*>(at); }

  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> sums_[kBands][2];
};
#endif

#ifdef __CUDA_ARCH__
template <class T, int kBands, bool kLeftByDepth, bool kRightByDepth>
using WarpTile =
    std::conditional_t<warp_sums_internal::kHasTensorCores<T>, TensorTile<T, kBands, kLeftByDepth, kRightByDepth>,
                       LaneTile<T, kBands, kLeftByDepth, kRightByDepth>>;
#else
template <class T, int kBands, bool kLeftByDepth, bool kRightByDepth>
using WarpTile = LaneTile<T, kBands, kLeftByDepth, kRightByDepth>;
#endif

}  // namespace copied_product_internal

/// A block's tile of kRows x kColumns sums of products in float. The elements of a piece are neighbours along the
/// depth, or, if kLeftByDepth or kRightByDepth, along the rows or columns of one depth.
template <class T, int kTileRows, bool kLeftByDepth, bool kRightByDepth>
class CopiedProduct {
  static_assert(sizeof(T) == 2 && (kTileRows == 64 || kTileRows == 128));

 public:
  static constexpr int kRows = kTileRows;
  static constexpr int kColumns = 64;
  static constexpr int kDepth = 32;  // of a step
  static constexpr int kThreads = 256;
  static constexpr int kPiece = 8;  // elements
  static constexpr int64_t kSharedBytes = 2 * (kRows + kColumns) * (kDepth + 8) * static_cast<int64_t>(sizeof(T));

  /// Must be constructed before the block takes other shared memory, because tensor cores need alignment to 32 bytes.
  /// Requires: the block has kThreads threads.
  POLYOP_DEVICE explicit CopiedProduct(Block& block)
      : block_(block),
        sums_(block),
        copies_(block),
        shared_(reinterpret_cast<T*>(block.Shared<char>(static_cast<int>(kSharedBytes)))) {
    block_.ForWarps([&](int warp) { sums_[warp].Clear(); });
  }

  /// Adds the products of some steps, those that next(-1), then next(of the last one) return, until it is negative.
  /// left(step, row, depth) and right(step, column, depth) return pieces; `depth` is within the step. They are called
  /// for a later step while products are computed, and must not wait.
  template <class Next, class Left, class Right>
  POLYOP_DEVICE void Add(const Next& next, const Left& left, const Right& right) {
    int step = next(-1);
    if (step < 0) return;
    block_.ForThreads([&](int t) {
      Start(t, step, false, left, right);
      copies_[t].Wait();
    });
    bool half = false;
    while (step >= 0) {
      step = next(step);
      block_.ForThreadsAndWarps(
          [&](int t) {
            if (step >= 0) Start(t, step, !half, left, right);
            return 0;
          },
          [&](int warp) { Multiply(warp, half); }, [&](int t, int) { copies_[t].Wait(); });
      half = !half;
    }
  }

  /// Calls store(row, column, sum) for every sum; neighbouring threads have neighbouring columns.
  template <class F>
  POLYOP_DEVICE void Store(const F& store) {
    float* const staged = reinterpret_cast<float*>(shared_);  // [kWarps][16][32]
    for (int band = 0; band < kBands; ++band) {
      block_.ForWarps([&](int warp) { sums_[warp].Store(band, staged + warp * 16 * 32); });
      block_.ForThreads([&](int t) {
        const int warp = t / 32, lane = t % 32;
        for (int i = 0; i < 16; ++i) {
          store(Row(warp) + band * 16 + i, Column(warp) + lane, staged[(warp * 16 + i) * 32 + lane]);
        }
      });
    }
  }

 private:
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kBands = kRows / 64;  // of a warp
  // So that neighbouring rows of a stage start in different banks.
  static constexpr int kLeftStep = (kLeftByDepth ? kRows : kDepth) + 8;
  static constexpr int kRightStep = (kRightByDepth ? kColumns : kDepth) + 8;
  static constexpr int kLeftSize = kRows * (kDepth + 8);
  static constexpr int kRightSize = kColumns * (kDepth + 8);
  static_assert(kLeftStep * (kLeftByDepth ? kDepth : kRows) <= kLeftSize);
  static_assert(kRightStep * (kRightByDepth ? kDepth : kColumns) <= kRightSize);
  static_assert(kWarps * 16 * 32 * static_cast<int64_t>(sizeof(float)) <= kSharedBytes);

  POLYOP_DEVICE T* LeftOf(bool half) const { return shared_ + (half ? kLeftSize + kRightSize : 0); }
  POLYOP_DEVICE T* RightOf(bool half) const { return LeftOf(half) + kLeftSize; }
  POLYOP_HD static int Row(int warp) { return warp / 2 * kBands * 16; }
  POLYOP_HD static int Column(int warp) { return warp % 2 * 32; }

  // Starts a thread's copies of a factor with kAlong rows or columns.
  template <int kAlong, bool kByDepth, class F>
  POLYOP_DEVICE void StartFactor(int t, int step, T* to, const F& piece) {
    constexpr int kEach = (kByDepth ? kAlong : kDepth) / kPiece;  // pieces of a row of the stage
    constexpr int kStep = (kByDepth ? kAlong : kDepth) + 8;
    for (int n = 0; n < kAlong * kDepth / kPiece / kThreads; ++n) {
      const int i = t + n * kThreads, outer = i / kEach, inner = i % kEach * kPiece;
      const Piece<T> from = kByDepth ? piece(step, inner, outer) : piece(step, outer, inner);
      copies_[t].Start(to + outer * kStep + inner, from.at, from.exists);
    }
  }
  template <class Left, class Right>
  POLYOP_DEVICE void Start(int t, int step, bool half, const Left& left, const Right& right) {
    StartFactor<kRows, kLeftByDepth>(t, step, LeftOf(half), left);
    StartFactor<kColumns, kRightByDepth>(t, step, RightOf(half), right);
  }
  POLYOP_DEVICE void Multiply(int warp, bool half) {
    for (int k = 0; k < kDepth; k += 16) {
      const T* const left = LeftOf(half) + (kLeftByDepth ? k * kLeftStep + Row(warp) : Row(warp) * kLeftStep + k);
      const T* const right =
          RightOf(half) + (kRightByDepth ? k * kRightStep + Column(warp) : Column(warp) * kRightStep + k);
      sums_[warp].Add(left, kLeftStep, right, kRightStep);
    }
  }

  Block& block_;
  Block::WarpLocal<copied_product_internal::WarpTile<T, kBands, kLeftByDepth, kRightByDepth>> sums_;
  Block::Local<CopiesAhead> copies_;
  T* const shared_;
};

}  // namespace polyop
