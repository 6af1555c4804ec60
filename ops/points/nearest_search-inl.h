// SPDX-License-Identifier: Apache-2.0
// Finds the nearest points in a tree: distances in fp32, with some slack, choose candidates; fp64 decides among them.
// Compiled once per instruction set; include it from a kernel file.

// Outside of the guard because Highway redefines its macros for each target.
#include "kernels/cpu/simd.h"
#include "ops/points/point_tree-inl.h"

#ifndef POLYOP_OPS_POINTS_NEAREST_SEARCH_INL_H_
#define POLYOP_OPS_POINTS_NEAREST_SEARCH_INL_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace polyop {

// The error of squared distances in fp32 is less than 5 roundings, which kSlack covers, plus underflow.
inline constexpr double kSlack = 1e-6;
inline constexpr float kUnderflow = 1e-37f;
inline constexpr double kOverflow = 1e38;

struct Neighbour {
  double squared;
  int32_t index, slot;  // row of the points; index among the points of all leaves
  bool operator<(const Neighbour& other) const {
    return squared < other.squared || (squared == other.squared && index < other.index);
  }
};
inline constexpr Neighbour kNoNeighbour = {INFINITY, std::numeric_limits<int32_t>::max(), 0};

}  // namespace polyop
#endif  // POLYOP_OPS_POINTS_NEAREST_SEARCH_INL_H_

#if defined(POLYOP_OPS_POINTS_NEAREST_SEARCH_TARGET_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_POINTS_NEAREST_SEARCH_TARGET_H_
#undef POLYOP_OPS_POINTS_NEAREST_SEARCH_TARGET_H_
#else
#define POLYOP_OPS_POINTS_NEAREST_SEARCH_TARGET_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Prevents the compiler from fusing a product and a sum, which would make the order of neighbours depend on the
// instruction set.
HWY_INLINE double Rounded(double x) {
#if HWY_ARCH_X86
  asm("" : "+x"(x));
#elif HWY_ARCH_ARM_A64
  asm("" : "+w"(x));
#endif
  return x;
}

HWY_INLINE double Square(double x) { return Rounded(x * x); }

// Memory for the candidates of a search: `capacity` of each plus a vector of padding.
struct Candidates {
  float* squared;    // in fp32, scaled
  int32_t* slot;     // index among the points of all leaves
  int32_t* rank;     // scratch
  Neighbour* exact;  // scratch, then the result
};

/// Finds the neighbours of one query at a time. If the `k` nearest points are so far that their squared distances
/// overflow fp32, which would make all points candidates, the query is searched again with coordinates times kFarScale.
/// Otherwise coordinates are not scaled, because small distances would underflow then.
class NearestSearch {
 public:
  static int64_t Capacity(int64_t k) { return Trigger(k) + kLeafSize; }

  NearestSearch(const TreeLeaf* leaves, const TreeBoxes* blocks, const Candidates& candidates, int64_t k)
      : leaves_(leaves), blocks_(blocks), c_(candidates), k_(k) {}

  /// Finds the nearest of the segment's points, in order, and returns their number, at most `k`.
  int64_t Run(const float* query, const TreeSegment& segment) {
    query_ = query;
    segment_ = &segment;
    if (segment.NumLeaves() == 0 || !std::isfinite(query[0]) || !std::isfinite(query[1]) || !std::isfinite(query[2])) {
      return 0;
    }
    if (!Search<false>()) Search<true>();
    return Finish();
  }

 private:
  static constexpr int64_t kMaxRanked = 320;  // above this, candidates are selected instead of ranked

  // Returns the number of candidates at which they are pruned.
  static int64_t Trigger(int64_t k) { return k + std::max<int64_t>(8, k / 4); }

  // Finds the candidates. Returns false if too many leaves leave the limit infinite, which happens only without kFar.
  template <bool kFar>
  bool Search() {
    count_ = 0;
    trigger_ = k_;
    worst_ = kNoNeighbour;
    limit_ = INFINITY;
    scale_ = kFar ? kFarSquaredScale : 1;
    patience_ = 4 + 2 * k_ / kLeafSize;
    const int top = segment_->TopLevel();
    return Visit<kFar>(top, 0, segment_->ChildrenAt(top));
  }

  // Visits the children of block `number` of a level, nearest first. Returns false if the search is to be given up.
  template <bool kFar>
  bool Visit(int level, int32_t number, int32_t children) {
    const TreeBoxes& block = blocks_[segment_->block_begin[level] + number];
    const hn::CappedTag<float, kBlockSize> d;
    constexpr size_t kLanes = hn::MaxLanes(d), kVectors = kBlockSize / kLanes;
    hn::Vec<decltype(d)> bounds[kVectors];
    for (size_t v = 0; v < kVectors; ++v) bounds[v] = SquaredDistances<kFar>(d, block, v * kLanes, query_);
    uint32_t alive = (2u << (children - 1)) - 1;
    while (alive != 0) {
      auto smallest = bounds[0];
      for (size_t v = 1; v < kVectors; ++v) smallest = hn::Min(smallest, bounds[v]);
      smallest = hn::MinOfLanes(d, smallest);
      uint32_t nearest = 0;
      for (size_t v = 0; v < kVectors; ++v) nearest |= BitsOf(d, hn::Eq(bounds[v], smallest)) << (v * kLanes);
      nearest &= alive;
      if (nearest == 0) nearest = alive;  // the minimum belongs to padding; the children's are infinite
      const int lane = std::countr_zero(nearest);
      const float bound = hn::GetLane(smallest);
      if (bound > limit_) return true;
      alive &= ~(1u << lane);
      for (size_t v = 0; v < kVectors; ++v)
        bounds[v] = hn::IfThenElse(IsLane(d, v * kLanes, lane), hn::Inf(d), bounds[v]);
      if (HoldsOnlyTies(bound, block.min_index[lane])) continue;
      const int32_t child = number * kBlockSize + lane;
      if (level == 0) {
        ScanLeaf<kFar>(segment_->leaf_begin + child);
        if (!kFar && limit_ == INFINITY && count_ >= k_ && --patience_ < 0) return false;
      } else if (!Visit<kFar>(level - 1, child,
                              std::min(kBlockSize, segment_->ChildrenAt(level - 1) - child * kBlockSize))) {
        return false;
      }
    }
    return true;
  }

  template <class D>
  static HWY_INLINE hn::Mask<D> IsLane(D d, size_t first, int lane) {
    const hn::RebindToSigned<D> di;
    return hn::RebindMask(d, hn::Eq(hn::Iota(di, static_cast<int32_t>(first)), hn::Set(di, lane)));
  }

  // Returns true if no point of the box is nearer than the worst neighbour so far, and none at the same distance has a
  // lower index. Only known if many candidates were tied.
  bool HoldsOnlyTies(float bound, int32_t min_index) const {
    return min_index > worst_.index && bound < kOverflow &&
           bound * (1 - kSlack) - (bound > 0 ? static_cast<double>(kUnderflow) : 0) >= worst_.squared * scale_;
  }

  template <bool kFar>
  HWY_INLINE void ScanLeaf(int32_t number) {
    const auto& column = leaves_[number].column;
    const hn::CappedTag<float, kLeafSize> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto x = hn::Set(d, query_[0]), y = hn::Set(d, query_[1]), z = hn::Set(d, query_[2]);
    const auto limit = hn::Set(d, limit_);
    for (size_t i = 0; i < kLeafSize; i += hn::Lanes(d)) {
      const auto dx = Difference<kFar>(d, hn::Load(d, column.x + i), x);
      const auto dy = Difference<kFar>(d, hn::Load(d, column.y + i), y);
      const auto dz = Difference<kFar>(d, hn::Load(d, column.z + i), z);
      const auto squared = hn::MulAdd(dz, dz, hn::MulAdd(dy, dy, hn::Mul(dx, dx)));
      const auto near = hn::Le(squared, limit);  // false for the leaf's NaN padding
      const auto slots = hn::Iota(di, number * kLeafSize + static_cast<int32_t>(i));
      hn::CompressStore(slots, hn::RebindMask(di, near), di, c_.slot + count_);
      count_ += static_cast<int64_t>(hn::CompressStore(squared, near, d, c_.squared + count_));
    }
    if (count_ >= trigger_) Tighten();
  }

  // Drops the candidates that cannot be among the `k` nearest, and lowers the limit.
  void Tighten() {
    SetLimit(count_ <= kMaxRanked ? KthByRank() : KthBySelection());
    trigger_ = Trigger(k_);
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

  // Takes a squared distance as in `squared`, times scale_.
  void SetLimit(double squared) {
    limit_ = squared < kOverflow ? static_cast<float>(squared * (1 + kSlack)) + kUnderflow : INFINITY;
  }

  // Returns the k-th smallest distance.
  float KthByRank() const {
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
      const auto is_among_k = hn::Lt(rank, hn::Set(di, static_cast<int32_t>(k_)));
      // The padding of the last vector is infinite: it counts only if fewer than `k` candidates are less.
      last = hn::Max(last, hn::IfThenElseZero(hn::RebindMask(d, is_among_k), squared));
    }
    return hn::ReduceMax(d, last);
  }

  float KthBySelection() const {
    float* copy = reinterpret_cast<float*>(c_.exact);
    std::copy(c_.squared, c_.squared + count_, copy);
    std::nth_element(copy, copy + k_ - 1, copy + count_);
    return copy[k_ - 1];
  }

  Neighbour Exact(int32_t slot) const {
    const auto& column = leaves_[slot / kLeafSize].column;
    const int lane = slot % kLeafSize;
    const double dx = static_cast<double>(column.x[lane]) - static_cast<double>(query_[0]);
    const double dy = static_cast<double>(column.y[lane]) - static_cast<double>(query_[1]);
    const double dz = static_cast<double>(column.z[lane]) - static_cast<double>(query_[2]);
    return {(Square(dx) + Square(dy)) + Square(dz), column.index[lane], slot};
  }

  // Keeps exactly `k` candidates, by their distances in fp64: for ties, or distances that overflow fp32.
  void TightenExactly() {
    for (int64_t i = 0; i < count_; ++i) c_.exact[i] = Exact(c_.slot[i]);
    std::nth_element(c_.exact, c_.exact + k_ - 1, c_.exact + count_);
    count_ = k_;
    worst_ = c_.exact[k_ - 1];
    SetLimit(worst_.squared * scale_);
    for (int64_t i = 0; i < count_; ++i) {
      const double squared = c_.exact[i].squared * scale_;
      c_.squared[i] = squared < kOverflow ? static_cast<float>(squared) : INFINITY;
      c_.slot[i] = c_.exact[i].slot;
    }
  }

  // Moves the nearest candidates to the front of `exact`, in order.
  int64_t Finish() {
    const int64_t found = std::min(k_, count_);
    if (count_ > kMaxRanked) {
      for (int64_t i = 0; i < count_; ++i) c_.exact[i] = Exact(c_.slot[i]);
      std::sort(c_.exact, c_.exact + count_);
      return found;
    }
    // Sorted by fp32 distance, they are nearly in order.
    CountRanks();
    for (int64_t i = 0; i < count_; ++i) c_.exact[c_.rank[i]] = Exact(c_.slot[i]);
    for (int64_t i = 1; i < count_; ++i) {
      const Neighbour moved = c_.exact[i];
      int64_t at = i;
      for (; at > 0 && moved < c_.exact[at - 1]; --at) c_.exact[at] = c_.exact[at - 1];
      c_.exact[at] = moved;
    }
    return found;
  }

  // Sets rank[i] to the number of candidates that precede i; ties are in order of storage.
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
  const int64_t k_;
  const float* query_ = nullptr;
  const TreeSegment* segment_ = nullptr;
  int64_t count_ = 0, trigger_ = 0;
  int64_t patience_ = 0;            // leaves that may still be scanned with an infinite limit
  double scale_ = 1;                // of squared distances in fp32
  float limit_ = INFINITY;          // upper bound of the squared distance of useful candidates
  Neighbour worst_ = kNoNeighbour;  // the k-th nearest so far, if it is known exactly
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif  // per-target part
