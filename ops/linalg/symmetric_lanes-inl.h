// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of small symmetric matrices in lanes. Compiled once per instruction set; include it from
// a kernel file.
#if defined(POLYOP_OPS_LINALG_SYMMETRIC_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_SYMMETRIC_LANES_INL_H_
#undef POLYOP_OPS_LINALG_SYMMETRIC_LANES_INL_H_
#else
#define POLYOP_OPS_LINALG_SYMMETRIC_LANES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "kernels/cpu/simd.h"
#include "ops/linalg/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Eigenvalues and eigenvectors in lanes, by the algorithm of linalg::SymmetricEigen. Two groups of lanes are iterated
/// together, because the operations of a step depend on each other.
class SymmetricLanes {
 public:
  static constexpr int kGroups = 2;

  /// The matrices of a group, and the rows that become their eigenvectors unless they are null.
  struct Group {
    LaneMatrices a, vectors;
  };

  /// Returns how many numbers of memory are needed.
  static int64_t Doubles(int64_t size) { return (2 * kGroups + 2) * size * RealLanes(); }

  /// Requires: only symmetric matrices whose elements' squares neither overflow nor, for the largest one, underflow.
  /// `tolerance` is what counts as 0 next to the eigenvalues.
  SymmetricLanes(const Group (&groups)[kGroups], int64_t size, double tolerance, double* memory)
      : size_(size),
        tolerance_(tolerance),
        values_(memory),
        off_(values_ + kGroups * size * RealLanes()),
        taus_(off_ + kGroups * size * RealLanes()),
        w_(taus_ + size * RealLanes()) {
    std::copy(std::begin(groups), std::end(groups), groups_);
  }

  /// Overwrites the upper triangles of the matrices. Sets converged[] to the lanes that converged.
  void Decompose(RealMask (&converged)[kGroups]) const {
    for (int g = 0; g < kGroups; ++g) {
      Tridiagonalize(g);
      if (groups_[g].vectors.elements != nullptr) MultiplyReflections(groups_[g]);
    }
    Diagonalize(converged);
  }

  /// Returns eigenvalue k of a group. They are in any order.
  HWY_INLINE Reals Value(int64_t k, int g) const { return Get(values_, k, g); }

 private:
  static HWY_INLINE Reals Get(const double* line, int64_t i, int g) {
    return LoadReals(line + (i * kGroups + g) * RealLanes());
  }
  static HWY_INLINE void Set(double* line, int64_t i, int g, Reals x) {
    StoreReals(x, line + (i * kGroups + g) * RealLanes());
  }

  // Reads and changes the upper triangle. Row k receives the vector of reflection k after the diagonal.
  void Tridiagonalize(int g) const {
    const RealTag d;
    const LaneMatrices& a = groups_[g].a;
    const int64_t size = size_;
    const auto zero = hn::Zero(d), one = RealsOf(1);
    auto largest = zero;
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = i; j < size; ++j) largest = hn::Max(largest, hn::Abs(a.Get(i, j)));
    }
    const auto negligible = hn::Mul(hn::Mul(largest, largest), RealsOf(0x1p-200));
    const auto w_at = [&](int64_t i) HWY_ATTR { return LoadReals(w_ + i * RealLanes()); };
    for (int64_t k = 0; k + 1 < size; ++k) {
      auto sum = zero;
      for (int64_t j = k + 2; j < size; ++j) sum = hn::MulAdd(a.Get(k, j), a.Get(k, j), sum);
      const auto none = hn::Le(sum, negligible);
      const auto first = WithoutSignOfZero(a.Get(k, k + 1));
      const auto beta = hn::Neg(hn::CopySign(hn::Sqrt(hn::MulAdd(first, first, sum)), first));
      const auto factor = hn::IfThenZeroElse(none, hn::Div(one, hn::Sub(first, beta)));
      const auto tau = hn::IfThenZeroElse(none, hn::Div(hn::Sub(beta, first), beta));
      StoreReals(tau, taus_ + k * RealLanes());
      Set(off_, k, g, hn::IfThenElse(none, first, beta));
      a.Set(k, k + 1, one);
      for (int64_t j = k + 2; j < size; ++j) a.Set(k, j, hn::Mul(a.Get(k, j), factor));
      if (hn::AllTrue(d, none)) continue;
      auto product = zero;
      for (int64_t i = k + 1; i < size; ++i) {
        auto s0 = zero, s1 = zero;
        for (int64_t j = k + 1; j < i; ++j) s0 = hn::MulAdd(a.Get(j, i), a.Get(k, j), s0);
        for (int64_t j = i; j < size; ++j) s1 = hn::MulAdd(a.Get(i, j), a.Get(k, j), s1);
        const auto w = hn::Mul(tau, hn::Add(s0, s1));
        product = hn::MulAdd(w, a.Get(k, i), product);
        StoreReals(w, w_ + i * RealLanes());
      }
      const auto share = hn::Mul(hn::Mul(tau, RealsOf(0.5)), product);
      for (int64_t i = k + 1; i < size; ++i) {
        StoreReals(hn::NegMulAdd(share, a.Get(k, i), w_at(i)), w_ + i * RealLanes());
      }
      for (int64_t i = k + 1; i < size; ++i) {
        const auto v = a.Get(k, i), w = w_at(i);
        for (int64_t j = i; j < size; ++j) {
          a.Set(i, j, hn::NegMulAdd(v, w_at(j), hn::NegMulAdd(w, a.Get(k, j), a.Get(i, j))));
        }
      }
    }
    for (int64_t i = 0; i < size; ++i) Set(values_, i, g, a.Get(i, i));
    Set(off_, size - 1, g, zero);
  }

  // Row i of the vectors becomes column i of the product of the reflections.
  void MultiplyReflections(const Group& group) const {
    const auto zero = hn::Zero(RealTag());
    const LaneMatrices &a = group.a, &vectors = group.vectors;
    for (int64_t i = 0; i < size_; ++i) {
      for (int64_t j = 0; j < size_; ++j) vectors.Set(i, j, i == j ? RealsOf(1) : zero);
      for (int64_t k = std::min(i, size_ - 1) - 1; k >= 0; --k) {
        auto dot = zero;
        for (int64_t j = k + 1; j < size_; ++j) dot = hn::MulAdd(a.Get(k, j), vectors.Get(i, j), dot);
        const auto factor = hn::Mul(dot, LoadReals(taus_ + k * RealLanes()));
        for (int64_t j = k + 1; j < size_; ++j) {
          vectors.Set(i, j, hn::NegMulAdd(factor, a.Get(k, j), vectors.Get(i, j)));
        }
      }
    }
  }

  /// A block of each lane, whose links to its neighbours are negligible, and a step's numbers.
  struct Blocks {
    Reals low, high, tiny, bulge, sine, cosine, removed, start;
    RealMask running;
  };

  // Finds the first block of more than one row of each lane of group g. Returns whether there is one, and sets
  // [*begin, *end] to the rows of all blocks.
  HWY_INLINE bool FindBlocks(int g, Blocks& blocks, int64_t* begin, int64_t* end) const {
    const RealTag d;
    const auto zero = hn::Zero(d), one = RealsOf(1);
    auto started = hn::Not(AllLanes()), ended = started;
    auto first = one, second = zero, corner = zero;
    blocks.low = blocks.high = blocks.start = zero;
    for (int64_t i = 0; i + 1 < size_; ++i) {
      const auto link = Get(off_, i, g), own = Get(values_, i, g), next = Get(values_, i + 1, g);
      const auto nearby = hn::Mul(RealsOf(tolerance_), hn::Add(hn::Abs(own), hn::Abs(next)));
      const auto counts = hn::Gt(hn::Abs(link), hn::Max(blocks.tiny, nearby));
      const auto starts = hn::AndNot(started, counts);
      blocks.low = hn::IfThenElse(starts, RealsOf(static_cast<double>(i)), blocks.low);
      blocks.start = hn::IfThenElse(starts, own, blocks.start);
      first = hn::IfThenElse(starts, link, first);
      second = hn::IfThenElse(starts, next, second);
      started = hn::Or(started, starts);
      const auto inside = hn::And(counts, hn::AndNot(ended, started));
      blocks.high = hn::IfThenElse(inside, RealsOf(static_cast<double>(i + 1)), blocks.high);
      corner = hn::IfThenElse(inside, next, corner);
      ended = hn::Or(ended, hn::AndNot(counts, started));
      Set(off_, i, g, hn::IfThenElseZero(started, link));
      if (hn::AllFalse(d, started)) continue;
      *begin = std::min(*begin, i);
      if (!hn::AllFalse(d, inside)) *end = std::max(*end, i + 1);
      if (hn::AllTrue(d, ended)) break;
    }
    // Wilkinson's shift.
    const auto g0 = hn::Div(WithoutSignOfZero(hn::Sub(second, blocks.start)), hn::Add(first, first));
    const auto root = hn::CopySign(hn::Sqrt(hn::MulAdd(g0, g0, one)), g0);
    blocks.bulge = hn::Add(hn::Sub(corner, blocks.start), hn::Div(first, hn::Add(g0, root)));
    blocks.sine = blocks.cosine = one;
    blocks.removed = zero;
    blocks.running = started;
    return !hn::AllFalse(d, started);
  }

  // linalg::DiagonalizeTridiagonal, in which each lane has its own block.
  void Diagonalize(RealMask (&converged)[kGroups]) const {
    const RealTag d;
    const auto zero = hn::Zero(d), one = RealsOf(1);
    const int64_t max_steps = 80 * size_;
    Blocks blocks[kGroups];
    for (int g = 0; g < kGroups; ++g) {
      auto largest = zero;
      for (int64_t i = 0; i < size_; ++i) {
        largest = hn::Max(largest, hn::Max(hn::Abs(Get(values_, i, g)), hn::Abs(Get(off_, i, g))));
      }
      blocks[g].tiny = hn::Mul(largest, RealsOf(tolerance_ / 256));
    }
    for (int64_t step = 0;; ++step) {
      int64_t begin = size_, end = 0;
      bool any = false;
      for (int g = 0; g < kGroups; ++g) any |= FindBlocks(g, blocks[g], &begin, &end);
      if (!any || step == max_steps) break;
      for (int64_t i = end; i-- > begin;) {
        const auto row = RealsOf(static_cast<double>(i)), after = RealsOf(static_cast<double>(i + 1));
        for (int g = 0; g < kGroups; ++g) {
          Blocks& block = blocks[g];
          const auto here = hn::And(block.running, hn::And(hn::Ge(block.high, after), hn::Le(block.low, row)));
          const auto link = Get(off_, i, g), f = hn::Mul(block.sine, link), b = hn::Mul(block.cosine, link);
          const auto r = hn::Sqrt(hn::MulAdd(f, f, hn::Mul(block.bulge, block.bulge)));
          const auto moved = hn::And(here, hn::Gt(r, zero));
          const auto shifted = hn::Sub(Get(values_, i + 1, g), hn::IfThenElseZero(here, block.removed));
          const auto inverse = hn::Div(one, r);
          const auto s = hn::Mul(f, inverse), c = hn::Mul(block.bulge, inverse);
          const auto own = Get(values_, i, g);
          const auto t = hn::MulAdd(hn::Sub(own, shifted), s, hn::Mul(hn::Add(c, c), b));
          const auto change = hn::IfThenElseZero(moved, hn::Mul(s, t));
          const auto below = hn::IfThenZeroElse(hn::Eq(block.high, after), r);
          Set(off_, i + 1, g, hn::IfThenElse(here, below, Get(off_, i + 1, g)));
          Set(values_, i + 1, g, hn::Add(shifted, change));
          block.sine = hn::IfThenElse(moved, s, block.sine);
          block.cosine = hn::IfThenElse(moved, c, block.cosine);
          block.removed = hn::IfThenElse(moved, change, block.removed);
          block.bulge = hn::IfThenElse(moved, hn::MulSub(c, t, b), block.bulge);
          // A step that stops, because the block falls apart, leaves the first row as it is.
          block.running = hn::And(block.running, hn::Or(moved, hn::Not(here)));
          const auto last = hn::And(moved, hn::Eq(block.low, row));
          Set(values_, i, g, hn::IfThenElse(last, hn::Sub(own, change), own));
          Set(off_, i, g, hn::IfThenElse(last, block.bulge, link));
          if (groups_[g].vectors.elements != nullptr) {
            RotateRows(groups_[g].vectors, i, hn::IfThenElse(moved, c, one), hn::IfThenElseZero(moved, s));
          }
        }
      }
    }
    for (int g = 0; g < kGroups; ++g) {
      auto links = zero;
      for (int64_t i = 0; i + 1 < size_; ++i) links = hn::Max(links, hn::Abs(Get(off_, i, g)));
      converged[g] = hn::Eq(links, zero);
    }
  }

  static HWY_INLINE void RotateRows(const LaneMatrices& vectors, int64_t i, Reals cosine, Reals sine) {
    double *const first = vectors.At(i, 0), *const second = vectors.At(i + 1, 0);
    const int64_t count = vectors.columns * RealLanes();
    for (int64_t e = 0; e < count; e += RealLanes()) {
      const auto x = LoadReals(first + e), y = LoadReals(second + e);
      StoreReals(hn::MulSub(cosine, x, hn::Mul(sine, y)), first + e);
      StoreReals(hn::MulAdd(sine, x, hn::Mul(cosine, y)), second + e);
    }
  }

  Group groups_[kGroups];
  int64_t size_;
  double tolerance_;
  double *values_, *off_, *taus_, *w_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
