// SPDX-License-Identifier: Apache-2.0
// The entries of a bird's eye view's gradient: the ranks of intervals, with the cells that they are summed into.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/context.h"
#include "ops/bev/bev_intervals.h"

namespace polyop {

/// Part of an interval: `count` ranks from `first` on, all of one cell. They are entries [entry, entry + count).
struct IntervalPart {
  int64_t first, count, cell, entry;
};

/// The intervals that cells own, in groups whose number of entries is limited, because overlapping intervals may have
/// many more entries than there are ranks.
class IntervalGroups {
 public:
  /// Requires: `owner` has for each cell its interval, or a negative number.
  template <class I>
  IntervalGroups(const Context& context, const BevIntervals<I>& intervals, const int32_t* owner, int64_t cells)
      : max_entries_(CountEntries(intervals, owner, cells)),
        parts_(context.Allocate<IntervalPart>(std::min(max_entries_, kMaxParts))) {}
  explicit operator bool() const { return static_cast<bool>(parts_); }

  /// Returns the maximum number of entries of a group.
  int64_t max_entries() const { return max_entries_; }

  /// Calls body(parts, entries) for each group.
  template <class I, class Body>
  void ForEach(const BevIntervals<I>& intervals, const int32_t* owner, int64_t cells, const Body& body) const {
    int64_t parts = 0, entries = 0;
    const auto finish = [&] {
      if (parts > 0) body(std::span<const IntervalPart>(parts_.data(), static_cast<size_t>(parts)), entries);
      parts = entries = 0;
    };
    for (int64_t cell = 0; cell < cells; ++cell) {
      if (owner[cell] < 0) continue;
      int64_t first = intervals.starts[owner[cell]], left = intervals.lengths[owner[cell]];
      while (left > 0) {
        if (entries == max_entries_ || parts == parts_.size()) finish();
        const int64_t count = std::min(left, max_entries_ - entries);
        parts_[parts++] = {first, count, cell, entries};
        first += count;
        left -= count;
        entries += count;
      }
    }
    finish();
  }

 private:
  static constexpr int64_t kMaxEntries = int64_t{1} << 21, kMaxParts = int64_t{1} << 16;

  template <class I>
  static int64_t CountEntries(const BevIntervals<I>& intervals, const int32_t* owner, int64_t cells) {
    int64_t entries = 0;
    for (int64_t cell = 0; cell < cells && entries < kMaxEntries; ++cell) {
      if (owner[cell] >= 0) entries += intervals.lengths[owner[cell]];
    }
    return std::min(entries, kMaxEntries);
  }

  int64_t max_entries_;
  Scratch<IntervalPart> parts_;
};

}  // namespace polyop
