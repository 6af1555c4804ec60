// SPDX-License-Identifier: Apache-2.0
// Sums that some blocks compute in parts, so that a product with few rows and columns but a great depth fills a GPU.
// The parts are added in a fixed order.
#pragma once

#include <algorithm>

#include "kernels/cuda/cuda.h"

namespace polyop {

/// Parts of `count` sums in scratch memory, [parts][count].
struct SplitSums {
  float* sums;
  int64_t count, parts;

  /// Chooses the number of parts for `tiles` blocks per part and a depth that can be divided into `max_parts`. The
  /// parts need at most 32 MiB, or the memory of one.
  static SplitSums Allocate(const CudaContext& cuda, int64_t count, int64_t tiles, int64_t max_parts) {
    constexpr int64_t kMaxParts = 32, kMaxSums = int64_t{1} << 23, kBlocks = 512;
    // The memory depends on the possible parts, so that it does not shrink when extents grow.
    const int64_t possible = std::clamp<int64_t>(max_parts, 1, kMaxParts);
    const int64_t all = std::max(count, std::min(kMaxSums, possible * count));
    const int64_t most = std::clamp<int64_t>(all / std::max<int64_t>(count, 1), 1, possible);
    const int64_t parts = std::clamp<int64_t>(BlocksFor(kBlocks, std::max<int64_t>(tiles, 1)), 1, most);
    return {cuda.Allocate<float>(all), count, parts};
  }

  /// Returns the first of `items` items of a part; the first of part `parts` is `items`.
  POLYOP_HD int64_t Begin(int64_t part, int64_t items) const { return items * part / parts; }
  POLYOP_HD float* Part(int64_t part) const { return sums + part * count; }
  /// Returns a sum of all parts.
  POLYOP_HD float Sum(int64_t i) const {
    float sum = 0;
    for (int64_t part = 0; part < parts; ++part) sum += Part(part)[i];
    return sum;
  }

  /// Adds the parts and rounds the sums.
  template <class T>
  Status Round(const CudaContext& cuda, T* to) const {
    const SplitSums split = *this;
    return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) { to[i] = FromFloat<T>(split.Sum(i)); });
  }
};

}  // namespace polyop
