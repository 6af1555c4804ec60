#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/knn_query/knn_query_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "core/simd.h"
#include "ops/knn_query/knn_query.h"

#ifndef POLYOP_OPS_KNN_QUERY_ONCE_
#define POLYOP_OPS_KNN_QUERY_ONCE_
namespace polyop {
namespace {

constexpr float kNoDistance = 1e5f;  // where there is no neighbour, as in pointops
constexpr int kLeafSize = 16;
constexpr int64_t kSubtree = 4096;  // points whose subtree one task builds

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

// Both children of an inner node: their bounding boxes, with 0 in lane 3, and the least index in each. The
// node that splits leaves [a, b) at m has the number m; child 0 holds the leaves [a, m), child 1 [m, b).
struct alignas(64) Node {
  float low[2][4], high[2][4];
  int32_t least_index[2];
};

// A part of the tree to be built: leaves [begin, end), of which the last may be filled in part.
struct Part {
  int32_t begin, end;
  int64_t points_end;  // counted over all leaves
  int32_t parent, side;  // whose child it is; -1: nobody's
};

struct Segment {
  int64_t begin, end;            // rows of xyz
  int32_t leaf_begin, leaf_end;  // of its finite points
  int64_t points_end;            // counted over all leaves
};

struct Neighbour {
  double squared;
  int32_t index;
  bool operator<(const Neighbour& other) const {
    return squared < other.squared || (squared == other.squared && index < other.index);
  }
};
constexpr Neighbour kNobody = {INFINITY, std::numeric_limits<int32_t>::max()};

// The order along an axis, as an integer: every point has another.
inline uint64_t KeyOf(const Point& p, int axis) {
  const uint32_t bits = std::bit_cast<uint32_t>(axis == 0 ? p.x : axis == 1 ? p.y : p.z);
  const uint32_t ordered = bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);
  return (static_cast<uint64_t>(ordered) << 32) | static_cast<uint32_t>(p.index);
}

// Moves points below `pivot` to the front, without a branch that could be mispredicted; returns how many.
template <int kAxis>
int64_t Partition(Point* points, int64_t count, uint64_t pivot) {
  int64_t below = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Point p = points[i];
    points[i] = points[below];
    points[below] = p;
    below += KeyOf(p, kAxis) < pivot;
  }
  return below;
}

// Puts the points with the `place` least keys in front. Quickselect; the pivot is the sample's quantile at
// the place that is looked for.
template <int kAxis>
void Select(Point* points, int64_t count, int64_t place) {
  constexpr int kMost = 31;
  for (int round = 0; count > 64 && round < 40; ++round) {
    const int samples = count > 1000 ? kMost : 9;
    uint64_t sample[kMost];
    for (int s = 0; s < samples; ++s) sample[s] = KeyOf(points[s * (count - 1) / (samples - 1)], kAxis);
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
                   [](const Point& a, const Point& b) { return KeyOf(a, kAxis) < KeyOf(b, kAxis); });
}

void Select(Point* points, int64_t count, int64_t place, int axis) {
  if (axis == 0) return Select<0>(points, count, place);
  if (axis == 1) return Select<1>(points, count, place);
  Select<2>(points, count, place);
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

using D4 = hn::FixedTag<float, 4>;

// Box of the points, and their least index.
HWY_INLINE int32_t BoundingBox(const Point* points, int64_t count, float* low, float* high) {
  const D4 d;
  auto least = hn::LoadU(d, &points[0].x), most = least;
  int32_t index = points[0].index;
  for (int64_t i = 0; i < count; ++i) {
    const auto p = hn::LoadU(d, &points[i].x);  // lane 3, the index, is overwritten below
    least = hn::Min(least, p);
    most = hn::Max(most, p);
    index = std::min(index, points[i].index);
  }
  hn::StoreU(least, d, low);
  hn::StoreU(most, d, high);
  low[3] = high[3] = 0;
  return index;
}

void FinishLeaf(Leaf& leaf, int64_t count) {
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

class Tree {
 public:
  Tree(Leaf* leaves, Node* nodes) : leaves_(leaves), nodes_(nodes) {}

  /// Copies the finite rows of a segment to its leaves, which start at segment.leaf_begin.
  void Fill(const float* xyz, Segment& segment) const {
    Point* out = Points(segment.leaf_begin);
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const float* p = xyz + i * 3;
      *out = {p[0], p[1], p[2], static_cast<int32_t>(i)};
      out += std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
    }
    const int64_t count = out - Points(segment.leaf_begin);
    segment.leaf_end = segment.leaf_begin + static_cast<int32_t>((count + kLeafSize - 1) / kLeafSize);
    segment.points_end = segment.leaf_begin * int64_t{kLeafSize} + count;
  }

  /// Splits a part in two; false if it is a single leaf, which is finished then. Half of the leaves go to
  /// each side, whatever the points are, so the depth is bounded.
  bool Split(const Part& part, Part* children) const {
    Point* points = Points(part.begin);
    const int64_t count = part.points_end - part.begin * int64_t{kLeafSize};
    float low[4], high[4];
    const int32_t least_index = BoundingBox(points, count, low, high);
    if (part.parent >= 0) {
      Node& parent = nodes_[part.parent];
      std::copy(low, low + 4, parent.low[part.side]);
      std::copy(high, high + 4, parent.high[part.side]);
      parent.least_index[part.side] = least_index;
    }
    if (part.end - part.begin == 1) {
      FinishLeaf(leaves_[part.begin], count);
      return false;
    }
    int axis = 0;
    for (int a = 1; a < 3; ++a) {
      if (high[a] - low[a] > high[axis] - low[axis]) axis = a;
    }
    const int32_t middle = part.begin + (part.end - part.begin) / 2;
    Select(points, count, (middle - part.begin) * int64_t{kLeafSize}, axis);
    children[0] = {part.begin, middle, middle * int64_t{kLeafSize}, middle, 0};
    children[1] = {middle, part.end, part.points_end, middle, 1};
    return true;
  }

  void Build(const Part& part) const {
    Part children[2];
    if (!Split(part, children)) return;
    Build(children[0]);
    Build(children[1]);
  }

 private:
  Point* Points(int32_t leaf) const { return reinterpret_cast<Point*>(leaves_ + leaf); }
  Leaf* leaves_;
  Node* nodes_;
};

// Builds the tree of every segment: the large parts level by level, then the subtrees, each in one task.
Status BuildTrees(const Context& context, const Tree& tree, const Segment* segments, int64_t count, int64_t points) {
  // A part of more than kSubtree points is split into halves of at least a third of that.
  const int64_t most = count + 3 * points / kSubtree + 2;
  const Scratch<Part> large = context.Allocate<Part>(most), subtrees = context.Allocate<Part>(most);
  const Scratch<Part> children = context.Allocate<Part>(2 * most);
  if (!large || !subtrees || !children) return Internal("out of memory: a tree of ", points, " points");
  int64_t num_large = 0, num_subtrees = 0;
  const auto add = [&](const Part& part) {
    const bool is_large = part.points_end - part.begin * int64_t{kLeafSize} > kSubtree;
    (is_large ? large[num_large++] : subtrees[num_subtrees++]) = part;
  };
  for (int64_t s = 0; s < count; ++s) {
    const Segment& segment = segments[s];
    if (segment.leaf_end == segment.leaf_begin) continue;
    add({segment.leaf_begin, segment.leaf_end, segment.points_end, -1, 0});
  }
  while (num_large > 0) {
    context.ParallelFor(num_large, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t i = begin; i < end; ++i) tree.Split(large[i], &children[2 * i]);
    });
    const int64_t num_children = 2 * num_large;
    num_large = 0;
    for (int64_t i = 0; i < num_children; ++i) add(children[i]);
  }
  const int64_t grain = std::max<int64_t>(1, num_subtrees * 1000 / std::max<int64_t>(points, 1));
  context.ParallelFor(num_subtrees, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) tree.Build(subtrees[i]);
  });
  return Status::Ok();
}

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

/// The search for one query's neighbours.
class Search {
 public:
  /// `list` has room for `wanted` >= 1 neighbours.
  Search(const Leaf* leaves, const Node* nodes, Neighbour* list, int64_t wanted)
      : leaves_(leaves), nodes_(nodes), list_(list), wanted_(wanted) {}

  /// Finds the neighbours of `query` among the points of leaves [begin, end); returns how many there are.
  int64_t Run(const float* query, int32_t begin, int32_t end) {
    query_ = query;
    found_ = 0;
    SetWorst(kNobody);
    if (begin == end || !std::isfinite(query[0]) || !std::isfinite(query[1]) || !std::isfinite(query[2])) return 0;
    HWY_ALIGN const float padded[4] = {query[0], query[1], query[2], 0};
    const auto q = hn::Load(D4(), padded);
    int depth = 0;
    stack_[depth++] = {0, begin, end, 0};
    while (depth > 0) {
      Entry at = stack_[--depth];
      while (!IsTooFar(at)) {
        if (at.end - at.begin == 1) {
          ScanLeaf(leaves_[at.begin]);
          break;
        }
        const int32_t middle = at.begin + (at.end - at.begin) / 2;
        const Node& node = nodes_[middle];
        const Entry left = {Bound(node, 0, q), at.begin, middle, node.least_index[0]};
        const Entry right = {Bound(node, 1, q), middle, at.end, node.least_index[1]};
        const bool left_first = left.bound <= right.bound;  // where both are 0 the left holds the lower indices
        const Entry& far = left_first ? right : left;
        if (!IsTooFar(far)) stack_[depth++] = far;
        at = left_first ? left : right;
      }
    }
    if (IsHeap()) std::sort_heap(list_, list_ + found_);
    return found_;
  }

 private:
  // Squared distances in fp32 are off by less than 5 roundings, which kSlack covers, and by what underflows.
  static constexpr double kSlack = 1e-6;
  static constexpr float kUnderflow = 1e-37f;
  static constexpr int64_t kLongestList = 64;  // a longer list is a heap

  struct Entry {
    float bound;  // squared distance from the box
    int32_t begin, end, least_index;
  };

  bool IsHeap() const { return wanted_ > kLongestList; }

  static HWY_INLINE float Bound(const Node& node, int child, hn::Vec<D4> q) {
    const D4 d;
    const auto below = hn::Sub(hn::Load(d, node.low[child]), q), above = hn::Sub(q, hn::Load(d, node.high[child]));
    const auto outside = hn::Max(hn::Max(below, above), hn::Zero(d));
    return hn::ReduceSum(d, hn::Mul(outside, outside));
  }

  void SetWorst(const Neighbour& worst) {
    worst_ = worst;
    limit_ = worst.squared < 1e38 ? static_cast<float>(worst.squared * (1 + kSlack)) + kUnderflow : INFINITY;
  }

  // True if nothing in there can enter the list; a tie goes to the lower index.
  bool IsTooFar(const Entry& entry) const {
    if (entry.bound > limit_) return true;
    return entry.bound * (1 - kSlack) - static_cast<double>(kUnderflow) * (entry.bound > 0) >= worst_.squared &&
           entry.least_index > worst_.index && entry.bound < 1e38f;
  }

  HWY_INLINE void ScanLeaf(const Leaf& leaf) {
    const hn::CappedTag<float, kLeafSize> d;
    constexpr size_t kLanes = hn::MaxLanes(d);
    const auto x = hn::Set(d, query_[0]), y = hn::Set(d, query_[1]), z = hn::Set(d, query_[2]);
    const auto limit = hn::Set(d, limit_);
    for (size_t i = 0; i < kLeafSize; i += kLanes) {
      const auto dx = hn::Sub(hn::Load(d, leaf.column.x + i), x), dy = hn::Sub(hn::Load(d, leaf.column.y + i), y);
      const auto dz = hn::Sub(hn::Load(d, leaf.column.z + i), z);
      const auto squared = hn::MulAdd(dz, dz, hn::MulAdd(dy, dy, hn::Mul(dx, dx)));
      uint8_t bytes[8] = {};
      hn::StoreMaskBits(d, hn::Le(squared, limit), bytes);  // false where NaN fills the leaf up
      uint32_t near = bytes[0] | (static_cast<uint32_t>(bytes[1]) << 8);
      for (; near != 0; near &= near - 1) Add(leaf, static_cast<int>(i) + std::countr_zero(near));
    }
  }

  HWY_INLINE void Add(const Leaf& leaf, int lane) {
    const double dx = static_cast<double>(leaf.column.x[lane]) - static_cast<double>(query_[0]);
    const double dy = static_cast<double>(leaf.column.y[lane]) - static_cast<double>(query_[1]);
    const double dz = static_cast<double>(leaf.column.z[lane]) - static_cast<double>(query_[2]);
    const Neighbour neighbour = {(Square(dx) + Square(dy)) + Square(dz), leaf.column.index[lane]};
    if (!(neighbour < worst_)) return;
    if (IsHeap()) {
      if (found_ == wanted_) std::pop_heap(list_, list_ + found_--);
      list_[found_++] = neighbour;
      std::push_heap(list_, list_ + found_);
      if (found_ == wanted_) SetWorst(list_[0]);
      return;
    }
    int64_t place = found_ < wanted_ ? found_++ : wanted_ - 1;
    for (; place > 0 && neighbour < list_[place - 1]; --place) list_[place] = list_[place - 1];
    list_[place] = neighbour;
    if (found_ == wanted_) SetWorst(list_[wanted_ - 1]);
  }

  const Leaf* leaves_;
  const Node* nodes_;
  Neighbour* list_;
  int64_t wanted_, found_ = 0;
  const float* query_ = nullptr;
  Neighbour worst_ = kNobody;
  float limit_ = INFINITY;
  Entry stack_[64];  // the tree is at most 31 deep
};

// One call, with all integers widened.
struct Call {
  const float* xyz;
  const float* queries;
  int64_t num_queries, samples, num_segments;
  const int64_t* ends;        // of segments
  const int64_t* query_ends;  // of segments' queries
  int32_t* idx;
  float* dist;
};

Status FindNeighbours(const Context& context, const Call& call) {
  const int64_t points = call.num_segments == 0 ? 0 : call.ends[call.num_segments - 1];
  const Scratch<Segment> segments = context.Allocate<Segment>(call.num_segments);
  if (!segments) return Internal("out of memory: ", call.num_segments, " segments");
  int64_t num_leaves = 0, longest = 0;
  for (int64_t s = 0; s < call.num_segments; ++s) {
    const int64_t begin = s == 0 ? 0 : call.ends[s - 1], size = call.ends[s] - begin;
    segments[s] = {begin, call.ends[s], static_cast<int32_t>(num_leaves), 0, 0};
    num_leaves += (size + kLeafSize - 1) / kLeafSize;
    longest = std::max(longest, size);
  }
  const Scratch<Leaf> leaves = context.Allocate<Leaf>(num_leaves);
  const Scratch<Node> nodes = context.Allocate<Node>(num_leaves);
  const int64_t wanted = std::max<int64_t>(1, std::min(call.samples, longest));
  const int64_t grain = GrainFor(500.0 + 40.0 * static_cast<double>(wanted));
  const Scratch<Neighbour> lists =
      context.Allocate<Neighbour>(Context::NumTasks(call.num_queries, grain) * wanted);
  if (!leaves || !nodes || !lists) return Internal("out of memory: a tree of ", points, " points");

  const Tree tree(leaves.data(), nodes.data());
  const int64_t fill_grain = std::max<int64_t>(1, call.num_segments * 4096 / std::max<int64_t>(points, 1));
  context.ParallelFor(call.num_segments, fill_grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t s = begin; s < end; ++s) tree.Fill(call.xyz, segments[s]);
  });
  POLYOP_RETURN_IF_ERROR(BuildTrees(context, tree, segments.data(), call.num_segments, points));

  context.ParallelFor(call.num_queries, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    Search search(leaves.data(), nodes.data(), lists.data() + task * wanted, wanted);
    const Neighbour* list = lists.data() + task * wanted;
    int64_t s = std::upper_bound(call.query_ends, call.query_ends + call.num_segments, begin) - call.query_ends;
    for (int64_t q = begin; q < end; ++q) {
      while (q >= call.query_ends[s]) ++s;
      const int64_t found = search.Run(call.queries + q * 3, segments[s].leaf_begin, segments[s].leaf_end);
      int32_t* idx = call.idx + q * call.samples;
      float* dist = call.dist + q * call.samples;
      for (int64_t k = 0; k < found; ++k) {
        idx[k] = list[k].index;
        dist[k] = static_cast<float>(std::sqrt(list[k].squared));
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
  if (samples < 1) return InvalidArgument("'nsample' is ", samples, ", wanted at least 1");
  if (new_xyz.has_value() != new_offset.has_value()) {
    return InvalidArgument(new_xyz ? "'new_xyz' came without 'new_offset'" : "'new_offset' came without 'new_xyz'",
                           ", wanted both or neither");
  }
  if (points > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("'xyz' has ", points, " points, wanted at most 2147483647: 'idx' is i32");
  }
  const Scratch<int64_t> ends = context.Allocate<int64_t>(segments), query_ends = context.Allocate<int64_t>(segments);
  if (!ends || !query_ends) return Internal("out of memory: ", segments, " segments");
  POLYOP_RETURN_IF_ERROR(ReadEnds("offset", offset, "n", points, ends.data()));
  if (new_offset) POLYOP_RETURN_IF_ERROR(ReadEnds("new_offset", *new_offset, "m", queries, query_ends.data()));
  return FindNeighbours(context, {xyz.data(), new_xyz ? new_xyz->data() : xyz.data(), queries, samples, segments,
                                  ends.data(), new_offset ? query_ends.data() : ends.data(), idx.data(), dist.data()});
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
