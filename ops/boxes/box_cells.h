// SPDX-License-Identifier: Apache-2.0
// A spatial hash of boxes: square cells of several sizes, so that the boxes that may intersect a given one are found
// without visiting all.
//
// A box lies in one cell, that of its low corner, of the smallest size at which it reaches no further than into the
// next cell along each axis. Thus the boxes that intersect a given one are in the cells that it covers and in their
// predecessors, for every size in use. Cell coordinates are a monotonic function of box coordinates, clamped at a
// large distance, and everything after that is integer arithmetic: rounding never loses a box. Infinities, huge
// coordinates and hash collisions cost time, but never lose a box either.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace polyop {

/// The range of smallest-size cells that a box covers, from its low to its high corner, both included.
struct CellSpan {
  int64_t x1 = 0, y1 = 0, x2 = -1, y2 = -1;

  /// Returns false for a box that intersects nothing: it is reversed or contains NaN.
  bool meets() const { return x1 <= x2 && y1 <= y2; }
};

/// Slots [begin, end).
struct CellRow {
  int32_t begin, end;
};

/// The hash table. Each cell has consecutive slots; the caller keeps track of which box is in which slot. Boxes of
/// different layers never intersect.
class BoxCells {
 public:
  /// Consecutive sizes differ by a factor of 2^kStep; kSizes of them cover every CellSpan.
  static constexpr int kStep = 2, kSizes = 32 / kStep + 1;

  BoxCells() = default;
  static int64_t BytesFor(int64_t capacity) { return Cells(capacity) * static_cast<int64_t>(sizeof(CellRow)); }
  /// `memory` has BytesFor(capacity) bytes, aligned to 8. It is not accessed before Clear.
  BoxCells(void* memory, int64_t capacity) : cells_(static_cast<CellRow*>(memory)), capacity_(capacity) {}

  /// Removes all boxes and slots and chooses the smallest cell size so that most of `extents`, a sample of box extents,
  /// fit a cell; reorders `extents`. `offset` is added to the width and height of every box. Requires: no more than
  /// `count` boxes, which is below 2^31, are counted afterwards.
  void Clear(std::span<float> extents, float offset, int64_t count) {
    mask_ = Cells(std::min(count, capacity_)) - 1;
    std::fill_n(cells_, mask_ + 1, CellRow{});
    sizes_ = 0;
    offset_ = offset;
    // A higher quantile than the median: with smaller cells, a large box would cover too many of them.
    constexpr double kQuantile = 0.75;
    const auto last = std::partition(extents.begin(), extents.end(), [](float extent) {
      return extent > 0 && extent < std::numeric_limits<float>::infinity();
    });
    const auto found = static_cast<double>(last - extents.begin());
    double extent = 1;
    if (found > 0) {
      const auto quantile = extents.begin() + static_cast<std::ptrdiff_t>(kQuantile * (found - 1));
      std::nth_element(extents.begin(), quantile, last);
      extent = static_cast<double>(*quantile);
    }
    inverse_ = 1 / extent;
  }

  CellSpan SpanOf(float x1, float y1, float x2, float y2) const {
    const double right = static_cast<double>(x2) + offset_, bottom = static_cast<double>(y2) + offset_;
    if (!(x1 <= right) || !(y1 <= bottom)) return {};
    return {Number(x1), Number(y1), Number(right), Number(bottom)};
  }

  /// Counts a box. Count every box, then call Arrange, then Add.
  void Count(const CellSpan& span, int64_t layer) {
    if (span.meets()) ++cells_[IndexOf(span, layer)].end;
  }
  /// Assigns slots to the cells. Returns the number of ordered pairs of boxes that share a cell, including (i, i).
  double Arrange() {
    int32_t begin = 0;
    double pairs = 0;
    for (int64_t i = 0; i <= mask_; ++i) {
      const int32_t count = cells_[i].end;
      cells_[i] = {begin, begin};
      begin += count;
      pairs += static_cast<double>(count) * static_cast<double>(count);
    }
    return pairs;
  }
  /// Adds a box that was counted and returns its slot, or -1 if it intersects nothing.
  int64_t Add(const CellSpan& span, int64_t layer) {
    if (!span.meets()) return -1;
    sizes_ |= uint32_t{1} << SizeOf(span);
    return cells_[IndexOf(span, layer)].end++;
  }

  /// Writes the slot ranges of all cells that may hold boxes that intersect a box of this span, and returns their
  /// number; -1 if that would visit more than `max_cells` cells. The ranges also contain boxes that do not intersect
  /// it. After hash collisions a range appears more than once.
  int64_t Rows(const CellSpan& span, int64_t layer, int64_t max_cells, CellRow* rows) const {
    if (NumVisited(span, max_cells + 1) > max_cells) return -1;
    int64_t found = 0;
    for (uint32_t sizes = sizes_; sizes != 0; sizes &= sizes - 1) {
      const int size = std::countr_zero(sizes), shift = size * kStep;
      const int64_t x_begin = std::max<int64_t>(0, (span.x1 >> shift) - 1), x_end = span.x2 >> shift;
      for (int64_t y = std::max<int64_t>(0, (span.y1 >> shift) - 1); y <= span.y2 >> shift; ++y) {
        int64_t row = 0;
        for (int64_t x = x_begin; x <= x_end; ++x) {
          if (x == x_begin || x % kRow == 0) row = RowOf(x, y, size, layer);
          const CellRow& cell = cells_[row + (x & (kRow - 1))];
          if (cell.begin < cell.end) rows[found++] = cell;
        }
      }
    }
    return found;
  }

 private:
  // The number of cells is a power of two. kRow neighbours along x are adjacent in memory.
  static constexpr int64_t kRow = 4;
  static int64_t Cells(int64_t count) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(count, kRow))));
  }

  int64_t Number(double coordinate) const {
    constexpr double kFarthest = 0x1p30;  // in smallest cells; more than a float's precision
    return static_cast<int64_t>(std::clamp(coordinate * inverse_, -kFarthest, kFarthest) + kFarthest);
  }
  static int SizeOf(const CellSpan& span) {
    const auto across = static_cast<uint64_t>(std::max({span.x2 - span.x1, span.y2 - span.y1, int64_t{1}}));
    return (std::bit_width(across - 1) + kStep - 1) / kStep;  // across <= 2^(kStep * size)
  }
  int64_t RowOf(int64_t x, int64_t y, int size, int64_t layer) const {
    uint64_t hash = static_cast<uint64_t>(x / kRow) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ static_cast<uint64_t>(y)) * 0xBF58476D1CE4E5B9u;
    hash = (hash ^ hash >> 29 ^ static_cast<uint64_t>(layer * kSizes + size)) * 0x94D049BB133111EBu;
    return static_cast<int64_t>(hash >> 32) * kRow & mask_;
  }
  int64_t IndexOf(const CellSpan& span, int64_t layer) const {
    const int size = SizeOf(span);
    const int64_t x = span.x1 >> (size * kStep), y = span.y1 >> (size * kStep);
    return RowOf(x, y, size, layer) + (x & (kRow - 1));
  }
  int64_t NumVisited(const CellSpan& span, int64_t limit) const {
    int64_t total = 0;
    for (uint32_t sizes = sizes_; sizes != 0 && total < limit; sizes &= sizes - 1) {
      const int shift = std::countr_zero(sizes) * kStep;
      const int64_t columns = (span.x2 >> shift) - (span.x1 >> shift) + 2;
      const int64_t rows = (span.y2 >> shift) - (span.y1 >> shift) + 2;
      total += std::min(limit, columns) * std::min(limit, rows);  // each factor is at most 2^31
    }
    return total;
  }

  CellRow* cells_ = nullptr;
  int64_t capacity_ = 0, mask_ = 0;
  uint32_t sizes_ = 0;  // bit s is set if a cell of size s holds a box
  double inverse_ = 1, offset_ = 0;
};

}  // namespace polyop
