// SPDX-License-Identifier: Apache-2.0
// The points that the cells of a box take, on the GPU.
#pragma once

#include "ops/boxes3d/box3d_cuda.h"
#include "ops/boxes3d/roiaware_pool3d/box_cells.h"

namespace polyop {

/// Visits the points of a box by ascending index, in rounds, with a block of kThreadsPerBlock threads.
class TakenPoints {
 public:
  static constexpr int64_t kSharedBytes = PointsInside::kSharedBytes + 3 * (4 * PointsInside::kMax + 16);

  /// The points of a round, in lists by cell.
  struct Round {
    int32_t count;
    const int32_t* points;
    const int32_t* cells;   // that take the points, or -1 if they are full
    const int32_t* starts;  // the cell, if the point is the first that it takes in the round, else -1
    const int32_t* next;    // the position of the next point that the cell takes, or -1

    /// Calls visit(cell, k, channel) for thread t's part of all pairs of a list, which begins at position k, and a
    /// channel.
    template <class Visit>
    POLYOP_DEVICE void ForLists(int t, int64_t channels, const Divider& by_channels, const Visit& visit) const {
      for (int64_t i = t; i < count * channels; i += kThreadsPerBlock) {
        int64_t c;
        const auto k = static_cast<int32_t>(by_channels.Split(i, &c));
        if (starts[k] >= 0) visit(starts[k], k, c);
      }
    }
  };

  POLYOP_DEVICE explicit TakenPoints(Block& block)
      : block_(block),
        search_(block),
        start_(block.Shared<int32_t>(PointsInside::kMax)),
        cell_(block.Shared<int32_t>(PointsInside::kMax)),
        next_(block.Shared<int32_t>(PointsInside::kMax)) {}

  /// Calls visit(round) for each round. A cell takes `max_points`; cell_counts are the numbers that it has taken, which
  /// are 0 before the first round. All threads call it, outside of a ForThreads phase.
  template <class T, class Visit>
  POLYOP_DEVICE void ForEachRound(const BoxCells& cells, const T* points, int64_t count, int64_t max_points,
                                  int32_t* cell_counts, const Visit& visit) {
    search_.ForEachRound(cells.box, points, count, count, [&](const int32_t* inside, int32_t num_inside) {
      block_.ForThreads([&](int t) {
        for (int32_t k = t; k < num_inside; k += kThreadsPerBlock) {
          start_[k] = static_cast<int32_t>(cells.Of(points + 3 * int64_t{inside[k]}));
        }
      });
      block_.ForThreads([&](int t) {
        for (int32_t k = t; k < num_inside; k += kThreadsPerBlock) {
          int64_t rank = cell_counts[start_[k]];
          for (int32_t before = 0; before < k; ++before) rank += start_[before] == start_[k];
          cell_[k] = rank < max_points ? start_[k] : -1;
        }
      });
      block_.ForThreads([&](int t) {
        for (int32_t k = t; k < num_inside; k += kThreadsPerBlock) {
          int32_t earlier = 0, after = k + 1;
          for (int32_t before = 0; before < k; ++before) earlier += cell_[before] == cell_[k];
          while (after < num_inside && cell_[after] != cell_[k]) ++after;
          const bool taken = cell_[k] >= 0;
          start_[k] = taken && earlier == 0 ? cell_[k] : -1;
          next_[k] = taken && after < num_inside ? after : -1;
          if (taken && next_[k] < 0) cell_counts[cell_[k]] += earlier + 1;
        }
      });
      visit(Round{num_inside, inside, cell_, start_, next_});
      return true;
    });
  }

 private:
  Block& block_;
  PointsInside search_;
  int32_t *const start_, *const cell_, *const next_;  // start_ holds the points' cells at first
};

}  // namespace polyop
