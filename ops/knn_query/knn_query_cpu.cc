#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/knn_query/knn_query_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/knn_query/knn_query.h"

// A k-d tree over each segment, cut into leaves of 32 points and blocks of 16 leaves, of 16 such blocks, and so
// on, whose boxes are compared with a query by vectors. Distances in fp32 choose candidates, with some slack;
// fp64 decides between them.

#ifndef POLYOP_OPS_KNN_QUERY_ONCE_
#define POLYOP_OPS_KNN_QUERY_ONCE_
namespace polyop {
namespace {

constexpr float kNoDistance = 1e5f;  // where there is no neighbour, as in pointops
constexpr int kLeafSize = 32;
constexpr int kBlockSize = 16;
constexpr int kMostLevels = 7;      // 16^7 leaves of 32 points are more than 2^31 points
constexpr int64_t kSubtree = 4096;  // points whose subtree one task builds

// Squared distances in fp32 are off by less than 5 roundings, which kSlack covers, and by what underflows.
constexpr double kSlack = 1e-6;
constexpr float kUnderflow = 1e-37f;
constexpr double kOverflow = 1e38;

struct Point {
  float x, y, z;
  int32_t index;  // row of xyz
};

// While the tree is built: points. Afterwards: a column for each coordinate, filled up with NaN.
union Leaf {
  Point points[kLeafSize];
  struct {
    float x[kLeafSize], y[kLeafSize], z[kLeafSize];
    int32_t index[kLeafSize];
  } column;
};

// Bounding boxes of up to 16 leaves or blocks, and the least row of xyz in each.
struct alignas(64) Block {
  float low[3][kBlockSize], high[3][kBlockSize];
  int32_t least_index[kBlockSize];
};

// Level 0 holds the boxes of leaves, level 1 those of the blocks of level 0, …; the last is a single block.
struct Segment {
  int64_t begin, end;            // rows of xyz
  int32_t leaf_begin, leaf_end;  // of its finite points
  int64_t points_end;            // counted over all leaves
  int32_t block_begin[kMostLevels];

  int32_t NumLeaves() const { return leaf_end - leaf_begin; }
};

// Leaves [begin, end) of a tree to be built, of which the last may be filled in part.
struct Part {
  int32_t begin, end;
  int64_t points_end;  // counted over all leaves

  int64_t NumPoints() const { return points_end - begin * int64_t{kLeafSize}; }
};

struct Neighbour {
  double squared;
  int32_t index, slot;  // row of xyz; place among all leaves' points
  bool operator<(const Neighbour& other) const {
    return squared < other.squared || (squared == other.squared && index < other.index);
  }
};
constexpr Neighbour kNobody = {INFINITY, std::numeric_limits<int32_t>::max(), 0};

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The order along an axis, as an integer: every point has another.
template <int kAxis>
uint64_t KeyOf(const Point& p) {
  const uint32_t bits = std::bit_cast<uint32_t>(kAxis == 0 ? p.x : kAxis == 1 ? p.y : p.z);
  const uint32_t ordered = bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);
  return (static_cast<uint64_t>(ordered) << 32) | static_cast<uint32_t>(p.index);
}

template <int kIsWide>
using IntOf = std::conditional_t<kIsWide != 0, int64_t, int32_t>;

// The ends as 64-bit integers, checked.
template <class I>
Status ReadEnds(const char* name, const Tensor<const I, 1>& offset, const char* total_name, int64_t total,
                int64_t* ends) {
  const int64_t count = offset.dim(0);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t before = i == 0 ? 0 : ends[i - 1];
    ends[i] = offset[i];
    if (ends[i] < before) {
      return InvalidArgument("'", name, "'[", i, "] is ", ends[i], ", wanted at least ", before,
                             i == 0 ? "" : ", the end before it");
    }
    if (ends[i] > total) {
      return InvalidArgument("'", name, "'[", i, "] is ", ends[i], ", wanted at most ", total_name, " = ", total);
    }
  }
  const int64_t last = count == 0 ? 0 : ends[count - 1];
  if (last != total) {
    return InvalidArgument("'", name, "' ends at ", last, ", wanted ", total_name, " = ", total);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace polyop
#endif  // POLYOP_OPS_KNN_QUERY_ONCE_

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Moves points below `pivot` to the front, without a branch that could be mispredicted; returns how many.
template <int kAxis>
int64_t Partition(Point* points, int64_t count, uint64_t pivot) {
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
void Select(Point* points, int64_t count, int64_t place) {
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
                   [](const Point& a, const Point& b) { return KeyOf<kAxis>(a) < KeyOf<kAxis>(b); });
}

void Select(Point* points, int64_t count, int64_t place, int axis) {
  if (axis == 0) return Select<0>(points, count, place);
  if (axis == 1) return Select<1>(points, count, place);
  Select<2>(points, count, place);
}

// Box of the points, and their least index.
int32_t BoundingBox(const Point* points, int64_t count, float* low, float* high) {
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
class Builder {
 public:
  Builder(const Context& context, Leaf* leaves, Block* blocks, Segment* segments, int64_t num_segments,
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
  Point* Points(int32_t leaf) const { return reinterpret_cast<Point*>(leaves_ + leaf); }

  // Copies the finite rows of a segment to its leaves.
  void Fill(const float* xyz, Segment& segment) const {
    Point* out = Points(segment.leaf_begin);
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const float* p = xyz + i * 3;
      *out = {p[0], p[1], p[2], static_cast<int32_t>(i)};
      out += std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
    }
    const int64_t count = out - Points(segment.leaf_begin);
    segment.leaf_end = segment.leaf_begin + static_cast<int32_t>(CeilDiv(count, kLeafSize));
    segment.points_end = segment.leaf_begin * int64_t{kLeafSize} + count;
  }

  // Brings the points into the tree's order: large parts level by level, then subtrees, each in one task.
  Status Order() const {
    // A large part has more than kSubtree points, and its halves at least a third of that.
    const int64_t most = num_segments_ + 3 * num_points_ / kSubtree + 2;
    const Scratch<Part> large = context_.Allocate<Part>(most), subtrees = context_.Allocate<Part>(most);
    const Scratch<Part> halves = context_.Allocate<Part>(2 * most);
    if (!large || !subtrees || !halves) return Internal("out of memory: a tree of ", num_points_, " points");
    int64_t num_large = 0, num_subtrees = 0;
    const auto add = [&](const Part& part) {
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
  void Split(const Part& part, Part* halves) const {
    Point* points = Points(part.begin);
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

  void OrderSubtree(const Part& part) const {
    if (part.end - part.begin == 1) return;
    Part halves[2];
    Split(part, halves);
    OrderSubtree(halves[0]);
    OrderSubtree(halves[1]);
  }

  // The blocks' boxes, and the leaves' columns.
  void MakeBlocks(const Segment& segment) const {
    Block* block = blocks_ + segment.block_begin[0];
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
      const Block* below = blocks_ + segment.block_begin[level - 1];
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

  static void SetBox(Block& block, int lane, const float* low, const float* high, int32_t least_index) {
    for (int a = 0; a < 3; ++a) {
      block.low[a][lane] = low[a];
      block.high[a][lane] = high[a];
    }
    block.least_index[lane] = least_index;
  }

  static void MakeColumns(Leaf& leaf, int64_t count) {
    Point points[kLeafSize];
    std::copy(leaf.points, leaf.points + count, points);
    std::fill(points + count, points + kLeafSize, Point{NAN, NAN, NAN, kNobody.index});
    for (int i = 0; i < kLeafSize; ++i) {
      leaf.column.x[i] = points[i].x;
      leaf.column.y[i] = points[i].y;
      leaf.column.z[i] = points[i].z;
      leaf.column.index[i] = points[i].index;
    }
  }

  const Context& context_;
  Leaf* leaves_;
  Block* blocks_;
  Segment* segments_;
  int64_t num_segments_, num_points_;
};

// Keeps the processor from fusing a product and a sum into one rounding, which would make the order of
// neighbours depend on the instruction set.
HWY_INLINE double Rounded(double x) {
#if HWY_ARCH_X86
  asm("" : "+x"(x));
#elif HWY_ARCH_ARM_A64
  asm("" : "+w"(x));
#endif
  return x;
}

HWY_INLINE double Square(double x) { return Rounded(x * x); }

// Where a search keeps its candidates; `capacity` of each, and a vector more.
struct Candidates {
  float* squared;    // in fp32
  int32_t* slot;     // place among all leaves' points
  int32_t* rank;     // scratch
  Neighbour* exact;  // scratch, and the result
};

/// The search for the neighbours of one query after the other.
class Search {
 public:
  static int64_t Capacity(int64_t wanted) { return Trigger(wanted) + kLeafSize; }

  Search(const Leaf* leaves, const Block* blocks, const Candidates& candidates, int64_t wanted)
      : leaves_(leaves), blocks_(blocks), c_(candidates), wanted_(wanted) {}

  /// Finds the nearest of the segment's points, in order; returns how many there are, at most `wanted`.
  int64_t Run(const float* query, const Segment& segment) {
    query_ = query;
    segment_ = &segment;
    count_ = 0;
    trigger_ = wanted_;
    worst_ = kNobody;
    limit_ = INFINITY;
    const int32_t num_leaves = segment.NumLeaves();
    if (num_leaves == 0 || !std::isfinite(query[0]) || !std::isfinite(query[1]) || !std::isfinite(query[2])) {
      return 0;
    }
    int level = 0;
    int32_t children = num_leaves;
    for (; children > kBlockSize; ++level) children = (children + kBlockSize - 1) / kBlockSize;
    Visit(level, 0, children);
    return Finish();
  }

 private:
  static constexpr int64_t kMostRanked = 320;  // ranks of more candidates are not counted but sorted

  // So many candidates are worth a look at which of them can stay.
  static int64_t Trigger(int64_t wanted) { return wanted + std::max<int64_t>(8, wanted / 4); }

  // The children of block `number` of a level, nearest first.
  void Visit(int level, int32_t number, int32_t children) {
    const Block& block = blocks_[segment_->block_begin[level] + number];
    const hn::CappedTag<float, kBlockSize> d;
    constexpr size_t kLanes = hn::MaxLanes(d), kVectors = kBlockSize / kLanes;
    hn::Vec<decltype(d)> bounds[kVectors];
    for (size_t v = 0; v < kVectors; ++v) bounds[v] = Bounds(d, block, v * kLanes);
    uint32_t alive = (2u << (children - 1)) - 1;
    while (alive != 0) {
      auto least = bounds[0];
      for (size_t v = 1; v < kVectors; ++v) least = hn::Min(least, bounds[v]);
      least = hn::MinOfLanes(d, least);
      uint32_t nearest = 0;
      for (size_t v = 0; v < kVectors; ++v) nearest |= BitsOf(d, hn::Eq(bounds[v], least)) << (v * kLanes);
      nearest &= alive;
      if (nearest == 0) nearest = alive;  // the least belongs to no child; theirs are infinite
      const int lane = std::countr_zero(nearest);
      const float bound = hn::GetLane(least);
      if (bound > limit_) return;
      alive &= ~(1u << lane);
      for (size_t v = 0; v < kVectors; ++v)
        bounds[v] = hn::IfThenElse(IsLane(d, v * kLanes, lane), hn::Inf(d), bounds[v]);
      if (HoldsOnlyTies(bound, block.least_index[lane])) continue;
      const int32_t child = number * kBlockSize + lane;
      if (level == 0) {
        ScanLeaf(segment_->leaf_begin + child);
      } else {
        Visit(level - 1, child, std::min(kBlockSize, ChildrenAt(level - 1) - child * kBlockSize));
      }
    }
  }

  // How many leaves or blocks the blocks of a level hold in all.
  int32_t ChildrenAt(int level) const {
    int32_t count = segment_->NumLeaves();
    for (; level > 0; --level) count = (count + kBlockSize - 1) / kBlockSize;
    return count;
  }

  // Squared distances of the query from boxes.
  template <class D>
  HWY_INLINE hn::Vec<D> Bounds(D d, const Block& block, size_t lane) const {
    auto sum = hn::Zero(d);
    for (int a = 0; a < 3; ++a) {
      const auto q = hn::Set(d, query_[a]);
      const auto below = hn::Sub(hn::Load(d, block.low[a] + lane), q);
      const auto above = hn::Sub(q, hn::Load(d, block.high[a] + lane));
      const auto outside = hn::Max(hn::Max(below, above), hn::Zero(d));
      sum = hn::MulAdd(outside, outside, sum);
    }
    return sum;
  }

  template <class D, class M>
  static HWY_INLINE uint32_t BitsOf(D d, M mask) {
    uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, mask, bytes);
    return bytes[0] | (static_cast<uint32_t>(bytes[1]) << 8);
  }

  template <class D>
  static HWY_INLINE hn::Mask<D> IsLane(D d, size_t first, int lane) {
    const hn::RebindToSigned<D> di;
    return hn::RebindMask(d, hn::Eq(hn::Iota(di, static_cast<int32_t>(first)), hn::Set(di, lane)));
  }

  // True if no point in there is nearer than the worst neighbour so far, and none of those at the same
  // distance has a lower index. Known only when many candidates were tied.
  bool HoldsOnlyTies(float bound, int32_t least_index) const {
    return least_index > worst_.index && bound < kOverflow &&
           bound * (1 - kSlack) - (bound > 0 ? static_cast<double>(kUnderflow) : 0) >= worst_.squared;
  }

  HWY_INLINE void ScanLeaf(int32_t number) {
    const auto& column = leaves_[number].column;
    const hn::CappedTag<float, kLeafSize> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto x = hn::Set(d, query_[0]), y = hn::Set(d, query_[1]), z = hn::Set(d, query_[2]);
    const auto limit = hn::Set(d, limit_);
    for (size_t i = 0; i < kLeafSize; i += hn::Lanes(d)) {
      const auto dx = hn::Sub(hn::Load(d, column.x + i), x), dy = hn::Sub(hn::Load(d, column.y + i), y);
      const auto dz = hn::Sub(hn::Load(d, column.z + i), z);
      const auto squared = hn::MulAdd(dz, dz, hn::MulAdd(dy, dy, hn::Mul(dx, dx)));
      const auto near = hn::Le(squared, limit);  // false where NaN fills the leaf up
      const auto slots = hn::Iota(di, number * kLeafSize + static_cast<int32_t>(i));
      hn::CompressStore(slots, hn::RebindMask(di, near), di, c_.slot + count_);
      count_ += static_cast<int64_t>(hn::CompressStore(squared, near, d, c_.squared + count_));
    }
    if (count_ >= trigger_) Tighten();
  }

  // Forgets the candidates that cannot be among the `wanted` nearest, and lowers the limit.
  void Tighten() {
    SetLimit(count_ <= kMostRanked ? LastWantedByRank() : LastWantedBySelection());
    trigger_ = Trigger(wanted_);
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t kept = 0;
    for (int64_t i = 0; i < count_; i += lanes) {
      const auto squared = hn::LoadU(d, c_.squared + i);
      const auto slots = hn::LoadU(di, c_.slot + i);
      const auto near = hn::And(hn::Le(squared, hn::Set(d, limit_)), hn::FirstN(d, static_cast<size_t>(count_ - i)));
      hn::CompressStore(slots, hn::RebindMask(di, near), di, c_.slot + kept);
      kept += static_cast<int64_t>(hn::CompressStore(squared, near, d, c_.squared + kept));
    }
    count_ = kept;
    if (count_ >= trigger_) TightenExactly();
  }

  void SetLimit(double squared) {
    limit_ = squared < kOverflow ? static_cast<float>(squared * (1 + kSlack)) + kUnderflow : INFINITY;
  }

  // The greatest of the `wanted` least distances.
  float LastWantedByRank() const {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::StoreU(hn::Inf(d), d, c_.squared + count_);
    auto last = hn::Zero(d);
    for (int64_t i = 0; i < count_; i += lanes) {
      const auto squared = hn::LoadU(d, c_.squared + i);
      auto rank = hn::Zero(di);
      for (int64_t j = 0; j < count_; ++j) {
        const auto nearer = hn::Lt(hn::Set(d, c_.squared[j]), squared);
        rank = hn::Sub(rank, hn::VecFromMask(di, hn::RebindMask(di, nearer)));
      }
      const auto is_wanted = hn::Lt(rank, hn::Set(di, static_cast<int32_t>(wanted_)));
      // What fills up the last vector is infinite: it counts only if fewer than `wanted` candidates are less.
      last = hn::Max(last, hn::IfThenElseZero(hn::RebindMask(d, is_wanted), squared));
    }
    return hn::ReduceMax(d, last);
  }

  float LastWantedBySelection() const {
    float* copy = reinterpret_cast<float*>(c_.exact);
    std::copy(c_.squared, c_.squared + count_, copy);
    std::nth_element(copy, copy + wanted_ - 1, copy + count_);
    return copy[wanted_ - 1];
  }

  Neighbour Exact(int32_t slot) const {
    const auto& column = leaves_[slot / kLeafSize].column;
    const int lane = slot % kLeafSize;
    const double dx = static_cast<double>(column.x[lane]) - static_cast<double>(query_[0]);
    const double dy = static_cast<double>(column.y[lane]) - static_cast<double>(query_[1]);
    const double dz = static_cast<double>(column.z[lane]) - static_cast<double>(query_[2]);
    return {(Square(dx) + Square(dy)) + Square(dz), column.index[lane], slot};
  }

  // Keeps no more than `wanted` candidates: ties, or distances that fp32 cannot hold.
  void TightenExactly() {
    for (int64_t i = 0; i < count_; ++i) c_.exact[i] = Exact(c_.slot[i]);
    std::nth_element(c_.exact, c_.exact + wanted_ - 1, c_.exact + count_);
    count_ = wanted_;
    worst_ = c_.exact[wanted_ - 1];
    SetLimit(worst_.squared);
    for (int64_t i = 0; i < count_; ++i) {
      c_.squared[i] = c_.exact[i].squared < kOverflow ? static_cast<float>(c_.exact[i].squared) : INFINITY;
      c_.slot[i] = c_.exact[i].slot;
    }
  }

  // Puts the nearest candidates in front of `exact`, in order.
  int64_t Finish() {
    const int64_t found = std::min(wanted_, count_);
    if (count_ > kMostRanked) {
      for (int64_t i = 0; i < count_; ++i) c_.exact[i] = Exact(c_.slot[i]);
      std::sort(c_.exact, c_.exact + count_);
      return found;
    }
    // Sorted by their fp32 distances they are nearly in order.
    CountRanks();
    for (int64_t i = 0; i < count_; ++i) c_.exact[c_.rank[i]] = Exact(c_.slot[i]);
    for (int64_t i = 1; i < count_; ++i) {
      const Neighbour moved = c_.exact[i];
      int64_t place = i;
      for (; place > 0 && moved < c_.exact[place - 1]; --place) c_.exact[place] = c_.exact[place - 1];
      c_.exact[place] = moved;
    }
    return found;
  }

  // rank[i]: how many candidates come before i, of equals those stored before it.
  void CountRanks() const {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < count_; i += lanes) {
      const auto squared = hn::LoadU(d, c_.squared + i);
      const auto self = hn::Iota(di, static_cast<int32_t>(i));
      auto rank = hn::Zero(di);
      for (int64_t j = 0; j < count_; ++j) {
        const auto other = hn::Set(d, c_.squared[j]);
        const auto first = hn::RebindMask(d, hn::Lt(hn::Set(di, static_cast<int32_t>(j)), self));
        const auto before = hn::Or(hn::Lt(other, squared), hn::And(hn::Eq(other, squared), first));
        rank = hn::Sub(rank, hn::VecFromMask(di, hn::RebindMask(di, before)));
      }
      hn::StoreU(rank, di, c_.rank + i);
    }
  }

  const Leaf* leaves_;
  const Block* blocks_;
  const Candidates c_;
  const int64_t wanted_;
  const float* query_ = nullptr;
  const Segment* segment_ = nullptr;
  int64_t count_ = 0, trigger_ = 0;
  float limit_ = INFINITY;     // no candidate beyond this squared distance is of use
  Neighbour worst_ = kNobody;  // the last of the `wanted` nearest so far, if it is known exactly
};

// One call, with all integers widened.
struct Call {
  const float* xyz;
  const float* queries;
  int64_t num_points, num_queries, samples, num_segments;
  const int64_t* ends;        // of segments
  const int64_t* query_ends;  // of segments' queries
  int32_t* idx;
  float* dist;
};

Status FindNeighbours(const Context& context, const Call& call) {
  const Scratch<Segment> segments = context.Allocate<Segment>(call.num_segments);
  if (!segments) return Internal("out of memory: ", call.num_segments, " segments");
  int64_t num_leaves = 0, num_blocks = 0, longest = 0;
  for (int64_t s = 0; s < call.num_segments; ++s) {
    const int64_t begin = s == 0 ? 0 : call.ends[s - 1], size = call.ends[s] - begin;
    segments[s] = {begin, call.ends[s], static_cast<int32_t>(num_leaves), 0, 0, {}};
    int64_t children = CeilDiv(size, kLeafSize);
    num_leaves += children;
    for (int level = 0; children > 0 && level < kMostLevels; ++level) {
      segments[s].block_begin[level] = static_cast<int32_t>(num_blocks);
      num_blocks += CeilDiv(children, kBlockSize);
      children = children > kBlockSize ? CeilDiv(children, kBlockSize) : 0;
    }
    longest = std::max(longest, size);
    if (num_leaves > std::numeric_limits<int32_t>::max() / kLeafSize) {
      return InvalidArgument("'offset' has ", call.num_segments, " segments of ", call.num_points,
                             " points, wanted fewer: their numbers do not fit in 31 bits");
    }
  }
  const Scratch<Leaf> leaves = context.Allocate<Leaf>(num_leaves);
  const Scratch<Block> blocks = context.Allocate<Block>(num_blocks);
  const int64_t wanted = std::max<int64_t>(1, std::min(call.samples, longest));
  const int64_t grain = GrainFor(500.0 + 30.0 * static_cast<double>(wanted));
  const int64_t tasks = Context::NumTasks(call.num_queries, grain);
  const int64_t capacity = (Search::Capacity(wanted) + kLeafSize + 15) / 16 * 16;
  const Scratch<float> squared = context.Allocate<float>(tasks * capacity);
  const Scratch<int32_t> slots = context.Allocate<int32_t>(tasks * capacity);
  const Scratch<int32_t> ranks = context.Allocate<int32_t>(tasks * capacity);
  const Scratch<Neighbour> exact = context.Allocate<Neighbour>(tasks * capacity);
  if (!leaves || !blocks || !squared || !slots || !ranks || !exact) {
    return Internal("out of memory: a tree of ", call.num_points, " points");
  }
  POLYOP_RETURN_IF_ERROR(
      Builder(context, leaves.data(), blocks.data(), segments.data(), call.num_segments, call.num_points)
          .Run(call.xyz));

  context.ParallelFor(call.num_queries, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    const int64_t at = task * capacity;
    const Candidates candidates = {squared.data() + at, slots.data() + at, ranks.data() + at, exact.data() + at};
    Search search(leaves.data(), blocks.data(), candidates, wanted);
    int64_t s = std::upper_bound(call.query_ends, call.query_ends + call.num_segments, begin) - call.query_ends;
    for (int64_t q = begin; q < end; ++q) {
      while (q >= call.query_ends[s]) ++s;
      const int64_t found = search.Run(call.queries + q * 3, segments[s]);
      int32_t* idx = call.idx + q * call.samples;
      float* dist = call.dist + q * call.samples;
      for (int64_t k = 0; k < found; ++k) {
        idx[k] = candidates.exact[k].index;
        dist[k] = static_cast<float>(std::sqrt(candidates.exact[k].squared));
      }
      std::fill(idx + found, idx + call.samples, -1);
      std::fill(dist + found, dist + call.samples, kNoDistance);
    }
  });
  return Status::Ok();
}

// kWide: bit 2 tells that nsample is i64, bit 1 offset, bit 0 new_offset; else they are i32.
template <int kWide>
Status KnnQueryCpu(const KnnQuery&, const Context& context, Tensor<const IntOf<kWide & 4>, 0>,
                   Tensor<const float, 2> xyz, Tensor<const IntOf<kWide & 2>, 1> offset,
                   std::optional<Tensor<const float, 2>> new_xyz,
                   std::optional<Tensor<const IntOf<kWide & 1>, 1>> new_offset, Tensor<int32_t, 2> idx,
                   Tensor<float, 2> dist) {
  const int64_t points = xyz.dim(0), queries = idx.dim(0), samples = idx.dim(1), segments = offset.dim(0);
  POLYOP_RETURN_IF_ERROR(CheckKnnQuery(samples, points, new_xyz.has_value(), new_offset.has_value()));
  const Scratch<int64_t> ends = context.Allocate<int64_t>(segments), query_ends = context.Allocate<int64_t>(segments);
  if (!ends || !query_ends) return Internal("out of memory: ", segments, " segments");
  POLYOP_RETURN_IF_ERROR(ReadEnds("offset", offset, "n", points, ends.data()));
  if (new_offset) POLYOP_RETURN_IF_ERROR(ReadEnds("new_offset", *new_offset, "m", queries, query_ends.data()));
  return FindNeighbours(
      context, {xyz.data(), new_xyz ? new_xyz->data() : xyz.data(), points, queries, samples, segments, ends.data(),
                new_offset ? query_ends.data() : ends.data(), idx.data(), dist.data()});
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery444, KnnQueryCpu<0>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery448, KnnQueryCpu<1>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery484, KnnQueryCpu<2>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery488, KnnQueryCpu<3>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery844, KnnQueryCpu<4>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery848, KnnQueryCpu<5>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery884, KnnQueryCpu<6>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery888, KnnQueryCpu<7>);
}  // namespace polyop
#endif
