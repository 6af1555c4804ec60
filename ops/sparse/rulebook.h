// SPDX-License-Identifier: Apache-2.0
// The rulebook of a sparse convolution: which input row contributes to which output at which offset of the filter.
// Built by sorting and merging, without a table of all cells.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/context.h"
#include "kernels/cpu/radix_sort.h"
#include "ops/sparse/sparse_rule.h"
#include "ops/sparse/sparse_values.h"

namespace polyop {

/// Cell is uint32_t if it can index all cells of the grid, else uint64_t.
template <class Cell>
class Rulebook {
 public:
  Rulebook(const Context& context, const SparseGrid& grid, int64_t count)
      : context_(context), grid_(grid), count_(count), sorted_(context, count) {}

  /// Finds inputs and outputs. Requires: the `count` rows of indices are checked.
  template <class I>
  Status Build(const I* indices) {
    cells_.emplace(context_.Allocate<Cell>(count_ + 1));
    rows_.emplace(context_.Allocate<int32_t>(count_));
    if (!sorted_ || !*cells_ || !*rows_) return OutOfMemory(count_);
    POLYOP_RETURN_IF_ERROR(sorted_.SortIndices(count_, [&](int64_t n) {
      const I* const row = indices + 4 * n;
      const int64_t at[3] = {row[1], row[2], row[3]};
      return static_cast<uint64_t>(grid_.CellOf(row[0], at));
    }));
    // Of several rows of one cell, the first one is used.
    for (int64_t n = 0; n < count_; ++n) {
      if (n > 0 && sorted_.keys()[n] == sorted_.keys()[n - 1]) continue;
      (*cells_)[inputs_] = static_cast<Cell>(sorted_.keys()[n]);
      (*rows_)[inputs_++] = sorted_.values()[n];
    }
    (*cells_)[inputs_] = std::numeric_limits<Cell>::max();  // sentinel that ends the search
    return grid_.subm ? Status::Ok() : FindOutputs();
  }

  int64_t outputs() const { return grid_.subm ? count_ : num_outputs_; }

  /// Writes the cells of the outputs. Not for submanifold convolutions, whose outputs are the inputs.
  template <class I>
  void WriteOutputs(I* out_indices) const {
    context_.ParallelFor(num_outputs_, GrainFor(10.0), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        int64_t at[3];
        out_indices[4 * o] = static_cast<I>(Split((*out_cells_)[o], at));
        for (int a = 0; a < 3; ++a) out_indices[4 * o + 1 + a] = static_cast<I>(at[a]);
      }
    });
  }

  /// Writes pairs[offsets][outputs()]: the input row of each output, or -1.
  void WritePairs(int32_t* pairs) const {
    context_.ParallelFor(grid_.offsets() * outputs(), GrainFor(0.2),
                         [&](int64_t begin, int64_t end) { std::fill(pairs + begin, pairs + end, -1); });
    context_.ParallelFor(outputs(), kRun, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; o += kRun) WritePairsOf(o, std::min(end, o + kRun), pairs);
    });
  }

 private:
  static constexpr int64_t kRun = 512;  // number of outputs whose coordinates a task keeps

  static Status OutOfMemory(int64_t rows) { return Internal("out of memory: ", rows, " cells"); }

  // Splits a cell's index into coordinates and returns the batch index.
  int64_t Split(Cell cell, int64_t at[3]) const {
    for (int a = 2; a >= 0; --a) {
      const auto extent = static_cast<Cell>(grid_.extent(a));
      at[a] = static_cast<int64_t>(cell % extent);
      cell /= extent;
    }
    return static_cast<int64_t>(cell);
  }

  // Finds the output cells one axis at a time: the sorted cells, moved by each offset of the filter, stay sorted and
  // are merged.
  Status FindOutputs() {
    std::optional<Scratch<Cell>> current;
    current.emplace(context_.Allocate<Cell>(inputs_));
    if (!*current) return OutOfMemory(inputs_);
    std::copy_n(cells_->data(), inputs_, current->data());
    int64_t count = inputs_;
    for (int axis = 2; axis >= 0; --axis) {
      const int64_t offsets = grid_.kernel[axis];
      Scratch<Cell> moved = context_.Allocate<Cell>(count), merged = context_.Allocate<Cell>(count * offsets),
                    next = context_.Allocate<Cell>(count * offsets);
      if (!moved || !merged || !next) return OutOfMemory(count * offsets);
      int64_t found = 0;
      Cell *have = merged.data(), *free = next.data();
      for (int64_t r = 0; r < offsets; ++r) {
        const int64_t fed = Move(current->span().first(static_cast<size_t>(count)), axis, r, moved.data());
        found = std::set_union(have, have + found, moved.data(), moved.data() + fed, free) - free;
        std::swap(have, free);
      }
      current.emplace(std::move(have == merged.data() ? merged : next));
      count = found;
    }
    if (count > INT32_MAX) return InvalidArgument("expected at most 2147483647 outputs, got ", count);
    num_outputs_ = count;
    out_cells_.emplace(std::move(*current));
    return Status::Ok();
  }

  // Moves input cells to output cells at offset `r` of one axis; returns the number of valid ones.
  int64_t Move(std::span<const Cell> cells, int axis, int64_t r, Cell* to) const {
    Cell step = 1;
    for (int a = 2; a > axis; --a) step *= static_cast<Cell>(grid_.extent(a));
    const auto extent = static_cast<Cell>(grid_.extent(axis));
    int64_t count = 0;
    for (const Cell cell : cells) {
      const auto i = static_cast<int64_t>(cell / step % extent);
      int64_t o;
      if (grid_.OutputOf(axis, i, r, &o)) to[count++] = cell + static_cast<Cell>(o - i) * step;
    }
    return count;
  }

  // For ascending outputs, the input cells at one offset of the filter ascend, too, so both are traversed once. Offsets
  // that are adjacent along x are searched together.
  void WritePairsOf(int64_t begin, int64_t end, int32_t* pairs) const {
    const int64_t total = outputs(), size = end - begin, width = grid_.dilation[2] == 1 ? grid_.kernel[2] : 1;
    int64_t image[kRun], at[kRun][3], row[kRun];
    for (int64_t o = 0; o < size; ++o) {
      const Cell cell = grid_.subm ? static_cast<Cell>(sorted_.keys()[begin + o]) : (*out_cells_)[begin + o];
      row[o] = grid_.subm ? sorted_.values()[begin + o] : begin + o;
      image[o] = Split(cell, at[o]);
    }
    for (int64_t f = 0; f < grid_.offsets(); f += width) {
      int64_t r[3];
      grid_.Split(f, r);
      int32_t* const to = pairs + (f - r[2]) * total;  // of offset 0 along x
      const Cell* next = nullptr;
      for (int64_t o = 0; o < size; ++o) {
        int64_t from[3] = {}, last;
        if (!grid_.InputOf(0, at[o][0], r[0], &from[0]) || !grid_.InputOf(1, at[o][1], r[1], &from[1])) continue;
        const auto line = static_cast<Cell>(grid_.CellOf(image[o], from));
        if (!grid_.InputsOf(2, at[o][2], r[2], width, &from[2], &last)) continue;
        const Cell low = line + static_cast<Cell>(from[2]), high = line + static_cast<Cell>(last);
        if (next == nullptr) next = std::lower_bound(cells_->data(), cells_->data() + inputs_, low);
        while (*next < low) ++next;
        for (const Cell* cell = next; *cell <= high; ++cell) {
          const int64_t k = grid_.KernelOffsetOf(2, static_cast<int64_t>(*cell - line), at[o][2]);
          if (k >= 0) to[k * total + row[o]] = (*rows_)[cell - cells_->data()];
        }
      }
    }
    if (!grid_.subm) return;
    int32_t* const centre = pairs + grid_.offsets() / 2 * total;
    for (int64_t o = 0; o < size; ++o) centre[row[o]] = static_cast<int32_t>(row[o]);
  }

  const Context& context_;
  const SparseGrid grid_;
  const int64_t count_;
  int64_t inputs_ = 0, num_outputs_ = 0;
  RadixSort sorted_;                      // cells and rows of all indices
  std::optional<Scratch<Cell>> cells_;    // sorted and unique, followed by the sentinel
  std::optional<Scratch<int32_t>> rows_;  // parallel to `cells_`
  std::optional<Scratch<Cell>> out_cells_;
};

/// Checks the indices and calls then(rulebook) with the narrowest type of cells.
template <class I, class Then>
Status WithRulebook(const Context& context, const SparseGrid& grid, const I* indices, int64_t count, const Then& then) {
  POLYOP_RETURN_IF_ERROR(CheckCells(grid, indices, count));
  const auto build = [&](auto cell) {
    Rulebook<decltype(cell)> rulebook(context, grid, count);
    POLYOP_RETURN_IF_ERROR(rulebook.Build(indices));
    return then(rulebook);
  };
  return grid.cells() < UINT32_MAX ? build(uint32_t{}) : build(uint64_t{});
}

}  // namespace polyop
