// Greedy suppression of upright and of rotated boxes. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_FAMILIES_BOXES_SUPPRESSION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_FAMILIES_BOXES_SUPPRESSION_INL_H_
#undef POLYOP_FAMILIES_BOXES_SUPPRESSION_INL_H_
#else
#define POLYOP_FAMILIES_BOXES_SUPPRESSION_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "core/context.h"
#include "families/boxes/box_cells.h"
#include "families/boxes/boxes-inl.h"
#include "families/boxes/boxes_overlap.h"
#include "families/boxes/rotated_boxes.h"
#include "hwy/cache_control.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// The cells where boxes of `arrays` lie.
inline CellSpan SpanOf(const BoxCells& cells, const BoxArrays& arrays, int64_t i) {
  return cells.SpanOf(arrays.x1[i], arrays.y1[i], arrays.x2[i], arrays.y2[i]);
}

/// Fits `cells`, which it clears, to boxes [begin, end) of `arrays`; `count` boxes will come.
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

/// Rows lie anywhere in memory: they are fetched together, not one after the other.
inline void Prefetch(const BoxArrays& boxes, std::span<const CellRow> rows) {
  for (const CellRow& row : rows) {
    for (const float* array : {boxes.x1, boxes.y1, boxes.x2, boxes.y2, boxes.area}) hwy::Prefetch(array + row.begin);
  }
}

/// The kept boxes once more, by their cells.
struct KeptCells {
  /// Fewer boxes than kFewest have no memory for cells, and cells are not used before kFirst boxes were kept: to look
  /// at all costs less. So it does where there are more cells to look into than one for kBoxesPerCell kept boxes.
  static constexpr int64_t kFewest = 2048, kFirst = 1024, kBoxesPerCell = 16, kMostRows = 512;

  BoxCells cells;
  BoxArrays boxes;  // by place
  int32_t* number;  // of the kept box at a place

  static bool Has(int64_t capacity) { return capacity >= kFewest && capacity < std::numeric_limits<int32_t>::max(); }
  /// A multiple of 8.
  static int64_t BytesFor(int64_t capacity) {
    if (!Has(capacity)) return 0;
    return BoxCells::BytesFor(capacity) + (4 * (BoxArrays::FloatsFor(capacity) + capacity) + 7) / 8 * 8;
  }
  /// `memory`: BytesFor(capacity), aligned to 8 bytes.
  static std::optional<KeptCells> In(void* memory, int64_t capacity) {
    if (!Has(capacity)) return {};
    auto* const floats = reinterpret_cast<float*>(static_cast<char*>(memory) + BoxCells::BytesFor(capacity));
    auto* const number = reinterpret_cast<int32_t*>(floats + BoxArrays::FloatsFor(capacity));
    return KeptCells{BoxCells(memory, capacity), BoxArrays::In(floats, capacity), number};
  }
  void Add(const BoxArrays& kept, int64_t k, int64_t layer) {
    const int64_t place = cells.Add(SpanOf(cells, kept, k), layer);
    if (place < 0) return;
    boxes.Copy(place, kept, k);
    number[place] = static_cast<int32_t>(k);
  }
};

/// Those of the kept boxes that a candidate is tested against: a range of their numbers, or rows of places in cells.
struct KeptAmong {
  BoxRange range;
  const KeptCells* cells = nullptr;  // rows are of its places
  std::span<const CellRow> rows;

  KeptAmong(int64_t begin, int64_t end) : range{begin, end} {}
  KeptAmong(const KeptCells& of, std::span<const CellRow> places) : cells(&of), rows(places) {}

  /// Whether they come by rising number.
  bool in_order() const { return cells == nullptr; }
};

/// Boxes in their order, by falling score, and those that stay.
struct SortedBoxes {
  int64_t* kept_index;  // into sorted
  BoxArrays sorted, kept;
  float offset;
  std::optional<KeptCells> cells;

  static int64_t BytesFor(int64_t capacity) {
    return 8 * capacity + KeptCells::BytesFor(capacity) + 2 * 4 * BoxArrays::FloatsFor(capacity);
  }
  /// `memory`: BytesFor(capacity), aligned to 8 bytes.
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
  /// AnySuspect of the kept boxes, by their numbers.
  template <bool kBounds, class Exact>
  bool AnySuspectAmong(int64_t candidate, const KeptAmong& among, float threshold, const Exact& exact) const {
    if (among.cells == nullptr) {
      return AnySuspect<kBounds>(sorted, candidate, kept, std::span(&among.range, 1), offset, threshold, exact);
    }
    Prefetch(among.cells->boxes, among.rows);
    return AnySuspect<kBounds>(sorted, candidate, among.cells->boxes, among.rows, offset, threshold,
                               [&](int64_t place) { return exact(among.cells->number[place]); });
  }
  /// Boxes of different layers never overlap.
  int64_t LayerOf(int64_t) const { return 0; }
  int64_t LayerOfKept(int64_t) const { return 0; }
};

/// Cells with the boxes kept so far, and places for the candidates [next, count).
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

/// Whether a candidate overlaps any of the first `kept` boxes; all of them lie in `cells`, if there are any.
template <class Boxes>
bool OverlapsKept(const Boxes& boxes, int64_t candidate, int64_t kept, const std::optional<KeptCells>& cells) {
  if (!cells) return boxes.Overlaps(candidate, {0, kept});
  const CellSpan span = SpanOf(cells->cells, boxes.sorted, candidate);
  if (!span.meets()) return false;
  CellRow rows[KeptCells::kMostRows];
  const int64_t most = std::min(KeptCells::kMostRows, kept / KeptCells::kBoxesPerCell);
  const int64_t found = cells->cells.Rows(span, boxes.LayerOf(candidate), most, rows);
  if (found < 0) return boxes.Overlaps(candidate, {0, kept});  // a giant
  return boxes.Overlaps(candidate, {*cells, std::span(rows, static_cast<size_t>(found))});
}

/// Greedy suppression of `count` boxes that come by falling score: a box stays unless it overlaps one that stayed
/// before. Boxes: SortedBoxes with `bool Overlaps(candidate, among) const`, whether a candidate overlaps any of those,
/// which is false of boxes whose arrays do not touch, `void Keep(candidate, number) const` and `kNanosecondsPerPair`.
/// Stops at `most` boxes; returns how many stay. With a context, blocks of candidates are tested in parallel against
/// what was kept before them. A call may go on from candidate `first`, of those before which `kept` were kept.
template <class Boxes>
int64_t SuppressGreedily(const Boxes& boxes, int64_t count, int64_t most, const Context* context = nullptr,
                         int64_t first = 0, int64_t kept = 0) {
  constexpr int64_t kBlock = 256;
  constexpr double kNanosecondsInCells = 150;
  std::optional<KeptCells> cells;
  for (int64_t block = first; block < count && kept < most; block += kBlock) {
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
    for (int64_t i = 0; i < size && kept < most; ++i) {
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

  /// `memory`: BytesFor(capacity), aligned to 8 bytes.
  static UprightBoxes In(void* memory, int64_t capacity, float threshold, float offset) {
    return {SortedBoxes::In(memory, capacity, offset), threshold};
  }
  void Set(int64_t i, const float* box) const { sorted.Set(i, box, offset); }
  bool Overlaps(int64_t candidate, const KeptAmong& among) const {
    return AnySuspectAmong<false>(candidate, among, threshold, [&](int64_t k) {
      return sorted.Overlap(candidate, kept, k, offset).More(threshold);
    });
  }
};

/// Rotated boxes (cx, cy, width, height, angle). The arrays hold the upright boxes around them.
struct RotatedBoxes : SortedBoxes {
  static constexpr int64_t kComponents = 5;
  static constexpr double kNanosecondsPerPair = 1;
  RotatedBox* sorted_exact;
  RotatedBox* kept_exact;
  RotatedOverlapRule rule;

  static int64_t BytesFor(int64_t capacity) {
    return 2 * static_cast<int64_t>(sizeof(RotatedBox)) * capacity + SortedBoxes::BytesFor(capacity);
  }
  /// `memory`: BytesFor(capacity), aligned to 8 bytes.
  static RotatedBoxes In(void* memory, int64_t capacity, const RotatedOverlapRule& rule) {
    auto* const exact = static_cast<RotatedBox*>(memory);
    return {SortedBoxes::In(exact + 2 * capacity, capacity, 0), exact, exact + capacity, rule};
  }
  void Set(int64_t i, const float* box) const { Set(i, RotatedBox::Of(box)); }
  void Set(int64_t i, const RotatedBox& box) const {
    sorted_exact[i] = box;
    SetBounds(sorted, i, box);
  }
  bool Overlaps(int64_t candidate, const KeptAmong& among) const {
    return AnySuspectAmong<true>(candidate, among, rule.threshold,
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
