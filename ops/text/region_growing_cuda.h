// SPDX-License-Identifier: Apache-2.0
// Region growing on the GPU, with the same result as on the CPU.
#pragma once

#include "kernels/cuda/device_sort.h"
#include "kernels/cuda/prefix_sums.h"
#include "ops/text/image_grid.h"

namespace polyop {

/// Pixels sorted by label, then by index.
struct PixelsByLabel {
  const uint64_t* labels = nullptr;
  const int32_t* pixels = nullptr;
  int64_t count = 0;

  /// Requires: label_of(pixel) >= 0.
  template <class LabelOf>
  static Status Sort(const CudaContext& cuda, int64_t count, const LabelOf& label_of, PixelsByLabel* sorted) {
    SortPairs pairs = SortPairs::Allocate(cuda, count);
    uint64_t* const keys = pairs.keys;
    int32_t* const values = pairs.values;
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
      keys[i] = static_cast<uint64_t>(label_of(i));
      values[i] = static_cast<int32_t>(i);
    }));
    POLYOP_RETURN_IF_ERROR(pairs.Sort(cuda, 31));
    *sorted = {pairs.keys, pairs.values, count};
    return Status::Ok();
  }

  /// Returns the position of the first pixel whose label is at least `label`.
  POLYOP_HD int64_t BeginOf(int64_t label) const {
    int64_t low = 0, high = count;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (static_cast<int64_t>(labels[middle]) < label) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

/// Like RegionGrowing on the CPU. One block processes all pixels that were labelled in the same round: each claims its
/// unlabelled neighbours, and the claim of the pixel that is first in the queue wins.
class RegionGrowingCuda {
 public:
  /// is_in_front(pixel) returns whether its label may spread.
  template <class IsInFront>
  static Status Start(const CudaContext& cuda, const ImageGrid& grid, int32_t* labels, const IsInFront& is_in_front,
                      RegionGrowingCuda* result) {
    const int64_t pixels = grid.size();
    int32_t* const queue = cuda.Allocate<int32_t>(pixels);
    int64_t* const claims = cuda.Allocate<int64_t>(pixels);
    int64_t* const before = cuda.Allocate<int64_t>(pixels + 1);
    *result = RegionGrowingCuda(grid, labels, queue, claims, before + pixels);
    POLYOP_RETURN_IF_ERROR(
        TiledPrefixSums(cuda, pixels, [=] POLYOP_DEVICE(int64_t i) { return int64_t{is_in_front(i)}; }, before));
    return ForEach(cuda, pixels, [=] POLYOP_DEVICE(int64_t i) {
      claims[i] = 0;
      if (before[i + 1] != before[i]) queue[before[i]] = static_cast<int32_t>(i);
    });
  }
  RegionGrowingCuda() = default;

  template <class Enters>
  Status Spread(const CudaContext& cuda, const Enters& enters) const {
    const RegionGrowingCuda self = *this;
    return ForBlocks(cuda, 1, kThreadsPerBlock, 16 * kThreadsPerBlock,
                     [=] POLYOP_DEVICE(Block& block) { self.SpreadInBlock(block, enters); });
  }

 private:
  // The neighbours that a pixel of the queue has won.
  struct Won {
    int32_t pixel;
    uint32_t sides;  // one bit per neighbour
  };

  RegionGrowingCuda(const ImageGrid& grid, int32_t* labels, int32_t* queue, int64_t* claims, int64_t* count)
      : grid_(grid), labels_(labels), queue_(queue), claims_(claims), count_(count) {}

  // Returns a claim that is greater for earlier positions in the queue and sides; a neighbour keeps the greatest. A
  // claim is never repeated later: another pixel is then at that position, and its neighbour on that side differs.
  POLYOP_HD int64_t Claim(int64_t position, int side) const {
    return ImageGrid::kSides * (grid_.size() - position) - side;
  }

  template <class Enters>
  POLYOP_DEVICE void SpreadInBlock(Block& block, const Enters& enters) const {
    constexpr int kSides = ImageGrid::kSides;
    int64_t* from = block.Shared<int64_t>(kThreadsPerBlock);
    int64_t* to = block.Shared<int64_t>(kThreadsPerBlock);
    Block::Local<Won> mine(block);
    int64_t begin = 0, end = *count_, stay = 0;
    while (begin < end) {
      block.ForThreads([&](int t) {
        for (int64_t i = begin + t; i < end; i += kThreadsPerBlock) {
          const int64_t pixel = queue_[i];
          for (int side = 0; side < kSides; ++side) {
            const int64_t neighbour = grid_.Neighbour(pixel, side);
            if (neighbour < 0 || labels_[neighbour] > 0 || !enters(neighbour, labels_[pixel])) continue;
            AtomicMax(claims_ + neighbour, Claim(i, side));
          }
        }
      });
      int64_t next = end;
      for (int64_t chunk = begin; chunk < end; chunk += kThreadsPerBlock) {
        block.ForThreads([&](int t) {
          Won& won = mine[t];
          won = {-1, 0};
          if (chunk + t < end) {
            won.pixel = queue_[chunk + t];
            for (int side = 0; side < kSides; ++side) {
              const int64_t neighbour = grid_.Neighbour(won.pixel, side);
              if (neighbour < 0 || claims_[neighbour] != Claim(chunk + t, side)) continue;
              won.sides |= 1u << side;
              labels_[neighbour] = labels_[won.pixel];
            }
          }
          // Counts won neighbours in the lower and pixels that stay queued in the upper half.
          from[t] = won.pixel >= 0 && won.sides == 0 ? int64_t{1} << 32 : PopCount(won.sides);
        });
        for (int step = 1; step < kThreadsPerBlock; step *= 2) {
          block.ForThreads([&](int t) { to[t] = t >= step ? from[t - step] + from[t] : from[t]; });
          int64_t* const swap = from;
          from = to;
          to = swap;
        }
        const int64_t all = from[kThreadsPerBlock - 1];
        block.ForThreads([&](int t) {
          const Won& won = mine[t];
          const int64_t before = t == 0 ? 0 : from[t - 1];
          int64_t position = next + (before & INT32_MAX);
          for (int side = 0; side < kSides; ++side) {
            if (won.sides >> side & 1) queue_[position++] = static_cast<int32_t>(grid_.Neighbour(won.pixel, side));
          }
          if (won.pixel >= 0 && won.sides == 0) queue_[stay + (before >> 32)] = won.pixel;
        });
        next += all & INT32_MAX;
        stay += all >> 32;
      }
      begin = end;
      end = next;
    }
    block.ForThreads([&](int t) {
      if (t == 0) *count_ = stay;
    });
  }

  ImageGrid grid_{};
  int32_t* labels_ = nullptr;
  int32_t* queue_ = nullptr;
  int64_t* claims_ = nullptr;
  int64_t* count_ = nullptr;
};

}  // namespace polyop
