// SPDX-License-Identifier: Apache-2.0
// Rows of coordinates in ascending order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/cpu/radix_sort.h"

namespace polyop {

/// Sorts the rows of 3 or 4 coordinates that have no negative coordinate lexicographically. Equal rows form a run, in
/// their original order.
template <class I>
class SortedCoordinates {
 public:
  SortedCoordinates(const Context& context, const I* rows, int64_t count, int64_t columns)
      : context_(context),
        rows_(rows),
        count_(count),
        columns_(columns),
        sort_(context, count),
        starts_(context.Allocate<int32_t>(count + 1)) {}

  Status Sort() {
    const int64_t tasks = Context::NumTasks(count_, kGrain);
    const Scratch<TaskRows> task_rows = context_.Allocate<TaskRows>(tasks);
    if (!sort_ || !starts_ || !task_rows) return Internal("out of memory: coordinates of ", count_, " points");
    context_.ParallelFor(count_, kGrain,
                         [&](int64_t task, int64_t begin, int64_t end) { task_rows[task] = CountRows(begin, end); });
    std::array<uint64_t, 4> extents{};
    for (int64_t task = 0; task < tasks; ++task) {
      for (size_t c = 0; c < 4; ++c) extents[c] = std::max(extents[c], task_rows[task].max[c] + 1);
      task_rows[task].first = task == 0 ? 0 : task_rows[task - 1].first + task_rows[task - 1].rows;
      kept_ = task_rows[task].first + task_rows[task].rows;
    }
    context_.ParallelFor(count_, kGrain, [&](int64_t task, int64_t begin, int64_t end) {
      int32_t* to = sort_.values() + task_rows[task].first;
      for (int64_t i = begin; i < end; ++i) {
        if (IsInside(i)) *to++ = static_cast<int32_t>(i);
      }
    });
    // A key holds as many of the last columns as fit into 64 bits; the sorts by the columns before them are stable.
    int64_t keys = 0;
    for (int64_t last = columns_; last > 0; ++keys) {
      int64_t first = last;
      for (Wide product = 1; first > 0; --first) {
        product *= extents[static_cast<size_t>(first - 1)];
        if (product > Wide{1} << 64) break;
      }
      POLYOP_RETURN_IF_ERROR(SortBy(first, last, extents));
      last = first;
    }
    FindRuns(keys == 1);
    return Status::Ok();
  }

  /// The number of rows without a negative coordinate, and their indices in sorted order.
  int64_t kept() const { return kept_; }
  const int32_t* order() const { return sort_.values(); }
  /// Run r is the range [starts()[r], starts()[r + 1]) of order().
  int64_t runs() const { return runs_; }
  const int32_t* starts() const { return starts_.data(); }

 private:
  static constexpr int64_t kGrain = 1 << 13;  // rows per task
  using Wide = unsigned __int128;
  struct TaskRows {
    int64_t rows = 0, first = 0;
    std::array<uint64_t, 4> max{};
  };

  bool IsInside(int64_t i) const {
    const I* const row = rows_ + i * columns_;
    const I fourth = columns_ == 4 ? row[3] : I{0};
    return (row[0] | row[1] | row[2] | fourth) >= 0;
  }
  TaskRows CountRows(int64_t begin, int64_t end) const {
    TaskRows rows_of_task;
    for (int64_t i = begin; i < end; ++i) {
      if (!IsInside(i)) continue;
      ++rows_of_task.rows;
      for (int64_t c = 0; c < columns_; ++c) {
        uint64_t& max = rows_of_task.max[static_cast<size_t>(c)];
        max = std::max(max, static_cast<uint64_t>(rows_[i * columns_ + c]));
      }
    }
    return rows_of_task;
  }
  // Sorts by columns [first, last).
  Status SortBy(int64_t first, int64_t last, const std::array<uint64_t, 4>& extents) {
    context_.ParallelFor(kept_, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const I* const row = rows_ + sort_.values()[i] * columns_;
        uint64_t key = 0;
        for (int64_t c = first; c < last; ++c) {
          key = key * extents[static_cast<size_t>(c)] + static_cast<uint64_t>(row[c]);
        }
        sort_.keys()[i] = key;
      }
    });
    return sort_.Sort(kept_);
  }
  void FindRuns(bool keys_are_rows) {
    for (int64_t i = 0; i < kept_; ++i) {
      if (i == 0 || (keys_are_rows ? sort_.keys()[i] != sort_.keys()[i - 1] : Differ(i, i - 1))) {
        starts_[runs_++] = static_cast<int32_t>(i);
      }
    }
    starts_[runs_] = static_cast<int32_t>(kept_);
  }
  bool Differ(int64_t i, int64_t j) const {
    const I *const a = rows_ + order()[i] * columns_, *const b = rows_ + order()[j] * columns_;
    return !std::equal(a, a + columns_, b);
  }

  const Context& context_;
  const I* rows_;
  int64_t count_, columns_, kept_ = 0, runs_ = 0;
  RadixSort sort_;
  Scratch<int32_t> starts_;
};

}  // namespace polyop
