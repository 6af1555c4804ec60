// SPDX-License-Identifier: Apache-2.0
// Finds the points within balls, those with the lowest indices first. Compiled once per instruction set; include it
// from a kernel file.

// Outside of the guard because Highway redefines its macros for each target.
#include "kernels/cpu/simd.h"
#include "ops/points/nearest_of_queries-inl.h"

#if defined(POLYOP_OPS_POINTS_BALL_SEARCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_POINTS_BALL_SEARCH_INL_H_
#undef POLYOP_OPS_POINTS_BALL_SEARCH_INL_H_
#else
#define POLYOP_OPS_POINTS_BALL_SEARCH_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/points/ball_rule.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Finds the points of one ball at a time. A segment's first rows are scanned linearly, which fills a dense ball; the
/// remaining rows are searched in the tree.
class BallSearch {
 public:
  static constexpr int64_t kFirstRows = 512;  // rows that are scanned without the tree

  /// Returns the size of `found` for a search for `max_points` points.
  static int64_t Capacity(int64_t max_points) { return 2 * max_points + kLeafSize; }

  /// `forest` is not used if no segment has more than kFirstRows rows.
  BallSearch(const BallRule& rule, const PointForest* forest, const float* xyz, int64_t max_points, int32_t* found)
      : rule_(rule),
        far_(rule.max >= kOverflow),
        limit_(LimitOf(far_ ? rule.max * kFarSquaredScale : rule.max)),
        forest_(forest),
        xyz_(xyz),
        max_points_(max_points),
        found_(found) {}

  /// Writes the lowest rows of [begin, end) within the ball around `centre` to `found`, in order, and returns their
  /// number, at most `max_points`. `segment` is the tree of these rows.
  int64_t Run(const float* centre, int64_t begin, int64_t end, const TreeSegment* segment) {
    centre_ = centre;
    count_ = 0;
    last_row_ = std::numeric_limits<int32_t>::max();
    if (!std::isfinite(centre[0]) || !std::isfinite(centre[1]) || !std::isfinite(centre[2])) return 0;
    first_row_ = static_cast<int32_t>(std::min(end, begin + kFirstRows));
    ScanRows(begin, first_row_);
    if (count_ >= max_points_ || first_row_ == end) return std::min(count_, max_points_);
    if (segment->NumLeaves() == 0) return count_;
    in_order_ = count_;
    segment_ = segment;
    const int top = segment->TopLevel();
    Visit(top, 0, segment->ChildrenAt(top));
    DropHighRows();
    std::sort(found_ + in_order_, found_ + count_);
    return count_;
  }

 private:
  static float LimitOf(double squared) {
    return squared < kOverflow ? static_cast<float>(squared * (1 + kSlack)) + kUnderflow : INFINITY;
  }

  bool IsInside(float x, float y, float z) const {
    const double dx = static_cast<double>(x) - static_cast<double>(centre_[0]);
    const double dy = static_cast<double>(y) - static_cast<double>(centre_[1]);
    const double dz = static_cast<double>(z) - static_cast<double>(centre_[2]);
    return rule_.Holds((Square(dx) + Square(dy)) + Square(dz));
  }

  // Returns true for points that may be inside, by their squared distances in fp32.
  template <class D>
  HWY_INLINE hn::Mask<D> MayBeInside(D d, hn::Vec<D> x, hn::Vec<D> y, hn::Vec<D> z) const {
    return far_ ? MayBeWithin<true>(d, x, y, z) : MayBeWithin<false>(d, x, y, z);
  }
  template <bool kFar, class D>
  HWY_INLINE hn::Mask<D> MayBeWithin(D d, hn::Vec<D> x, hn::Vec<D> y, hn::Vec<D> z) const {
    const auto dx = Difference<kFar>(d, x, hn::Set(d, centre_[0]));
    const auto dy = Difference<kFar>(d, y, hn::Set(d, centre_[1]));
    const auto dz = Difference<kFar>(d, z, hn::Set(d, centre_[2]));
    return hn::Le(hn::MulAdd(dz, dz, hn::MulAdd(dy, dy, hn::Mul(dx, dx))), hn::Set(d, limit_));
  }

  void ScanRows(int64_t row, int64_t end) {
    const hn::CappedTag<float, 16> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; row + lanes <= end && count_ < max_points_; row += lanes) {
      hn::Vec<decltype(d)> x, y, z;
      hn::LoadInterleaved3(d, xyz_ + 3 * row, x, y, z);
      for (uint64_t bits = BitsOf(d, MayBeInside(d, x, y, z)); bits != 0 && count_ < max_points_; bits &= bits - 1) {
        AddRow(row + std::countr_zero(bits));
      }
    }
    for (; row < end && count_ < max_points_; ++row) AddRow(row);
  }

  void AddRow(int64_t row) {
    const float* p = xyz_ + 3 * row;
    found_[count_] = static_cast<int32_t>(row);
    count_ += IsInside(p[0], p[1], p[2]);
  }

  void Visit(int level, int32_t number, int32_t children) {
    const TreeBoxes& block = forest_->blocks()[segment_->block_begin[level] + number];
    for (uint32_t bits = Reached(block) & ((2u << (children - 1)) - 1); bits != 0; bits &= bits - 1) {
      const int lane = std::countr_zero(bits);
      if (block.min_index[lane] > last_row_) continue;
      const int32_t child = number * kBlockSize + lane;
      if (level == 0) {
        ScanLeaf(forest_->leaves()[segment_->leaf_begin + child]);
      } else {
        Visit(level - 1, child, std::min(kBlockSize, segment_->ChildrenAt(level - 1) - child * kBlockSize));
      }
    }
  }

  // Returns one bit per child that the ball may touch.
  uint32_t Reached(const TreeBoxes& block) const {
    const hn::CappedTag<float, kBlockSize> d;
    uint32_t reached = 0;
    for (size_t lane = 0; lane < kBlockSize; lane += hn::Lanes(d)) {
      const auto distances =
          far_ ? SquaredDistances<true>(d, block, lane, centre_) : SquaredDistances<false>(d, block, lane, centre_);
      reached |= BitsOf(d, hn::Le(distances, hn::Set(d, limit_))) << lane;
    }
    return reached;
  }

  void ScanLeaf(const TreeLeaf& leaf) {
    const hn::CappedTag<float, 16> d;
    for (size_t i = 0; i < kLeafSize; i += hn::Lanes(d)) {
      const auto inside = MayBeInside(d, hn::Load(d, leaf.column.x + i), hn::Load(d, leaf.column.y + i),
                                      hn::Load(d, leaf.column.z + i));  // false for the leaf's NaN padding
      for (uint64_t bits = BitsOf(d, inside); bits != 0; bits &= bits - 1) {
        const size_t at = i + static_cast<size_t>(std::countr_zero(bits));
        const int32_t row = leaf.column.index[at];
        if (row < first_row_ || row > last_row_) continue;
        found_[count_] = row;
        count_ += IsInside(leaf.column.x[at], leaf.column.y[at], leaf.column.z[at]);
      }
    }
    if (count_ >= 2 * max_points_) DropHighRows();
  }

  // Drops all but the `max_points` lowest rows.
  void DropHighRows() {
    if (count_ <= max_points_) return;
    std::nth_element(found_ + in_order_, found_ + max_points_ - 1, found_ + count_);
    count_ = max_points_;
    last_row_ = found_[max_points_ - 1];
  }

  const BallRule rule_;
  const bool far_;     // the ball's squared radius overflows fp32, so that coordinates are multiplied by kFarScale
  const float limit_;  // upper bound of the squared distance, in fp32, of points inside
  const PointForest* const forest_;
  const float* const xyz_;
  const int64_t max_points_;
  int32_t* const found_;
  const float* centre_ = nullptr;
  const TreeSegment* segment_ = nullptr;
  int64_t count_ = 0;
  int64_t in_order_ = 0;   // rows from the linear scan, which are lower than all others
  int32_t first_row_ = 0;  // rows below are scanned already
  int32_t last_row_ = 0;   // rows above are not needed any more
};

/// Calls emit(query, segment, rows, count) for every query with the lowest rows within its ball, at most `max_points`,
/// in order.
template <class Emit>
Status ForBalls(const Context& context, const QueriesOfPoints& call, const BallRule& rule, int64_t max_points,
                const Emit& emit) {
  POLYOP_RETURN_IF_ERROR(CheckRowsOfClouds(call.num_segments, call.NumPoints()));
  int64_t longest = 0;
  for (int64_t s = 0, begin = 0; s < call.num_segments; begin = call.ends[s++]) {
    longest = std::max(longest, call.ends[s] - begin);
  }
  const bool uses_trees = longest > BallSearch::kFirstRows;
  const PointForest forest(context, call.ends, uses_trees ? call.num_segments : 0);
  POLYOP_RETURN_IF_ERROR(forest.Build(call.xyz));
  const int64_t capped = std::min(max_points, longest), queries = call.NumQueries();
  const int64_t grain = GrainFor(400.0 + 5.0 * static_cast<double>(capped)), capacity = BallSearch::Capacity(capped);
  const Scratch<int32_t> found = context.Allocate<int32_t>(Context::NumTasks(queries, grain) * capacity);
  if (!found) return Internal("out of memory: ", capped, " points of a ball");
  context.ParallelFor(queries, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    int32_t* const rows = found.data() + task * capacity;
    BallSearch search(rule, &forest, call.xyz, capped, rows);
    int64_t s = call.SegmentOf(begin);
    for (int64_t q = begin; q < end; ++q) {
      while (q >= call.query_ends[s]) ++s;
      const int64_t first = s == 0 ? 0 : call.ends[s - 1];
      const TreeSegment* const segment = uses_trees ? &forest.segment(s) : nullptr;
      emit(q, s, rows, capped == 0 ? 0 : search.Run(call.queries + 3 * q, first, call.ends[s], segment));
    }
  });
  return Status::Ok();
}

/// Writes indices as MMCV does, relative to the segment's first row: if there are fewer than `samples`, the first one
/// is repeated. If there is none, all are 0 except the first, which is `none`.
inline Status RepeatingFirst(const Context& context, const QueriesOfPoints& call, const BallRule& rule, int64_t samples,
                             int32_t none, int32_t* idx) {
  return ForBalls(context, call, rule, samples, [&](int64_t q, int64_t s, const int32_t* rows, int64_t found) {
    const int32_t first = static_cast<int32_t>(s == 0 ? 0 : call.ends[s - 1]);
    int32_t* const to = idx + q * samples;
    for (int64_t k = 0; k < found; ++k) to[k] = rows[k] - first;
    std::fill(to + found, to + samples, found > 0 ? to[0] : 0);
    if (found == 0) to[0] = none;
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif  // per-target part
