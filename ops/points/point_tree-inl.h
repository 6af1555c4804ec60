// SPDX-License-Identifier: Apache-2.0
// A k-d tree over each segment of a list of points. Leaves have 32 points; blocks have 16 leaves, or 16 blocks of the
// level below, whose boxes are compared with a query in vectors. Compiled once per instruction set; include it
// from a kernel file.

// Outside of the guard because Highway redefines its macros for each target.
#include "kernels/cpu/mask_bits-inl.h"
#include "kernels/cpu/simd.h"

#ifndef POLYOP_OPS_POINTS_POINT_TREE_INL_H_
#define POLYOP_OPS_POINTS_POINT_TREE_INL_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace polyop {

inline constexpr int kLeafSize = 32;
inline constexpr int kBlockSize = 16;
inline constexpr int kMaxLevels = 7;  // 16^7 leaves of 32 points are more than 2^31 points
/// Factor of coordinates at which no squared distance overflows fp32, and of squared distances at these coordinates.
inline constexpr float kFarScale = 0x1p-68f;
inline constexpr double kFarSquaredScale = 0x1p-136;
inline constexpr int64_t kSubtree = 4096;  // maximum number of points of a subtree that one task builds

struct TreePoint {
  float x, y, z;
  int32_t index;  // row of xyz
};

/// Points while the tree is built; then one column per coordinate, padded with NaN.
union TreeLeaf {
  TreePoint points[kLeafSize];
  struct {
    float x[kLeafSize], y[kLeafSize], z[kLeafSize];
    int32_t index[kLeafSize];
  } column;
};

/// Bounding boxes of up to 16 leaves or blocks, and the lowest row of xyz in each.
struct alignas(64) TreeBoxes {
  float low[3][kBlockSize], high[3][kBlockSize];
  int32_t min_index[kBlockSize];
};

/// A tree over the finite points of some rows. Level 0 holds the boxes of leaves, level 1 those of the blocks of level
/// 0, and so on; the last level is a single block.
struct TreeSegment {
  int64_t begin, end;            // rows of xyz
  int32_t leaf_begin, leaf_end;  // leaves of the finite points
  int64_t points_end;            // across all leaves
  int32_t block_begin[kMaxLevels];

  int32_t NumLeaves() const { return leaf_end - leaf_begin; }
  /// Returns the total number of children, leaves or blocks, of the blocks of a level.
  int32_t ChildrenAt(int level) const {
    int32_t count = NumLeaves();
    for (; level > 0; --level) count = (count + kBlockSize - 1) / kBlockSize;
    return count;
  }
  /// Returns the level of the single block.
  int TopLevel() const {
    int level = 0;
    while (ChildrenAt(level) > kBlockSize) ++level;
    return level;
  }
};

// Leaves [begin, end) of a tree under construction. The last one may be partly filled.
struct TreePart {
  int32_t begin, end;
  int64_t points_end;  // across all leaves

  int64_t NumPoints() const { return points_end - begin * int64_t{kLeafSize}; }
};

// Returns the order along an axis as an integer that is unique to the point.
template <int kAxis>
uint64_t KeyOf(const TreePoint& p) {
  const uint32_t bits = std::bit_cast<uint32_t>(kAxis == 0 ? p.x : kAxis == 1 ? p.y : p.z);
  const uint32_t ordered = bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);
  return (static_cast<uint64_t>(ordered) << 32) | static_cast<uint32_t>(p.index);
}

/// Numbers of leaves and boxes of all trees.
struct TreeSizes {
  int64_t leaves = 0, boxes = 0, longest_segment = 0;

  /// Returns whether 31 bits can index the points of all leaves.
  bool Fit() const { return leaves <= std::numeric_limits<int32_t>::max() / kLeafSize; }
};

/// Assigns leaves and boxes to each segment. Segment s has rows [ends[s - 1], ends[s]). The segments are valid only if
/// the sizes fit.
inline TreeSizes PlanTrees(const int64_t* ends, int64_t num_segments, TreeSegment* segments) {
  const auto blocks_of = [](int64_t count, int64_t size) { return (count + size - 1) / size; };
  TreeSizes sizes;
  for (int64_t s = 0; s < num_segments && sizes.Fit(); ++s) {
    const int64_t begin = s == 0 ? 0 : ends[s - 1], size = ends[s] - begin;
    segments[s] = {begin, ends[s], static_cast<int32_t>(sizes.leaves), 0, 0, {}};
    int64_t children = blocks_of(size, kLeafSize);
    sizes.leaves += children;
    for (int level = 0; children > 0 && level < kMaxLevels; ++level) {
      segments[s].block_begin[level] = static_cast<int32_t>(sizes.boxes);
      sizes.boxes += blocks_of(children, kBlockSize);
      children = children > kBlockSize ? blocks_of(children, kBlockSize) : 0;
    }
    sizes.longest_segment = std::max(sizes.longest_segment, size);
  }
  return sizes;
}

}  // namespace polyop
#endif  // POLYOP_OPS_POINTS_POINT_TREE_INL_H_

#if defined(POLYOP_OPS_POINTS_POINT_TREE_TARGET_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_POINTS_POINT_TREE_TARGET_H_
#undef POLYOP_OPS_POINTS_POINT_TREE_TARGET_H_
#else
#define POLYOP_OPS_POINTS_POINT_TREE_TARGET_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Returns a - b; with kFar, times kFarScale.
template <bool kFar, class D>
HWY_INLINE hn::Vec<D> Difference(D d, hn::Vec<D> a, hn::Vec<D> b) {
  if constexpr (!kFar) return hn::Sub(a, b);
  const auto scale = hn::Set(d, kFarScale);
  return hn::Sub(hn::Mul(a, scale), hn::Mul(b, scale));
}

/// Returns the distance of a coordinate from the boxes starting at `lane`, along its axis; 0 inside. With kFar, it is
/// multiplied by kFarScale.
template <bool kFar, class D>
HWY_INLINE hn::Vec<D> Outside(D d, const TreeBoxes& boxes, size_t lane, int axis, float coordinate) {
  const auto q = hn::Set(d, coordinate);
  const auto below = Difference<kFar>(d, hn::Load(d, boxes.low[axis] + lane), q);
  const auto above = Difference<kFar>(d, q, hn::Load(d, boxes.high[axis] + lane));
  return hn::Max(hn::Max(below, above), hn::Zero(d));
}

/// Returns squared distances of a point from the boxes starting at `lane`; with kFar, times kFarSquaredScale.
template <bool kFar, class D>
HWY_INLINE hn::Vec<D> SquaredDistances(D d, const TreeBoxes& boxes, size_t lane, const float* point) {
  auto sum = hn::Zero(d);
  for (int a = 0; a < 3; ++a) {
    const auto outside = Outside<kFar>(d, boxes, lane, a, point[a]);
    sum = hn::MulAdd(outside, outside, sum);
  }
  return sum;
}

// Moves points below `pivot` to the front, without branches, and returns their number.
template <int kAxis>
int64_t Partition(TreePoint* points, int64_t count, uint64_t pivot) {
  const hn::FixedTag<float, 4> d;  // moves whole points: loads after partial stores would stall
  int64_t below = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t key = KeyOf<kAxis>(points[i]);
    const auto moved = hn::LoadU(d, &points[i].x);
    hn::StoreU(hn::LoadU(d, &points[below].x), d, &points[i].x);
    hn::StoreU(moved, d, &points[below].x);
    below += key < pivot;
  }
  return below;
}

// Moves the `rank` points with the smallest keys to the front: quickselect, whose pivot is a quantile of a sample near
// the requested rank.
template <int kAxis>
void Select(TreePoint* points, int64_t count, int64_t rank) {
  constexpr int kMax = 31;
  for (int round = 0; count > 32 && round < 40; ++round) {
    const int samples = count > 1000 ? kMax : 9;
    uint64_t sample[kMax];
    for (int s = 0; s < samples; ++s) sample[s] = KeyOf<kAxis>(points[s * (count - 1) / (samples - 1)]);
    std::sort(sample, sample + samples);
    // With a minimum of 1, some point is below the pivot and the pivot itself is not, so both parts shrink.
    const int64_t quantile = std::clamp<int64_t>((rank * samples + count / 2) / count, 1, samples - 1);
    const int64_t below = Partition<kAxis>(points, count, sample[quantile]);
    if (below == rank) return;
    if (below > rank) {
      count = below;
    } else {
      points += below;
      count -= below;
      rank -= below;
    }
  }
  std::nth_element(points, points + rank, points + count,
                   [](const TreePoint& a, const TreePoint& b) { return KeyOf<kAxis>(a) < KeyOf<kAxis>(b); });
}

inline void Select(TreePoint* points, int64_t count, int64_t rank, int axis) {
  if (axis == 0) return Select<0>(points, count, rank);
  if (axis == 1) return Select<1>(points, count, rank);
  Select<2>(points, count, rank);
}

// Computes the bounding box of the points and returns their lowest index.
inline int32_t BoundingBox(const TreePoint* points, int64_t count, float* low, float* high) {
  const hn::FixedTag<float, 4> d;
  auto smallest = hn::LoadU(d, &points[0].x), largest = smallest;
  int32_t index = points[0].index;
  for (int64_t i = 0; i < count; ++i) {
    const auto p = hn::LoadU(d, &points[i].x);  // lane 3 holds the index; ignore it
    smallest = hn::Min(smallest, p);
    largest = hn::Max(largest, p);
    index = std::min(index, points[i].index);
  }
  hn::StoreU(smallest, d, low);
  hn::StoreU(largest, d, high);
  return index;
}

/// Builds the trees of all segments.
class TreeBuilder {
 public:
  TreeBuilder(const Context& context, TreeLeaf* leaves, TreeBoxes* blocks, TreeSegment* segments, int64_t num_segments,
              int64_t num_points)
      : context_(context),
        leaves_(leaves),
        blocks_(blocks),
        segments_(segments),
        num_segments_(num_segments),
        num_points_(num_points) {}

  Status Run(const float* xyz) const {
    const int64_t grain = std::max<int64_t>(1, num_segments_ * kSubtree / std::max<int64_t>(num_points_, 1));
    context_.ParallelFor(num_segments_, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t s = begin; s < end; ++s) Fill(xyz, segments_[s]);
    });
    POLYOP_RETURN_IF_ERROR(Order());
    context_.ParallelFor(num_segments_, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t s = begin; s < end; ++s) MakeBlocks(segments_[s]);
    });
    return Status::Ok();
  }

 private:
  TreePoint* Points(int32_t leaf) const { return reinterpret_cast<TreePoint*>(leaves_ + leaf); }

  // Copies the finite rows of a segment to its leaves.
  void Fill(const float* xyz, TreeSegment& segment) const {
    TreePoint* out = Points(segment.leaf_begin);
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const float* p = xyz + i * 3;
      *out = {p[0], p[1], p[2], static_cast<int32_t>(i)};
      out += std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
    }
    const int64_t count = out - Points(segment.leaf_begin);
    segment.leaf_end = segment.leaf_begin + static_cast<int32_t>((count + kLeafSize - 1) / kLeafSize);
    segment.points_end = segment.leaf_begin * int64_t{kLeafSize} + count;
  }

  // Sorts the points into the tree's order: large parts level by level, then subtrees, each in one task.
  Status Order() const {
    // A large part has more than kSubtree points, and its halves have at least a third of that.
    const int64_t max_parts = num_segments_ + 3 * num_points_ / kSubtree + 2;
    const Scratch<TreePart> large = context_.Allocate<TreePart>(max_parts),
                            subtrees = context_.Allocate<TreePart>(max_parts);
    const Scratch<TreePart> halves = context_.Allocate<TreePart>(2 * max_parts);
    if (!large || !subtrees || !halves) return Internal("out of memory: a tree of ", num_points_, " points");
    int64_t num_large = 0, num_subtrees = 0;
    const auto add = [&](const TreePart& part) {
      (part.NumPoints() > kSubtree ? large[num_large++] : subtrees[num_subtrees++]) = part;
    };
    for (int64_t s = 0; s < num_segments_; ++s) {
      if (segments_[s].NumLeaves() == 0) continue;
      add({segments_[s].leaf_begin, segments_[s].leaf_end, segments_[s].points_end});
    }
    while (num_large > 0) {
      context_.ParallelFor(num_large, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
        for (int64_t i = begin; i < end; ++i) Split(large[i], &halves[2 * i]);
      });
      const int64_t num_halves = 2 * num_large;
      num_large = 0;
      for (int64_t i = 0; i < num_halves; ++i) add(halves[i]);
    }
    const int64_t grain = std::max<int64_t>(1, num_subtrees * 1000 / std::max<int64_t>(num_points_, 1));
    context_.ParallelFor(num_subtrees, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t i = begin; i < end; ++i) OrderSubtree(subtrees[i]);
    });
    return Status::Ok();
  }

  // Splits the longest side of the box. The number of leaves of the first half is a power of two, so that every 16^k
  // leaves, counted from a segment's first, are a subtree.
  void Split(const TreePart& part, TreePart* halves) const {
    TreePoint* points = Points(part.begin);
    float low[4], high[4];
    BoundingBox(points, part.NumPoints(), low, high);
    int axis = 0;
    for (int a = 1; a < 3; ++a) {
      if (high[a] - low[a] > high[axis] - low[axis]) axis = a;
    }
    const int32_t middle =
        part.begin + static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(part.end - part.begin - 1)));
    Select(points, part.NumPoints(), (middle - part.begin) * int64_t{kLeafSize}, axis);
    halves[0] = {part.begin, middle, middle * int64_t{kLeafSize}};
    halves[1] = {middle, part.end, part.points_end};
  }

  void OrderSubtree(const TreePart& part) const {
    if (part.end - part.begin == 1) return;
    TreePart halves[2];
    Split(part, halves);
    OrderSubtree(halves[0]);
    OrderSubtree(halves[1]);
  }

  // Computes the blocks' boxes and converts the leaves to columns.
  void MakeBlocks(const TreeSegment& segment) const {
    TreeBoxes* block = blocks_ + segment.block_begin[0];
    const int32_t num_leaves = segment.NumLeaves();
    for (int32_t i = 0; i < num_leaves; ++i) {
      const int64_t first = (segment.leaf_begin + i) * int64_t{kLeafSize};
      const int64_t count = std::min<int64_t>(kLeafSize, segment.points_end - first);
      float low[4], high[4];
      const int32_t lowest = BoundingBox(Points(segment.leaf_begin + i), count, low, high);
      SetBox(block[i / kBlockSize], i % kBlockSize, low, high, lowest);
      MakeColumns(leaves_[segment.leaf_begin + i], count);
    }
    int level = 1;
    for (int32_t count = num_leaves; count > kBlockSize; ++level) {
      const TreeBoxes* below = blocks_ + segment.block_begin[level - 1];
      block = blocks_ + segment.block_begin[level];
      for (int32_t i = 0; i * kBlockSize < count; ++i) {
        const int size = std::min(kBlockSize, count - i * kBlockSize);
        float low[3], high[3];
        for (int a = 0; a < 3; ++a) {
          low[a] = *std::min_element(below[i].low[a], below[i].low[a] + size);
          high[a] = *std::max_element(below[i].high[a], below[i].high[a] + size);
        }
        const int32_t lowest = *std::min_element(below[i].min_index, below[i].min_index + size);
        SetBox(block[i / kBlockSize], i % kBlockSize, low, high, lowest);
      }
      count = (count + kBlockSize - 1) / kBlockSize;
    }
  }

  static void SetBox(TreeBoxes& block, int lane, const float* low, const float* high, int32_t min_index) {
    for (int a = 0; a < 3; ++a) {
      block.low[a][lane] = low[a];
      block.high[a][lane] = high[a];
    }
    block.min_index[lane] = min_index;
  }

  static void MakeColumns(TreeLeaf& leaf, int64_t count) {
    TreePoint points[kLeafSize];
    std::copy(leaf.points, leaf.points + count, points);
    std::fill(points + count, points + kLeafSize, TreePoint{NAN, NAN, NAN, std::numeric_limits<int32_t>::max()});
    for (int i = 0; i < kLeafSize; ++i) {
      leaf.column.x[i] = points[i].x;
      leaf.column.y[i] = points[i].y;
      leaf.column.z[i] = points[i].z;
      leaf.column.index[i] = points[i].index;
    }
  }

  const Context& context_;
  TreeLeaf* leaves_;
  TreeBoxes* blocks_;
  TreeSegment* segments_;
  int64_t num_segments_, num_points_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif  // per-target part
