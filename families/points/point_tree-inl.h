// A k-d tree over each segment of a list of points, cut into leaves of 32 points and blocks of 16 leaves, of 16 such
// blocks, and so on, whose boxes are compared with a query by vectors. Compiled once per instruction set; include it
// from a kernel file.

// Outside of the guard: Highway sets its macros anew each time a target is compiled.
#include "kernels/cpu/mask_bits-inl.h"
#include "kernels/cpu/simd.h"

#ifndef POLYOP_FAMILIES_POINTS_POINT_TREE_INL_H_
#define POLYOP_FAMILIES_POINTS_POINT_TREE_INL_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace polyop {

inline constexpr int kLeafSize = 32;
inline constexpr int kBlockSize = 16;
inline constexpr int kMostLevels = 7;      // 16^7 leaves of 32 points are more than 2^31 points
inline constexpr int64_t kSubtree = 4096;  // points whose subtree one task builds

struct TreePoint {
  float x, y, z;
  int32_t index;  // row of xyz
};

/// While the tree is built: points. Afterwards: a column for each coordinate, filled up with NaN.
union TreeLeaf {
  TreePoint points[kLeafSize];
  struct {
    float x[kLeafSize], y[kLeafSize], z[kLeafSize];
    int32_t index[kLeafSize];
  } column;
};

/// Bounding boxes of up to 16 leaves or blocks, and the least row of xyz in each.
struct alignas(64) TreeBoxes {
  float low[3][kBlockSize], high[3][kBlockSize];
  int32_t least_index[kBlockSize];
};

/// A tree over the finite points of some rows. Level 0 holds the boxes of leaves, level 1 those of the blocks of level
/// 0, …; the last is a single block.
struct TreeSegment {
  int64_t begin, end;            // rows of xyz
  int32_t leaf_begin, leaf_end;  // of its finite points
  int64_t points_end;            // counted over all leaves
  int32_t block_begin[kMostLevels];

  int32_t NumLeaves() const { return leaf_end - leaf_begin; }
  /// How many leaves or blocks the blocks of a level hold in all.
  int32_t ChildrenAt(int level) const {
    int32_t count = NumLeaves();
    for (; level > 0; --level) count = (count + kBlockSize - 1) / kBlockSize;
    return count;
  }
  /// The level of the single block.
  int TopLevel() const {
    int level = 0;
    while (ChildrenAt(level) > kBlockSize) ++level;
    return level;
  }
};

// Leaves [begin, end) of a tree to be built, of which the last may be filled in part.
struct TreePart {
  int32_t begin, end;
  int64_t points_end;  // counted over all leaves

  int64_t NumPoints() const { return points_end - begin * int64_t{kLeafSize}; }
};

// The order along an axis, as an integer: every point has another.
template <int kAxis>
uint64_t KeyOf(const TreePoint& p) {
  const uint32_t bits = std::bit_cast<uint32_t>(kAxis == 0 ? p.x : kAxis == 1 ? p.y : p.z);
  const uint32_t ordered = bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);
  return (static_cast<uint64_t>(ordered) << 32) | static_cast<uint32_t>(p.index);
}

/// What the trees of all segments take.
struct TreeSizes {
  int64_t leaves = 0, boxes = 0, longest_segment = 0;

  /// Whether places in all leaves are numbers of 31 bits.
  bool Fit() const { return leaves <= std::numeric_limits<int32_t>::max() / kLeafSize; }
};

/// Gives each segment its leaves and boxes. Segment s has the rows from ends[s - 1] on, before ends[s]. The segments
/// are of use if the sizes fit.
inline TreeSizes PlanTrees(const int64_t* ends, int64_t num_segments, TreeSegment* segments) {
  const auto blocks_of = [](int64_t count, int64_t size) { return (count + size - 1) / size; };
  TreeSizes sizes;
  for (int64_t s = 0; s < num_segments && sizes.Fit(); ++s) {
    const int64_t begin = s == 0 ? 0 : ends[s - 1], size = ends[s] - begin;
    segments[s] = {begin, ends[s], static_cast<int32_t>(sizes.leaves), 0, 0, {}};
    int64_t children = blocks_of(size, kLeafSize);
    sizes.leaves += children;
    for (int level = 0; children > 0 && level < kMostLevels; ++level) {
      segments[s].block_begin[level] = static_cast<int32_t>(sizes.boxes);
      sizes.boxes += blocks_of(children, kBlockSize);
      children = children > kBlockSize ? blocks_of(children, kBlockSize) : 0;
    }
    sizes.longest_segment = std::max(sizes.longest_segment, size);
  }
  return sizes;
}

}  // namespace polyop
#endif  // POLYOP_FAMILIES_POINTS_POINT_TREE_INL_H_

#if defined(POLYOP_FAMILIES_POINTS_POINT_TREE_TARGET_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_FAMILIES_POINTS_POINT_TREE_TARGET_H_
#undef POLYOP_FAMILIES_POINTS_POINT_TREE_TARGET_H_
#else
#define POLYOP_FAMILIES_POINTS_POINT_TREE_TARGET_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// How far a coordinate lies outside of the boxes from `lane` on, along its axis; 0 within.
template <class D>
HWY_INLINE hn::Vec<D> Outside(D d, const TreeBoxes& boxes, size_t lane, int axis, float coordinate) {
  const auto q = hn::Set(d, coordinate);
  const auto below = hn::Sub(hn::Load(d, boxes.low[axis] + lane), q);
  const auto above = hn::Sub(q, hn::Load(d, boxes.high[axis] + lane));
  return hn::Max(hn::Max(below, above), hn::Zero(d));
}

/// Squared distances of a point from those boxes.
template <class D>
HWY_INLINE hn::Vec<D> SquaredDistances(D d, const TreeBoxes& boxes, size_t lane, const float* point) {
  auto sum = hn::Zero(d);
  for (int a = 0; a < 3; ++a) {
    const auto outside = Outside(d, boxes, lane, a, point[a]);
    sum = hn::MulAdd(outside, outside, sum);
  }
  return sum;
}

// Moves points below `pivot` to the front, without a branch that could be mispredicted; returns how many.
template <int kAxis>
int64_t Partition(TreePoint* points, int64_t count, uint64_t pivot) {
  const hn::FixedTag<float, 4> d;  // a point as a whole: loads that follow its store in parts would wait for it
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

// Puts the points with the `place` least keys in front. Quickselect; the pivot is the sample's quantile at the
// place that is looked for.
template <int kAxis>
void Select(TreePoint* points, int64_t count, int64_t place) {
  constexpr int kMost = 31;
  for (int round = 0; count > 32 && round < 40; ++round) {
    const int samples = count > 1000 ? kMost : 9;
    uint64_t sample[kMost];
    for (int s = 0; s < samples; ++s) sample[s] = KeyOf<kAxis>(points[s * (count - 1) / (samples - 1)]);
    std::sort(sample, sample + samples);
    // At least 1: some point is below the pivot then, and the pivot itself is not, so both parts are smaller.
    const int64_t quantile = std::clamp<int64_t>((place * samples + count / 2) / count, 1, samples - 1);
    const int64_t below = Partition<kAxis>(points, count, sample[quantile]);
    if (below == place) return;
    if (below > place) {
      count = below;
    } else {
      points += below;
      count -= below;
      place -= below;
    }
  }
  std::nth_element(points, points + place, points + count,
                   [](const TreePoint& a, const TreePoint& b) { return KeyOf<kAxis>(a) < KeyOf<kAxis>(b); });
}

inline void Select(TreePoint* points, int64_t count, int64_t place, int axis) {
  if (axis == 0) return Select<0>(points, count, place);
  if (axis == 1) return Select<1>(points, count, place);
  Select<2>(points, count, place);
}

// Box of the points, and their least index.
inline int32_t BoundingBox(const TreePoint* points, int64_t count, float* low, float* high) {
  const hn::FixedTag<float, 4> d;
  auto least = hn::LoadU(d, &points[0].x), most = least;
  int32_t index = points[0].index;
  for (int64_t i = 0; i < count; ++i) {
    const auto p = hn::LoadU(d, &points[i].x);  // lane 3, the index, has no meaning
    least = hn::Min(least, p);
    most = hn::Max(most, p);
    index = std::min(index, points[i].index);
  }
  hn::StoreU(least, d, low);
  hn::StoreU(most, d, high);
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

  // Brings the points into the tree's order: large parts level by level, then subtrees, each in one task.
  Status Order() const {
    // A large part has more than kSubtree points, and its halves at least a third of that.
    const int64_t most = num_segments_ + 3 * num_points_ / kSubtree + 2;
    const Scratch<TreePart> large = context_.Allocate<TreePart>(most), subtrees = context_.Allocate<TreePart>(most);
    const Scratch<TreePart> halves = context_.Allocate<TreePart>(2 * most);
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

  // Splits across the longest side of the box. The first half gets a power of two of leaves, so that every
  // 16^k leaves from a segment's first on are a subtree.
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

  // The blocks' boxes, and the leaves' columns.
  void MakeBlocks(const TreeSegment& segment) const {
    TreeBoxes* block = blocks_ + segment.block_begin[0];
    const int32_t num_leaves = segment.NumLeaves();
    for (int32_t i = 0; i < num_leaves; ++i) {
      const int64_t first = (segment.leaf_begin + i) * int64_t{kLeafSize};
      const int64_t count = std::min<int64_t>(kLeafSize, segment.points_end - first);
      float low[4], high[4];
      const int32_t least = BoundingBox(Points(segment.leaf_begin + i), count, low, high);
      SetBox(block[i / kBlockSize], i % kBlockSize, low, high, least);
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
        const int32_t least = *std::min_element(below[i].least_index, below[i].least_index + size);
        SetBox(block[i / kBlockSize], i % kBlockSize, low, high, least);
      }
      count = (count + kBlockSize - 1) / kBlockSize;
    }
  }

  static void SetBox(TreeBoxes& block, int lane, const float* low, const float* high, int32_t least_index) {
    for (int a = 0; a < 3; ++a) {
      block.low[a][lane] = low[a];
      block.high[a][lane] = high[a];
    }
    block.least_index[lane] = least_index;
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
