// SPDX-License-Identifier: Apache-2.0
// Farthest point sampling: running distances, their maximum, and clouds in k-d tree order whose bounding boxes limit
// which distances a new point can lower. Compiled once per instruction set; include it from a kernel file.

// Outside of the guard because Highway redefines its macros for each target.
#include "kernels/cpu/simd.h"
#include "ops/points/point_forest-inl.h"

#if defined(POLYOP_OPS_POINTS_FARTHEST_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_POINTS_FARTHEST_INL_H_
#undef POLYOP_OPS_POINTS_FARTHEST_INL_H_
#else
#define POLYOP_OPS_POINTS_FARTHEST_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// The distance of padding without a point: less than that of any point.
inline constexpr float kNoPoint = -INFINITY;

struct Farthest {
  float distance;
  int32_t index;
};

/// Finds the largest of many distances; ties go to the lowest index.
template <class D>
class FarthestOfLanes {
 public:
  explicit FarthestOfLanes(D d)
      : distance_(hn::Set(d, kNoPoint)), index_(hn::Set(DI(), std::numeric_limits<int32_t>::max())) {}

  HWY_INLINE void Offer(hn::Vec<D> distance, hn::Vec<hn::RebindToSigned<D>> index) {
    const D d;
    const auto lower = hn::RebindMask(d, hn::Lt(index, index_));
    const auto better = hn::Or(hn::Gt(distance, distance_), hn::And(hn::Eq(distance, distance_), lower));
    distance_ = hn::IfThenElse(better, distance, distance_);
    index_ = hn::IfThenElse(hn::RebindMask(DI(), better), index, index_);
  }

  HWY_INLINE Farthest Result() const {
    const D d;
    const auto largest = hn::MaxOfLanes(d, distance_);
    const auto max_int = hn::Set(DI(), std::numeric_limits<int32_t>::max());
    const auto index = hn::IfThenElse(hn::RebindMask(DI(), hn::Eq(distance_, largest)), index_, max_int);
    return {hn::GetLane(largest), hn::ReduceMin(DI(), index)};
  }

 private:
  using DI = hn::RebindToSigned<D>;
  hn::Vec<D> distance_;
  hn::Vec<DI> index_;
};

/// Does not fuse products and sums, so that the farthest point does not depend on the instruction set.
template <class D>
HWY_INLINE hn::Vec<D> SumOfSquares(D, hn::Vec<D> x, hn::Vec<D> y, hn::Vec<D> z) {
  return hn::Add(hn::Add(hn::Mul(x, x), hn::Mul(y, y)), hn::Mul(z, z));
}

/// Samples clouds whose points are in trees (ops/points/point_tree-inl.h). A leaf's running distances are
/// updated only if its box is nearer to the new point than its largest running distance. Because differences, products
/// and sums are rounded monotonically, the computed distance of a point is never less than that of its box.
class TreeSampler {
 public:
  TreeSampler(const Context& context, const PointForest& forest)
      : forest_(forest),
        running_(context.Allocate<float>(forest.sizes().leaves * kLeafSize)),
        child_distance_(context.Allocate<float>(forest.sizes().boxes * kBlockSize)),
        child_index_(context.Allocate<int32_t>(forest.sizes().boxes * kBlockSize)) {}

  explicit operator bool() const { return running_ && child_distance_ && child_index_; }

  /// Chooses `count` rows of the segment, relative to its first row. `xyz` are the rows that the forest was built from.
  void Run(const TreeSegment& segment, const float* xyz, int64_t count, int32_t* chosen) const {
    std::fill(chosen, chosen + count, 0);
    const int32_t num_leaves = segment.NumLeaves();
    if (num_leaves == 0) return;
    const int32_t num_blocks = (num_leaves + kBlockSize - 1) / kBlockSize;
    Start(segment, num_leaves, num_blocks);
    int64_t row = segment.begin;
    for (int64_t k = 1; k < count; ++k) {
      const float* const from = xyz + 3 * row;
      // Only row 0 may be non-finite; its distances are skipped.
      if (std::isfinite(from[0]) && std::isfinite(from[1]) && std::isfinite(from[2])) Lower(segment, num_blocks, from);
      row = FarthestChild(segment, num_blocks);
      chosen[k] = static_cast<int32_t>(row - segment.begin);
    }
  }

 private:
  // A block of level 0 has 16 leaves, a block of level 1 has 16 blocks of level 0. Level 1 exists only if level 0 has
  // more than one block.
  using D = hn::CappedTag<float, kBlockSize>;
  using DI = hn::RebindToSigned<D>;

  float* Distances(int64_t block) const { return child_distance_.data() + block * kBlockSize; }
  int32_t* Indices(int64_t block) const { return child_index_.data() + block * kBlockSize; }

  void Start(const TreeSegment& segment, int32_t num_leaves, int32_t num_blocks) const {
    for (int32_t leaf = 0; leaf < num_leaves; ++leaf) {
      const auto& column = forest_.leaves()[segment.leaf_begin + leaf].column;
      float* const running = running_.data() + int64_t{segment.leaf_begin + leaf} * kLeafSize;
      for (int i = 0; i < kLeafSize; ++i) running[i] = std::isnan(column.x[i]) ? kNoPoint : INFINITY;
    }
    const auto clear = [&](int64_t first, int64_t blocks) {
      std::fill(Distances(first), Distances(first + blocks), kNoPoint);
      std::fill(Indices(first), Indices(first + blocks), std::numeric_limits<int32_t>::max());
    };
    clear(segment.block_begin[0], num_blocks);
    for (int32_t leaf = 0; leaf < num_leaves; ++leaf) {
      Distances(segment.block_begin[0])[leaf] = INFINITY;
      Indices(segment.block_begin[0])[leaf] =
          forest_.blocks()[segment.block_begin[0] + leaf / kBlockSize].min_index[leaf % kBlockSize];
    }
    if (num_blocks == 1) return;
    clear(segment.block_begin[1], (num_blocks + kBlockSize - 1) / kBlockSize);
    for (int32_t block = 0; block < num_blocks; ++block) {
      Distances(segment.block_begin[1])[block] = INFINITY;
      Indices(segment.block_begin[1])[block] =
          forest_.blocks()[segment.block_begin[1] + block / kBlockSize].min_index[block % kBlockSize];
    }
  }

  // Returns one bit per child of a block with a distance that the new point may lower.
  uint32_t Touched(int64_t block, const float* from) const {
    const D d;
    const TreeBoxes& boxes = forest_.blocks()[block];
    uint32_t touched = 0;
    for (size_t lane = 0; lane < kBlockSize; lane += hn::Lanes(d)) {
      const auto bound =
          SumOfSquares(d, Outside<false>(d, boxes, lane, 0, from[0]), Outside<false>(d, boxes, lane, 1, from[1]),
                       Outside<false>(d, boxes, lane, 2, from[2]));
      touched |= BitsOf(d, hn::Lt(bound, hn::LoadU(d, Distances(block) + lane))) << lane;
    }
    return touched;
  }

  void Lower(const TreeSegment& segment, int32_t num_blocks, const float* from) const {
    if (num_blocks == 1) return LowerBlock(segment, 0, from);
    for (int32_t top = 0; top * kBlockSize < num_blocks; ++top) {
      const int64_t at = segment.block_begin[1] + top;
      for (uint32_t touched = Touched(at, from); touched != 0; touched &= touched - 1) {
        const int child = std::countr_zero(touched);
        LowerBlock(segment, top * kBlockSize + child, from);
        const Farthest farthest = FarthestOf(segment.block_begin[0] + top * kBlockSize + child, 1);
        Distances(at)[child] = farthest.distance;
        Indices(at)[child] = farthest.index;
      }
    }
  }

  void LowerBlock(const TreeSegment& segment, int32_t block, const float* from) const {
    const int64_t at = segment.block_begin[0] + block;
    for (uint32_t touched = Touched(at, from); touched != 0; touched &= touched - 1) {
      const int child = std::countr_zero(touched);
      const Farthest farthest = LowerLeaf(segment.leaf_begin + block * kBlockSize + child, from);
      Distances(at)[child] = farthest.distance;
      Indices(at)[child] = farthest.index;
    }
  }

  Farthest LowerLeaf(int64_t leaf, const float* from) const {
    const hn::CappedTag<float, kLeafSize> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto& column = forest_.leaves()[leaf].column;
    float* const running = running_.data() + leaf * kLeafSize;
    FarthestOfLanes farthest(d);
    for (size_t i = 0; i < kLeafSize; i += hn::Lanes(d)) {
      const auto squared = SumOfSquares(d, hn::Sub(hn::Load(d, column.x + i), hn::Set(d, from[0])),
                                        hn::Sub(hn::Load(d, column.y + i), hn::Set(d, from[1])),
                                        hn::Sub(hn::Load(d, column.z + i), hn::Set(d, from[2])));
      const auto before = hn::Load(d, running + i);
      const auto nearest =
          hn::IfThenElse(hn::Lt(squared, before), squared, before);  // `before` for the leaf's NaN padding
      hn::Store(nearest, d, running + i);
      farthest.Offer(nearest, hn::Load(di, column.index + i));
    }
    return farthest.Result();
  }

  // Returns the farthest of the children of consecutive blocks.
  Farthest FarthestOf(int64_t first, int64_t blocks) const {
    const D d;
    FarthestOfLanes farthest(d);
    for (int64_t i = 0; i < blocks * kBlockSize; i += static_cast<int64_t>(hn::Lanes(d))) {
      farthest.Offer(hn::LoadU(d, Distances(first) + i), hn::LoadU(DI(), Indices(first) + i));
    }
    return farthest.Result();
  }

  int64_t FarthestChild(const TreeSegment& segment, int32_t num_blocks) const {
    if (num_blocks == 1) return FarthestOf(segment.block_begin[0], 1).index;
    return FarthestOf(segment.block_begin[1], (num_blocks + kBlockSize - 1) / kBlockSize).index;
  }

  const PointForest& forest_;
  const Scratch<float> running_;
  const Scratch<float> child_distance_;
  const Scratch<int32_t> child_index_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif  // per-target part
