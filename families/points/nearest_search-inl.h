// The nearest points of a tree: distances in fp32 choose candidates, with some slack; fp64 decides between them.
// Compiled once per instruction set; include it from a kernel file.

// Outside of the guard: Highway sets its macros anew each time a target is compiled.
#include "families/points/point_tree-inl.h"
#include "kernels/cpu/simd.h"

#ifndef POLYOP_FAMILIES_POINTS_NEAREST_SEARCH_INL_H_
#define POLYOP_FAMILIES_POINTS_NEAREST_SEARCH_INL_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace polyop {

// Squared distances in fp32 are off by less than 5 roundings, which kSlack covers, and by what underflows.
inline constexpr double kSlack = 1e-6;
inline constexpr float kUnderflow = 1e-37f;
inline constexpr double kOverflow = 1e38;

struct Neighbour {
  double squared;
  int32_t index, slot;  // row of the points; place among all leaves' points
  bool operator<(const Neighbour& other) const {
    return squared < other.squared || (squared == other.squared && index < other.index);
  }
};
inline constexpr Neighbour kNobody = {INFINITY, std::numeric_limits<int32_t>::max(), 0};

}  // namespace polyop
#endif  // POLYOP_FAMILIES_POINTS_NEAREST_SEARCH_INL_H_

#if defined(POLYOP_FAMILIES_POINTS_NEAREST_SEARCH_TARGET_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_FAMILIES_POINTS_NEAREST_SEARCH_TARGET_H_
#undef POLYOP_FAMILIES_POINTS_NEAREST_SEARCH_TARGET_H_
#else
#define POLYOP_FAMILIES_POINTS_NEAREST_SEARCH_TARGET_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

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
class NearestSearch {
 public:
  static int64_t Capacity(int64_t wanted) { return Trigger(wanted) + kLeafSize; }

  NearestSearch(const TreeLeaf* leaves, const TreeBoxes* blocks, const Candidates& candidates, int64_t wanted)
      : leaves_(leaves), blocks_(blocks), c_(candidates), wanted_(wanted) {}

  /// Finds the nearest of the segment's points, in order; returns how many there are, at most `wanted`.
  int64_t Run(const float* query, const TreeSegment& segment) {
    query_ = query;
    segment_ = &segment;
    count_ = 0;
    trigger_ = wanted_;
    worst_ = kNobody;
    limit_ = INFINITY;
    if (segment.NumLeaves() == 0 || !std::isfinite(query[0]) || !std::isfinite(query[1]) || !std::isfinite(query[2])) {
      return 0;
    }
    const int top = segment.TopLevel();
    Visit(top, 0, segment.ChildrenAt(top));
    return Finish();
  }

 private:
  static constexpr int64_t kMostRanked = 320;  // ranks of more candidates are not counted but sorted

  // So many candidates are worth a look at which of them can stay.
  static int64_t Trigger(int64_t wanted) { return wanted + std::max<int64_t>(8, wanted / 4); }

  // The children of block `number` of a level, nearest first.
  void Visit(int level, int32_t number, int32_t children) {
    const TreeBoxes& block = blocks_[segment_->block_begin[level] + number];
    const hn::CappedTag<float, kBlockSize> d;
    constexpr size_t kLanes = hn::MaxLanes(d), kVectors = kBlockSize / kLanes;
    hn::Vec<decltype(d)> bounds[kVectors];
    for (size_t v = 0; v < kVectors; ++v) bounds[v] = SquaredDistances(d, block, v * kLanes, query_);
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
        Visit(level - 1, child, std::min(kBlockSize, segment_->ChildrenAt(level - 1) - child * kBlockSize));
      }
    }
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

  const TreeLeaf* leaves_;
  const TreeBoxes* blocks_;
  const Candidates c_;
  const int64_t wanted_;
  const float* query_ = nullptr;
  const TreeSegment* segment_ = nullptr;
  int64_t count_ = 0, trigger_ = 0;
  float limit_ = INFINITY;     // no candidate beyond this squared distance is of use
  Neighbour worst_ = kNobody;  // the last of the `wanted` nearest so far, if it is known exactly
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif  // per-target part
