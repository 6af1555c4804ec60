// SPDX-License-Identifier: Apache-2.0
// Softmax of many lines on the GPU.
#pragma once

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/warp_lanes.h"

namespace polyop {
namespace softmax_internal {

// The larger number; NaN if one is.
POLYOP_HD inline float MaxOf(float a, float b) { return a != a || a > b ? a : b; }

// Returns exp(x - max) * scale, or its logarithm x - max - scale.
template <bool kLog>
POLYOP_HD float Normalized(float x, float max, float scale) {
  return kLog ? x - max - scale : std::exp(x - max) * scale;
}
template <bool kLog>
POLYOP_HD float ScaleOf(float sum) {
  return kLog ? std::log(sum) : 1 / sum;
}

// One warp per line, whose elements stay in registers: at most kHeld for each lane. Small blocks, of which eight share
// a multiprocessor, leave less of a GPU idle at the end: 7,200 lines of 900 are 52 MB, 0.012 ms of an H200.
template <bool kLog, int kHeld, class Load, class Store>
Status InRegisters(const CudaContext& cuda, int64_t lines, int64_t length, const Load& load, const Store& store) {
  struct Held {
    float of[kHeld];
  };
  constexpr int kThreads = 128, kWarps = kThreads / kWarpLanes;
  const int count = static_cast<int>(length);
  return ForBlocks<kThreads, 8>(cuda, BlocksFor(lines, kWarps), kThreads, 0, [=] POLYOP_DEVICE(Block& block) {
    block.ForWarps([&](int warp) {
      const int64_t line = block.index * kWarps + warp;
      if (line >= lines) return;
      Lanes<Held> held;
      Lanes<float> max, sum;
      ForLanes([&](int lane) {
        float best = -INFINITY;
        for (int j = 0; j < kHeld; ++j) {
          const int i = j * kWarpLanes + lane;
          held[lane].of[j] = i < count ? load(line, i) : -INFINITY;
        }
        for (int j = 0; j < kHeld; ++j) best = MaxOf(best, held[lane].of[j]);
        max[lane] = best;
      });
      max.Sum<1, kWarpLanes>([](float a, float b) { return MaxOf(a, b); });
      ForLanes([&](int lane) {
        float total = 0;
        for (int j = 0; j < kHeld; ++j) {
          const int i = j * kWarpLanes + lane;
          if (i >= count) continue;
          if constexpr (kLog) {
            total += std::exp(held[lane].of[j] - max[lane]);
          } else {
            total += held[lane].of[j] = std::exp(held[lane].of[j] - max[lane]);
          }
        }
        sum[lane] = total;
      });
      sum.Sum<1, kWarpLanes>([](float a, float b) { return a + b; });
      ForLanes([&](int lane) {
        const float scale = ScaleOf<kLog>(sum[lane]);
        for (int j = 0; j < kHeld; ++j) {
          const int i = j * kWarpLanes + lane;
          if (i >= count) continue;
          store(line, i, kLog ? held[lane].of[j] - max[lane] - scale : held[lane].of[j] * scale);
        }
      });
    });
  });
}

// One block per kAcross lines, each in kThreadsPerBlock / kAcross parts; neighbouring threads have neighbouring lines.
template <bool kLog, int kAcross, class Load, class Store>
Status InParts(const CudaContext& cuda, int64_t lines, int64_t length, const Load& load, const Store& store) {
  constexpr int kParts = kThreadsPerBlock / kAcross;
  constexpr int64_t kShared = (kThreadsPerBlock + kAcross) * static_cast<int64_t>(sizeof(float)) + 16;
  return ForBlocks(cuda, BlocksFor(lines, kAcross), kThreadsPerBlock, kShared, [=] POLYOP_DEVICE(Block& block) {
    float* const partial = block.Shared<float>(kThreadsPerBlock);  // [kParts][kAcross]
    float* const maxima = block.Shared<float>(kAcross);
    const auto line_of = [&](int t) { return block.index * kAcross + t % kAcross; };
    const auto reduce = [&](const auto& add) {
      for (int half = kParts / 2; half > 0; half /= 2) {
        block.ForThreads([&](int t) {
          if (t < half * kAcross) partial[t] = add(partial[t], partial[t + half * kAcross]);
        });
      }
    };
    block.ForThreads([&](int t) {
      float best = -INFINITY;
      if (line_of(t) < lines) {
        for (int64_t i = t / kAcross; i < length; i += kParts) best = MaxOf(best, load(line_of(t), i));
      }
      partial[t] = best;
    });
    reduce([](float a, float b) { return MaxOf(a, b); });
    block.ForThreads([&](int t) {
      if (t < kAcross) maxima[t] = partial[t];
    });
    block.ForThreads([&](int t) {
      float sum = 0;
      if (line_of(t) < lines) {
        for (int64_t i = t / kAcross; i < length; i += kParts) {
          sum += std::exp(load(line_of(t), i) - maxima[t % kAcross]);
        }
      }
      partial[t] = sum;
    });
    reduce([](float a, float b) { return a + b; });
    block.ForThreads([&](int t) {
      if (line_of(t) >= lines) return;
      const float scale = ScaleOf<kLog>(partial[t % kAcross]);
      for (int64_t i = t / kAcross; i < length; i += kParts) {
        store(line_of(t), i, Normalized<kLog>(load(line_of(t), i), maxima[t % kAcross], scale));
      }
    });
  });
}

}  // namespace softmax_internal

/// Calls store(line, i, y) with the softmax of load(line, 0), …, load(line, length - 1), or with its logarithm. All of
/// a line is NaN if it contains NaN or positive infinity, or nothing but negative infinity. `contiguous`: neighbouring
/// elements of a line are neighbours in memory; otherwise neighbouring lines are. An element may be stored where it was
/// loaded from.
template <bool kLog, class Load, class Store>
Status SoftmaxOfLines(const CudaContext& cuda, bool contiguous, int64_t lines, int64_t length, const Load& load,
                      const Store& store) {
  using namespace softmax_internal;
  if (!contiguous) return InParts<kLog, kWarpLanes>(cuda, lines, length, load, store);
  if (length <= 8 * kWarpLanes) return InRegisters<kLog, 8>(cuda, lines, length, load, store);
  if (length <= 32 * kWarpLanes) return InRegisters<kLog, 32>(cuda, lines, length, load, store);
  return InParts<kLog, 1>(cuda, lines, length, load, store);
}

}  // namespace polyop
