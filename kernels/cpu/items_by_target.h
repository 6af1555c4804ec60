// SPDX-License-Identifier: Apache-2.0
// Groups items by the target that they contribute to, so that a thread owns a target and visits its items in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/context.h"

namespace polyop {

/// A stable counting sort. Requires: there are at most 2^31 - 1 items.
class ItemsByTarget {
 public:
  ItemsByTarget(const Context& context, int64_t max_items, int64_t targets)
      : context_(context),
        targets_(targets),
        chunks_(std::clamp<int64_t>(max_items / std::max(kMinChunk, targets), 1, kMaxChunks)),
        begins_(context.Allocate<int32_t>(targets + 1)),
        positions_(context.Allocate<int32_t>(chunks_ * targets)),
        items_(context.Allocate<int32_t>(max_items)) {}
  /// Returns false if memory was exhausted.
  explicit operator bool() const { return begins_ && positions_ && items_; }

  /// Groups items [0, count). `target(i)` returns the target of item i; a negative one belongs to no target.
  template <class Target>
  void Group(int64_t count, const Target& target) {
    const int64_t chunk = (count + chunks_ - 1) / chunks_;
    // Counts each chunk's items of each target, which gives the position of the first one. It advances with each item.
    const auto for_chunks = [&](const auto& body) {
      context_.ParallelFor(chunks_, 1, [&](int64_t first, int64_t last) {
        for (int64_t k = first; k < last; ++k) {
          int32_t* const positions = positions_.data() + k * targets_;
          body(positions, std::min(count, k * chunk), std::min(count, (k + 1) * chunk));
        }
      });
    };
    for_chunks([&](int32_t* positions, int64_t begin, int64_t end) {
      std::fill_n(positions, targets_, 0);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t t = target(i);
        if (t >= 0) ++positions[t];
      }
    });
    int32_t before = 0;
    for (int64_t t = 0; t < targets_; ++t) {
      begins_[t] = before;
      for (int64_t k = 0; k < chunks_; ++k) before += std::exchange(positions_[k * targets_ + t], before);
    }
    begins_[targets_] = before;
    for_chunks([&](int32_t* positions, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t t = target(i);
        if (t >= 0) items_[positions[t]++] = static_cast<int32_t>(i);
      }
    });
  }

  /// The items of a target are order()[begin(t)] to order()[end(t) - 1], in ascending order.
  const int32_t* order() const { return items_.data(); }
  int64_t begin(int64_t target) const { return begins_[target]; }
  int64_t end(int64_t target) const { return begins_[target + 1]; }
  /// Returns the number of items that have a target.
  int64_t count() const { return begins_[targets_]; }

 private:
  static constexpr int64_t kMinChunk = 1 << 13, kMaxChunks = 16;

  const Context& context_;
  int64_t targets_, chunks_;
  Scratch<int32_t> begins_, positions_, items_;
};

}  // namespace polyop
