// SPDX-License-Identifier: Apache-2.0
// Greedy suppression of upright and of rotated boxes. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_BOXES_SUPPRESSION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_BOXES_SUPPRESSION_INL_H_
#undef POLYOP_OPS_BOXES_SUPPRESSION_INL_H_
#else
#define POLYOP_OPS_BOXES_SUPPRESSION_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "core/context.h"
#include "hwy/cache_control.h"
#include "kernels/cpu/simd.h"
#include "ops/boxes/box_cells.h"
#include "ops/boxes/boxes-inl.h"
#include "ops/boxes/boxes_overlap.h"
#include "ops/boxes/rotated_boxes.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Returns the cells that box i of `arrays` covers.
inline CellSpan SpanOf(const BoxCells& cells, const BoxArrays& arrays, int64_t i) {
  return cells.SpanOf(arrays.x1[i], arrays.y1[i], arrays.x2[i], arrays.y2[i]);
}

/// Clears `cells` for `count` boxes, with a cell size that fits boxes [begin, end) of `arrays`.
inline void ClearFor(BoxCells* cells, const BoxArrays& arrays, int64_t begin, int64_t end, float offset,
                     int64_t count) {
  constexpr int64_t kSample = 256;
  float extents[kSample];
  const int64_t size = std::min(kSample, end - begin);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t k = begin + (end - begin) * i / size;
    extents[i] = std::max(arrays.x2[k] - arrays.x1[k], arrays.y2[k] - arrays.y1[k]) + offset;
  }
  cells->Clear({extents, static_cast<size_t>(size)}, offset, count);
}

/// Prefetches all rows at once, since they are scattered in memory.
inline void Prefetch(const BoxArrays& boxes, std::span<const CellRow> rows) {
  for (const CellRow& row : rows) {
    for (const float* array : {boxes.x1, boxes.y1, boxes.x2, boxes.y2, boxes.area}) hwy::Prefetch(array + row.begin);
  }
}

/// A copy of the kept boxes, grouped by cell.
struct KeptCells {
  /// A linear scan is cheaper for few boxes: cells need a capacity of kMinCapacity and are not used before kFirst boxes
  /// are kept, nor for a candidate that would visit more than one cell per kBoxesPerCell kept boxes.
  static constexpr int64_t kMinCapacity = 2048, kFirst = 1024, kBoxesPerCell = 16, kMaxRows = 512;

  BoxCells cells;
  BoxArrays boxes;  // by slot
  int32_t* number;  // by slot: the kept box's number

  static bool Has(int64_t capacity) {
    return capacity >= kMinCapacity && capacity < std::numeric_limits<int32_t>::max();
  }
  /// Returns a multiple of 8.
  static int64_t BytesFor(int64_t capacity) {
    if (!Has(capacity)) return 0;
    return BoxCells::BytesFor(capacity) + (4 * (BoxArrays::FloatsFor(capacity) + capacity) + 7) / 8 * 8;
  }
  /// `memory` has BytesFor(capacity) bytes, aligned to 8.
  static std::optional<KeptCells> In(void* memory, int64_t capacity) {
    if (!Has(capacity)) return {};
    auto* const floats = reinterpret_cast<float*>(static_cast<char*>(memory) + BoxCells::BytesFor(capacity));
    auto* const number = reinterpret_cast<int32_t*>(floats + BoxArrays::FloatsFor(capacity));
    return KeptCells{BoxCells(memory, capacity), BoxArrays::In(floats, capacity), number};
  }
  void Add(const BoxArrays& kept, int64_t k, int64_t layer) {
    const int64_t slot = cells.Add(SpanOf(cells, kept, k), layer);
    if (slot < 0) return;
    boxes.Copy(slot, kept, k);
    number[slot] = static_cast<int32_t>(k);
  }
};

/// The kept boxes that a candidate is tested against: a range of their numbers, or slot ranges of cells.
struct KeptSubset {
  BoxRange range;
  const KeptCells* cells = nullptr;  // the cells that `rows` refers to
  std::span<const CellRow> rows;

  KeptSubset(int64_t begin, int64_t end) : range{begin, end} {}
  KeptSubset(const KeptCells& of, std::span<const CellRow> slots) : cells(&of), rows(slots) {}

  /// Returns whether the boxes are visited in ascending order of their numbers.
  bool in_order() const { return cells == nullptr; }
};

/// Boxes in order of descending score, and the kept ones of them.
struct SortedBoxes {
  int64_t* kept_index;  // indices into `sorted`
  BoxArrays sorted, kept;
  float offset;
  std::optional<KeptCells> cells;

  static int64_t BytesFor(int64_t capacity) {
    return 8 * capacity + KeptCells::BytesFor(capacity) + 2 * 4 * BoxArrays::FloatsFor(capacity);
  }
  /// `memory` has BytesFor(capacity) bytes, aligned to 8.
  static SortedBoxes In(void* memory, int64_t capacity, float offset) {
    auto* const index = static_cast<int64_t*>(memory);
    char* const cells = reinterpret_cast<char*>(index + capacity);
    auto* const floats = reinterpret_cast<float*>(cells + KeptCells::BytesFor(capacity));
    return {index, BoxArrays::In(floats, capacity), BoxArrays::In(floats + BoxArrays::FloatsFor(capacity), capacity),
            offset, KeptCells::In(cells, capacity)};
  }
  void Keep(int64_t candidate, int64_t number) const {
    kept.Copy(number, sorted, candidate);
    kept_index[number] = candidate;
  }
  /// Calls AnySuspect with the numbers of kept boxes.
  template <bool kBounds, class Exact>
  bool AnySuspectIn(int64_t candidate, const KeptSubset& subset, float threshold, const Exact& exact) const {
    if (subset.cells == nullptr) {
      return AnySuspect<kBounds>(sorted, candidate, kept, std::span(&subset.range, 1), offset, threshold, exact);
    }
    Prefetch(subset.cells->boxes, subset.rows);
    return AnySuspect<kBounds>(sorted, candidate, subset.cells->boxes, subset.rows, offset, threshold,
                               [&](int64_t slot) { return exact(subset.cells->number[slot]); });
  }
  /// Boxes of different layers never overlap.
  int64_t LayerOf(int64_t) const { return 0; }
  int64_t LayerOfKept(int64_t) const { return 0; }
};

/// Returns cells with the boxes kept so far and slots for the candidates [next, count).
template <class Boxes>
KeptCells PutIntoCells(const Boxes& boxes, int64_t next, int64_t count, int64_t kept) {
  KeptCells in = *boxes.cells;
  ClearFor(&in.cells, boxes.sorted, next, count, boxes.offset, kept + count - next);
  for (int64_t k = 0; k < kept; ++k) in.cells.Count(SpanOf(in.cells, boxes.kept, k), boxes.LayerOfKept(k));
  for (int64_t i = next; i < count; ++i) in.cells.Count(SpanOf(in.cells, boxes.sorted, i), boxes.LayerOf(i));
  in.cells.Arrange();
  for (int64_t k = 0; k < kept; ++k) in.Add(boxes.kept, k, boxes.LayerOfKept(k));
  return in;
}

/// Returns whether a candidate overlaps any of the first `kept` boxes. `cells`, if there are any, hold all of them.
template <class Boxes>
bool OverlapsKept(const Boxes& boxes, int64_t candidate, int64_t kept, const std::optional<KeptCells>& cells) {
  if (!cells) return boxes.Overlaps(candidate, {0, kept});
  const CellSpan span = SpanOf(cells->cells, boxes.sorted, candidate);
  if (!span.meets()) return false;
  CellRow rows[KeptCells::kMaxRows];
  const int64_t max_cells = std::min(KeptCells::kMaxRows, kept / KeptCells::kBoxesPerCell);
  const int64_t found = cells->cells.Rows(span, boxes.LayerOf(candidate), max_cells, rows);
  if (found < 0) return boxes.Overlaps(candidate, {0, kept});  // a huge box
  return boxes.Overlaps(candidate, {*cells, std::span(rows, static_cast<size_t>(found))});
}

/// Suppresses greedily among `count` boxes in order of descending score: a box is kept unless it overlaps a box kept
/// before. Stops at `max_kept` boxes; returns the number of kept boxes. Boxes is a SortedBoxes with
/// - `bool Overlaps(candidate, subset) const`: whether a candidate overlaps any box of the subset; always false for
///   boxes whose bounds do not touch,
/// - `void Keep(candidate, number) const`,
/// - `kNanosecondsPerPair`.
/// With a context, blocks of candidates are tested in parallel against the boxes kept before the block. A call may
/// continue an earlier one from candidate `first`, with `kept` boxes kept so far.
template <class Boxes>
int64_t SuppressGreedily(const Boxes& boxes, int64_t count, int64_t max_kept, const Context* context = nullptr,
                         int64_t first = 0, int64_t kept = 0) {
  constexpr int64_t kBlock = 256;
  constexpr double kNanosecondsInCells = 150;
  std::optional<KeptCells> cells;
  for (int64_t block = first; block < count && kept < max_kept; block += kBlock) {
    if (!cells && boxes.cells && kept >= KeptCells::kFirst && count - block >= KeptCells::kFirst / 2) {
      cells = PutIntoCells(boxes, block, count, kept);
    }
    const int64_t size = std::min(kBlock, count - block), before = context != nullptr || cells ? kept : 0;
    bool suppressed[kBlock] = {};
    const auto test = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) suppressed[i] = OverlapsKept(boxes, block + i, before, cells);
    };
    if (before > 0 && context != nullptr) {
      const double each = Boxes::kNanosecondsPerPair * static_cast<double>(before);
      context->ParallelFor(size, GrainFor(cells ? std::min(each, kNanosecondsInCells) : each), test);
    } else if (before > 0) {
      test(0, size);
    }
    for (int64_t i = 0; i < size && kept < max_kept; ++i) {
      if (!suppressed[i] && !boxes.Overlaps(block + i, {before, kept})) boxes.Keep(block + i, kept++);
    }
    for (int64_t k = before; cells && k < kept; ++k) cells->Add(boxes.kept, k, boxes.LayerOfKept(k));
  }
  return kept;
}

/// Upright boxes (x1, y1, x2, y2).
struct UprightBoxes : SortedBoxes {
  static constexpr int64_t kComponents = 4;
  static constexpr double kNanosecondsPerPair = 0.3;
  float threshold;

  /// `memory` has BytesFor(capacity) bytes, aligned to 8.
  static UprightBoxes In(void* memory, int64_t capacity, float threshold, float offset) {
    return {SortedBoxes::In(memory, capacity, offset), threshold};
  }
  void Set(int64_t i, const float* box) const { sorted.Set(i, box, offset); }
  bool Overlaps(int64_t candidate, const KeptSubset& subset) const {
    return AnySuspectIn<false>(candidate, subset, threshold,
                               [&](int64_t k) { return sorted.Overlap(candidate, kept, k, offset).More(threshold); });
  }
};

/// Rotated boxes (cx, cy, width, height, angle). The arrays hold their upright bounds.
struct RotatedBoxes : SortedBoxes {
  static constexpr int64_t kComponents = 5;
  static constexpr double kNanosecondsPerPair = 1;
  RotatedBox* sorted_exact;
  RotatedBox* kept_exact;
  RotatedOverlapRule rule;

  static int64_t BytesFor(int64_t capacity) {
    return 2 * static_cast<int64_t>(sizeof(RotatedBox)) * capacity + SortedBoxes::BytesFor(capacity);
  }
  /// `memory` has BytesFor(capacity) bytes, aligned to 8.
  static RotatedBoxes In(void* memory, int64_t capacity, const RotatedOverlapRule& rule) {
    auto* const exact = static_cast<RotatedBox*>(memory);
    return {SortedBoxes::In(exact + 2 * capacity, capacity, 0), exact, exact + capacity, rule};
  }
  void Set(int64_t i, const float* box) const { Set(i, RotatedBox::Of(box)); }
  void Set(int64_t i, const RotatedBox& box) const {
    sorted_exact[i] = box;
    SetBounds(sorted, i, box);
  }
  bool Overlaps(int64_t candidate, const KeptSubset& subset) const {
    return AnySuspectIn<true>(candidate, subset, rule.threshold,
                              [&](int64_t k) { return rule.Overlaps(kept_exact[k], sorted_exact[candidate]); });
  }
  void Keep(int64_t candidate, int64_t number) const {
    SortedBoxes::Keep(candidate, number);
    kept_exact[number] = sorted_exact[candidate];
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
