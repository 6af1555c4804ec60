// Where boxes lie, so that those which may meet a box are found without looking at all: square cells of several sizes,
// found by a hash.
//
// A box lies in one cell, that of its low corner, of the smallest size at which it reaches no further than into the
// next cell along each axis. So the boxes that meet a given one are in the cells that it covers and in those before
// them, of every size in use. Cells are numbers of a rising function of coordinates, clamped at a great distance, and
// all that follows is arithmetic of integers: no rounding loses a box. What infinity, huge numbers and equal hashes
// cost is time, never a box.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace polyop {

/// The cells of the smallest size that a box covers, from those of its low to those of its high corner.
struct CellSpan {
  int64_t x1 = 0, y1 = 0, x2 = -1, y2 = -1;

  /// False for a box that meets none: a reversed one, or one with NaN in it.
  bool meets() const { return x1 <= x2 && y1 <= y2; }
};

/// Places [begin, end).
struct CellRow {
  int32_t begin, end;
};

/// The memory, the sizes and the numbers of the cells. Each has its places in one row: which box lies at a place is the
/// caller's to know. Boxes of different layers never meet.
class BoxCells {
 public:
  /// Sizes grow by this power of two, and so many are enough for all that CellSpan says.
  static constexpr int kStep = 2, kSizes = 32 / kStep + 1;

  BoxCells() = default;
  static int64_t BytesFor(int64_t capacity) { return Cells(capacity) * static_cast<int64_t>(sizeof(CellRow)); }
  /// `memory`: BytesFor(capacity), aligned to 8 bytes; it is not touched before Clear.
  BoxCells(void* memory, int64_t capacity) : cells_(static_cast<CellRow*>(memory)), capacity_(capacity) {}

  /// Without a box or a place for any. `extents`: those of some boxes, in any order, which are put in order; cells fit
  /// most of them. `offset` is added to the width and height of every box. At most `count` boxes come, of 2^31.
  void Clear(std::span<float> extents, float offset, int64_t count) {
    mask_ = Cells(std::min(count, capacity_)) - 1;
    std::fill_n(cells_, mask_ + 1, CellRow{});
    sizes_ = 0;
    offset_ = offset;
    // Smaller boxes share the cells of most: smaller cells would be many for a large box.
    constexpr double kMost = 0.75;
    const auto last = std::partition(extents.begin(), extents.end(), [](float extent) {
      return extent > 0 && extent < std::numeric_limits<float>::infinity();
    });
    const auto found = static_cast<double>(last - extents.begin());
    double extent = 1;
    if (found > 0) {
      const auto most = extents.begin() + static_cast<std::ptrdiff_t>(kMost * (found - 1));
      std::nth_element(extents.begin(), most, last);
      extent = static_cast<double>(*most);
    }
    inverse_ = 1 / extent;
  }

  CellSpan SpanOf(float x1, float y1, float x2, float y2) const {
    const double right = static_cast<double>(x2) + offset_, bottom = static_cast<double>(y2) + offset_;
    if (!(x1 <= right) || !(y1 <= bottom)) return {};
    return {Number(x1), Number(y1), Number(right), Number(bottom)};
  }

  /// First every box is counted, then Arrange gives each cell its places, then boxes may be added.
  void Count(const CellSpan& span, int64_t layer) {
    if (span.meets()) ++cells_[IndexOf(span, layer)].end;
  }
  /// Returns how many pairs of boxes share a cell, each with itself too.
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
  /// The place of a box that was counted; -1 for one that meets none.
  int64_t Add(const CellSpan& span, int64_t layer) {
    if (!span.meets()) return -1;
    sizes_ |= uint32_t{1} << SizeOf(span);
    return cells_[IndexOf(span, layer)].end++;
  }

  /// Writes the rows of places in the cells where boxes that meet one of this span lie, and returns how many; -1 if
  /// there are more than `most` cells to look into. Some boxes that do not meet it are there too; with equal hashes a
  /// row comes more than once.
  int64_t Rows(const CellSpan& span, int64_t layer, int64_t most, CellRow* rows) const {
    if (NumVisited(span, most + 1) > most) return -1;
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
  // The number of cells is a power of two. Neighbours along x lie side by side, so many in a row.
  static constexpr int64_t kRow = 4;
  static int64_t Cells(int64_t count) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(count, kRow))));
  }

  int64_t Number(double coordinate) const {
    constexpr double kFarthest = 0x1p30;  // of the smallest cells: a float has no more digits than that
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
      total += std::min(limit, columns) * std::min(limit, rows);  // of up to 2^31 each
    }
    return total;
  }

  CellRow* cells_ = nullptr;
  int64_t capacity_ = 0, mask_ = 0;
  uint32_t sizes_ = 0;  // a bit for each that has a box
  double inverse_ = 1, offset_ = 0;
};

}  // namespace polyop
