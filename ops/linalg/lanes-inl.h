// SPDX-License-Identifier: Apache-2.0
// Small matrices in parallel, one in each lane of a vector of doubles. Compiled once per instruction set; include it
// from a kernel file.
#if defined(POLYOP_OPS_LINALG_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_LANES_INL_H_
#undef POLYOP_OPS_LINALG_LANES_INL_H_
#else
#define POLYOP_OPS_LINALG_LANES_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "hwy/cache_control.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/transpose_square-inl.h"
#include "ops/linalg/elimination.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using RealTag = hn::ScalableTag<double>;
using Reals = hn::Vec<RealTag>;
using RealMask = hn::Mask<RealTag>;

/// The rows of larger matrices fill vectors, so that these are computed one at a time.
constexpr int64_t kMaxSizeInLanes = 16;

/// Matrices of so few rows stay in registers if the compiler knows their sizes: see WithConstantSize.
constexpr int64_t kMaxConstantSize = 4;

/// A size that only the program's run knows, in place of std::integral_constant<int64_t, size>.
struct AnySize {};
template <class Size>
constexpr bool kIsConstant = !std::is_same_v<Size, AnySize>;

/// Returns the constant, or `size` if there is none.
template <class Size>
HWY_INLINE constexpr int64_t SizeOr(int64_t size) {
  if constexpr (kIsConstant<Size>) {
    return Size::value;
  } else {
    return size;
  }
}

/// Calls function(Size()), with a constant if the size is from 2 to kMaxConstantSize.
template <class Function>
auto WithConstantSize(int64_t size, const Function& function) {
  switch (size) {
    case 2: return function(std::integral_constant<int64_t, 2>());
    case 3: return function(std::integral_constant<int64_t, 3>());
    case 4: return function(std::integral_constant<int64_t, 4>());
    default: return function(AnySize());
  }
}

HWY_INLINE int64_t RealLanes() { return static_cast<int64_t>(hn::Lanes(RealTag())); }
HWY_INLINE Reals LoadReals(const double* from) { return hn::LoadU(RealTag(), from); }
HWY_INLINE void StoreReals(Reals v, double* to) { hn::StoreU(v, RealTag(), to); }
HWY_INLINE Reals RealsOf(double x) { return hn::Set(RealTag(), x); }
/// Returns +0 for -0. The sign of a zero may depend on the other lanes: steps that change only some of the lanes
/// multiply the elements of the others by 0 and add the products.
HWY_INLINE Reals WithoutSignOfZero(Reals x) { return hn::Add(x, hn::Zero(RealTag())); }
HWY_INLINE RealMask AllLanes() { return hn::Eq(hn::Zero(RealTag()), hn::Zero(RealTag())); }
/// Writes 1 for the lanes of the mask, and 0 for the others.
HWY_INLINE void StoreLanes(RealMask mask, double* to) { StoreReals(hn::IfThenElseZero(mask, RealsOf(1)), to); }

HWY_INLINE Reals LoadAsReals(const double* from) { return LoadReals(from); }
HWY_INLINE Reals LoadAsReals(const float* from) {
  return hn::PromoteTo(RealTag(), hn::LoadU(hn::Rebind<float, RealTag>(), from));
}
/// Loads the first `count` elements; the other lanes are 0.
template <class T>
HWY_INLINE Reals LoadSomeAsReals(const T* from, int64_t count) {
  const hn::Rebind<T, RealTag> d;
  const auto v = hn::LoadN(d, from, static_cast<size_t>(count));
  if constexpr (std::is_same_v<T, double>) {
    return v;
  } else {
    return hn::PromoteTo(RealTag(), v);
  }
}
/// Converts to double, float or int32_t.
template <class T>
HWY_INLINE auto RealsAs(Reals v) {
  if constexpr (std::is_same_v<T, double>) {
    return v;
  } else {
    return hn::DemoteTo(hn::Rebind<T, RealTag>(), v);
  }
}

/// Fetches matrices into the cache during a computation, in equal parts: the memory then works all the time. The
/// processor itself fetches small ones soon enough.
template <class T>
class PrefetchInSteps {
 public:
  PrefetchInSteps() = default;
  /// `read` and `written` are the first elements of `read_count` and `written_count` matrices of `area` elements.
  PrefetchInSteps(int64_t area, const T* read, int64_t read_count, const T* written = nullptr,
                  int64_t written_count = 0)
      : read_(read),
        written_(written),
        read_size_(area < kMinArea ? 0 : area * read_count),
        written_size_(area < kMinArea ? 0 : area * written_count) {}

  /// To be called at the beginning of each step of the computation, from 0 on.
  HWY_INLINE void operator()(int64_t step, int64_t steps) const {
    if (read_size_ + written_size_ == 0) return;
    FetchRange(read_, read_size_ * step / steps, read_size_ * (step + 1) / steps);
    FetchRange(written_, written_size_ * step / steps, written_size_ * (step + 1) / steps);
  }

 private:
  static constexpr int64_t kMinArea = 64;

  static HWY_INLINE void FetchRange(const T* from, int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; e += 64 / int64_t{sizeof(T)}) hwy::Prefetch(from + e);
  }

  const T *read_ = nullptr, *written_ = nullptr;
  int64_t read_size_ = 0, written_size_ = 0;
};

/// In place of PrefetchInSteps: nothing to fetch.
struct NoPrefetch {
  HWY_INLINE void operator()(int64_t, int64_t) const {}
};

/// Smaller triangles are read faster with the rest of the matrix.
constexpr int64_t kMinRowsOfTriangle = 8;

/// As many matrices as a vector has lanes. Does not own the memory of Doubles() numbers.
struct LaneMatrices {
  double* elements;
  int64_t rows, columns;

  static int64_t Doubles(int64_t rows, int64_t columns) { return rows * columns * RealLanes(); }
  double* At(int64_t i, int64_t j) const { return elements + (i * columns + j) * RealLanes(); }
  HWY_INLINE Reals Get(int64_t i, int64_t j) const { return LoadReals(At(i, j)); }
  HWY_INLINE void Set(int64_t i, int64_t j, Reals v) const { StoreReals(v, At(i, j)); }

  /// Reads `count` matrices that are stored one after the other. The last one also fills the lanes without a matrix.
  template <class T>
  HWY_INLINE void Read(const T* from, int64_t count) const {
    ReadElements(from, count, 0, rows * columns);
  }

  /// Read, except for the elements after those of the diagonal, which may keep their values.
  template <class T>
  HWY_INLINE void ReadLowerTriangle(const T* from, int64_t count) const {
    if (rows < kMinRowsOfTriangle) return Read(from, count);
    for (int64_t i = 0; i < rows; ++i) ReadElements(from, count, i * columns, i * (columns + 1) + 1);
  }

  /// Read, except for the elements before those of the diagonal, which may keep their values.
  template <class T>
  HWY_INLINE void ReadUpperTriangle(const T* from, int64_t count) const {
    if (rows < kMinRowsOfTriangle) return Read(from, count);
    for (int64_t i = 0; i < rows; ++i) ReadElements(from, count, i * (columns + 1), (i + 1) * columns);
  }

  /// Returns the lanes whose elements are finite and so small that products do not overflow.
  HWY_INLINE RealMask Moderate() const {
    auto moderate = AllLanes();
    for (int64_t e = 0; e < rows * columns; ++e) {
      moderate = hn::And(moderate, hn::Lt(hn::Abs(LoadReals(elements + e * RealLanes())), RealsOf(0x1p300)));
    }
    return moderate;
  }

  /// Writes the matrices of the first `count` lanes one after the other and by rows.
  template <class T>
  HWY_INLINE void Write(int64_t count, T* to) const {
    constexpr int kLanes = static_cast<int>(hn::MaxLanes(RealTag()));
    const hn::Rebind<T, RealTag> d;
    const int64_t area = rows * columns, lanes = RealLanes();
    if (area == 1) {
      if (count > 0) hn::StoreN(RealsAs<T>(Get(0, 0)), d, to, static_cast<size_t>(std::min(count, lanes)));
      return;
    }
    for (int64_t e = 0; e < area && area >= kLanes; e += kLanes) {
      const int64_t begin = std::min(e, area - kLanes);
      Reals square[kLanes];
      for (int m = 0; m < kLanes; ++m) square[m] = LoadReals(elements + (begin + m) * lanes);
      TransposeSquare(RealTag(), square);
      for (int m = 0; m < kLanes; ++m) {
        if (m < count) hn::StoreU(RealsAs<T>(square[m]), d, to + m * area + begin);
      }
    }
    if (area >= kLanes) return;
    Reals square[kLanes];
    for (int m = 0; m < kLanes; ++m) square[m] = LoadReals(elements + std::min<int64_t>(m, area - 1) * lanes);
    TransposeSquare(RealTag(), square);
    for (int m = 0; m < kLanes; ++m) {
      // A vector ends in the next matrices, which are written later.
      const int64_t rest = (count - m) * area;
      if (rest >= kLanes) {
        hn::StoreU(RealsAs<T>(square[m]), d, to + m * area);
      } else if (rest > 0) {
        hn::StoreN(RealsAs<T>(square[m]), d, to + m * area, static_cast<size_t>(rest));
      }
    }
  }

  /// Reads the elements [begin, end) of each matrix, and maybe some more.
  template <class T>
  HWY_INLINE void ReadElements(const T* from, int64_t count, int64_t begin, int64_t end) const {
    constexpr int kLanes = static_cast<int>(hn::MaxLanes(RealTag()));
    const int64_t area = rows * columns, lanes = RealLanes();
    const T* matrices[kLanes];
    for (int m = 0; m < kLanes; ++m) matrices[m] = from + std::min<int64_t>(m, count - 1) * area;
    for (int64_t e = begin; e < end && area >= kLanes; e += kLanes) {
      const int64_t first = std::min(e, area - kLanes);
      Reals square[kLanes];
      for (int m = 0; m < kLanes; ++m) square[m] = LoadAsReals(matrices[m] + first);
      TransposeSquare(RealTag(), square);
      for (int m = 0; m < kLanes; ++m) StoreReals(square[m], elements + (first + m) * lanes);
    }
    if (area >= kLanes) return;
    Reals square[kLanes];
    for (int m = 0; m < kLanes; ++m) square[m] = LoadSomeAsReals(matrices[m], area);
    TransposeSquare(RealTag(), square);
    for (int m = 0; m < kLanes; ++m) {
      if (m < area) StoreReals(square[m], elements + m * lanes);
    }
  }

  /// Exchanges row k with another one in each lane: the one whose number, from 0, is in `other`. Numbers of no row
  /// exchange nothing. Requires: all others are at least `first`.
  HWY_INLINE void ExchangeRow(int64_t k, Reals other, int64_t first = 0) const {
    if (rows <= kMaxConstantSize) {  // without jumps
      for (int64_t i = first; i < rows; ++i) {
        if (i == k) continue;
        const auto mask = hn::Eq(other, RealsOf(static_cast<double>(i)));
        for (int64_t j = 0; j < columns; ++j) {
          const auto x = Get(k, j), y = Get(i, j);
          Set(k, j, hn::IfThenElse(mask, y, x));
          Set(i, j, hn::IfThenElse(mask, x, y));
        }
      }
      return;
    }
    double* candidates[kMaxSizeInLanes];
    RealMask where[kMaxSizeInLanes];
    int count = 0;
    if (hn::AllTrue(RealTag(), hn::Eq(other, RealsOf(static_cast<double>(k))))) return;
    for (int64_t i = first; i < rows; ++i) {
      const auto mask = hn::Eq(other, RealsOf(static_cast<double>(i)));
      if (i == k || hn::AllFalse(RealTag(), mask)) continue;
      candidates[count] = At(i, 0);
      where[count++] = mask;
    }
    double* const row = At(k, 0);
    for (int64_t e = 0; e < columns * RealLanes() && count > 0; e += RealLanes()) {
      const auto own = LoadReals(row + e);
      auto result = own;
      for (int c = 0; c < count; ++c) {
        const auto value = LoadReals(candidates[c] + e);
        result = hn::IfThenElse(where[c], value, result);
        StoreReals(hn::IfThenElse(where[c], own, value), candidates[c] + e);
      }
      StoreReals(result, row + e);
    }
  }
};

inline void SetToUnit(const LaneMatrices& a) {
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) a.Set(i, j, RealsOf(i == j ? 1 : 0));
  }
}

/// Returns the lanes in which all elements are finite, and the squares of the largest neither overflow nor underflow.
/// The elements of the others become 0.
inline RealMask MakeUsual(const LaneMatrices& a) {
  const RealTag d;
  auto largest = hn::Zero(d);
  auto usual = AllLanes();
  for (int64_t e = 0; e < a.rows * a.columns; ++e) {
    const auto magnitude = hn::Abs(LoadReals(a.elements + e * RealLanes()));
    usual = hn::And(usual, hn::Lt(magnitude, RealsOf(0x1p300)));
    largest = hn::Max(largest, magnitude);
  }
  usual = hn::And(usual, hn::Or(hn::Gt(largest, RealsOf(0x1p-300)), hn::Eq(largest, hn::Zero(d))));
  for (int64_t e = 0; e < a.rows * a.columns; ++e) {
    double* const at = a.elements + e * RealLanes();
    StoreReals(hn::IfThenElseZero(usual, LoadReals(at)), at);
  }
  return usual;
}

/// Sorts `count` values of each lane in ascending order. Unless it is null, `order` receives their old positions.
inline void SortInLanes(double* values, int64_t count, double* order) {
  const int64_t lanes = RealLanes();
  for (int64_t i = 0; i < count; ++i) {
    if (order != nullptr) StoreReals(RealsOf(static_cast<double>(i)), order + i * lanes);
    for (int64_t j = (i - 1) * lanes; j >= 0; j -= lanes) {
      const auto x = LoadReals(values + j), y = LoadReals(values + j + lanes);
      StoreReals(hn::Min(x, y), values + j);
      StoreReals(hn::Max(x, y), values + j + lanes);
      if (order == nullptr) continue;
      const auto exchanged = hn::Lt(y, x);
      const auto of_x = LoadReals(order + j), of_y = LoadReals(order + j + lanes);
      StoreReals(hn::IfThenElse(exchanged, of_y, of_x), order + j);
      StoreReals(hn::IfThenElse(exchanged, of_x, of_y), order + j + lanes);
    }
  }
}

/// linalg::SignOf of row i in lanes.
inline Reals SignOfRow(const LaneMatrices& a, int64_t i) {
  auto largest = hn::Zero(RealTag()), found = largest;
  for (int64_t j = 0; j < a.columns; ++j) largest = hn::Max(largest, hn::Abs(a.Get(i, j)));
  const auto limit = hn::Mul(largest, RealsOf(0.999));
  for (int64_t j = a.columns; j-- > 0;) {
    const auto x = a.Get(i, j);
    found = hn::IfThenElse(hn::Ge(hn::Abs(x), limit), x, found);
  }
  return hn::CopySign(RealsOf(1), found);
}

inline void ScaleRow(const LaneMatrices& a, int64_t i, Reals factor) {
  for (int64_t j = 0; j < a.columns; ++j) a.Set(i, j, hn::Mul(a.Get(i, j), factor));
}

/// Stores the rows of one lane in the order of SortInLanes, or in reverse, as rows or columns of a matrix.
template <class T>
void StoreRowsInOrder(const LaneMatrices& a, int64_t lane, const double* order, bool reverse, bool as_columns, T* to) {
  const int64_t lanes = RealLanes();
  const double* rows[kMaxSizeInLanes];
  for (int64_t k = 0; k < a.rows; ++k) {
    rows[k] = a.At(static_cast<int64_t>(order[(reverse ? a.rows - 1 - k : k) * lanes + lane]), 0) + lane;
  }
  for (int64_t i = 0; i < a.columns; ++i) {
    for (int64_t k = 0; k < a.rows; ++k) {
      // Without the sign of a zero.
      to[as_columns ? i * a.rows + k : k * a.columns + i] = static_cast<T>(rows[k][i * lanes] + 0.0);
    }
  }
}

/// Subtracts a sum of `count` products from each of `results` elements: term p of element r is left[r, p] * right[p].
/// The elements, and those of left and right, are steps of vectors apart.
struct SumOfProducts {
  const double *left, *right;
  int64_t left_step, left_inner, right_step, count;

  HWY_INLINE void SubtractFrom(double* to, int64_t step, int64_t results) const {
    int64_t r = 0;
    for (; r + 4 <= results; r += 4) Subtract<4>(to, step, r);
    for (; r < results; ++r) Subtract<1>(to, step, r);
  }

 private:
  template <int kCount>
  HWY_INLINE void Subtract(double* to, int64_t step, int64_t first) const {
    const int64_t lanes = RealLanes();
    to += first * step * lanes;
    const double* a = left + first * left_step * lanes;
    const double* b = right;
    Reals sums[kCount];
    for (int r = 0; r < kCount; ++r) sums[r] = LoadReals(to + r * step * lanes);
    for (int64_t p = 0; p < count; ++p, a += left_inner * lanes, b += right_step * lanes) {
      const auto factor = LoadReals(b);
      for (int r = 0; r < kCount; ++r) {
        sums[r] = hn::NegMulAdd(LoadReals(a + r * left_step * lanes), factor, sums[r]);
      }
    }
    for (int r = 0; r < kCount; ++r) StoreReals(sums[r], to + r * step * lanes);
  }
};

/// Divides column k of kCount rows from `first` on by the pivot, and subtracts multiples of row k from the rest of
/// them.
template <int kCount>
HWY_INLINE void EliminateInLanes(const LaneMatrices& a, int64_t k, int64_t first, Reals pivot) {
  Reals factors[kCount];
  for (int r = 0; r < kCount; ++r) {
    factors[r] = hn::Div(a.Get(first + r, k), pivot);
    a.Set(first + r, k, factors[r]);
  }
  for (int64_t j = k + 1; j < a.columns; ++j) {
    const auto u = a.Get(k, j);
    for (int r = 0; r < kCount; ++r) a.Set(first + r, j, hn::Sub(a.Get(first + r, j), hn::Mul(factors[r], u)));
  }
}

/// The element with the largest magnitude of a column, in each lane: its row, from 0, and the magnitude.
struct PivotInLanes {
  Reals row, magnitude;
};

/// Finds the pivot of column k in the rows from k on.
HWY_INLINE PivotInLanes FindPivotInLanes(const LaneMatrices& a, int64_t k) {
  auto best = RealsOf(static_cast<double>(k)), largest = hn::Abs(a.Get(k, k)), row = best;
  for (int64_t i = k + 1; i < a.rows; ++i) {
    const auto magnitude = hn::Abs(a.Get(i, k));
    const auto larger = hn::Gt(magnitude, largest);
    row = hn::Add(row, RealsOf(1));
    largest = hn::IfThenElse(larger, magnitude, largest);
    best = hn::IfThenElse(larger, row, best);
  }
  return {best, largest};
}

/// Step k of FactorLu in lanes, with the same operations. The number of the pivot's row, from 0, is stored in `pivot`.
/// Returns the lanes whose pivot is neither 0 nor tiny; the results of the others are undefined.
HWY_INLINE RealMask FactorLuStepInLanes(const LaneMatrices& a, int64_t k, double* pivot) {
  const PivotInLanes found = FindPivotInLanes(a, k);
  StoreReals(found.row, pivot);
  a.ExchangeRow(k, found.row, k + 1);
  const auto divisor = a.Get(k, k);
  int64_t i = k + 1;
  for (; i + 4 <= a.rows; i += 4) EliminateInLanes<4>(a, k, i, divisor);
  for (; i < a.rows; ++i) EliminateInLanes<1>(a, k, i, divisor);
  return hn::Gt(found.magnitude, RealsOf(0x1p-1000));
}

/// Exchanges rows of `b` as FactorLuStepInLanes did, or in reverse.
HWY_INLINE void ExchangeRowsInLanes(const double* pivots, int64_t count, bool reverse, const LaneMatrices& b) {
  HWY_UNROLL(4)
  for (int64_t n = 0; n < count; ++n) {
    const int64_t k = reverse ? count - 1 - n : n;
    b.ExchangeRow(k, LoadReals(pivots + k * RealLanes()));
  }
}

/// linalg::TriangularSolve in lanes.
template <class Fetch = NoPrefetch>
HWY_INLINE void TriangularSolveInLanes(const linalg::Triangle& t, const LaneMatrices& a, const LaneMatrices& b,
                                       const Fetch& fetch = {}) {
  constexpr int64_t kBlock = 4;  // rows from which the solved ones are subtracted together
  const bool forward = t.upper == t.transpose;
  const int64_t row_step = t.transpose ? 1 : a.columns, column_step = t.transpose ? a.columns : 1;
  const auto at = [&](int64_t i, int64_t k) { return t.transpose ? a.At(k, i) : a.At(i, k); };
  for (int64_t solved = 0; solved < a.rows; solved += kBlock) {
    fetch(solved / kBlock, (a.rows + kBlock - 1) / kBlock);
    const int64_t count = std::min(kBlock, a.rows - solved);
    const int64_t first = forward ? solved : a.rows - solved - count, from = forward ? 0 : first + count;
    for (int64_t c = 0; c < b.columns && solved > 0; ++c) {
      SumOfProducts{at(first, from), b.At(from, c), row_step, column_step, b.columns, solved}.SubtractFrom(
          b.At(first, c), b.columns, count);
    }
    for (int64_t n = 0; n < count; ++n) {
      const int64_t k = forward ? first + n : first + count - 1 - n;
      if (!t.unit) {
        const auto diagonal = a.Get(k, k);
        for (int64_t c = 0; c < b.columns; ++c) b.Set(k, c, hn::Div(b.Get(k, c), diagonal));
      }
      for (int64_t m = n + 1; m < count; ++m) {
        const int64_t i = forward ? first + m : first + count - 1 - m;
        const auto factor = LoadReals(at(i, k));
        for (int64_t c = 0; c < b.columns; ++c) b.Set(i, c, hn::NegMulAdd(factor, b.Get(k, c), b.Get(i, c)));
      }
    }
  }
}

/// The number of groups that ComputeInterleaved computes together.
template <class Size>
constexpr int kInterleavedGroups = kIsConstant<Size> ? 2 : 1;

/// Computes `count` matrices. A Group has one matrix in each lane: Read(problem, first, count, memory) reads it,
/// Step(k) is called for k from 0 to Steps(), and Write(count) returns the lanes with results, whose done[] becomes 1.
/// Groups of a constant size are in registers, and their steps are interleaved: that of one does not wait for results
/// of the other.
template <class Group, class Size, class Problem>
HWY_INLINE void ComputeInterleaved(const Problem& problem, int64_t first, int64_t count, double* memory, double* done) {
  constexpr int kGroups = kInterleavedGroups<Size>;
  constexpr int64_t kDoubles = kIsConstant<Size> ? kMaxConstantSize * (kMaxConstantSize + 3) : 1;
  HWY_ALIGN double own_memory[kGroups][kDoubles * hn::MaxLanes(RealTag())];
  const int64_t lanes = RealLanes();
  Group groups[kGroups];
  HWY_UNROLL(2)
  for (int g = 0; g < kGroups; ++g) {
    const int64_t start = std::min(g * lanes, count - 1);  // a group without matrices repeats the last one
    groups[g].Read(problem, first + start, std::min(lanes, count - start), kIsConstant<Size> ? own_memory[g] : memory);
  }
  const int64_t steps = groups[0].Steps();
  HWY_UNROLL(4)
  for (int64_t k = 0; k < steps; ++k) {
    HWY_UNROLL(2)
    for (int g = 0; g < kGroups; ++g) groups[g].Step(k);
  }
  HWY_UNROLL(2)
  for (int g = 0; g < kGroups; ++g) {
    StoreLanes(groups[g].Write(count - g * lanes), done + g * lanes);
  }
}

/// Calls group(first, count, memory, done) for each group of at most kVectors * RealLanes() matrices. It sets
/// done[lane] to 1 for the matrices that it computed, and to 0 for those that single(n, memory) computes. `memory` has
/// `doubles` numbers. Returns false if there is no memory.
template <int kVectors = 1, class Group, class Single>
bool ForLaneGroups(const Context& context, int64_t count, double nanoseconds, int64_t doubles, const Group& group,
                   const Single& single) {
  const int64_t lanes = kVectors * RealLanes(), groups = (count + lanes - 1) / lanes;
  const int64_t grain = GrainFor(nanoseconds * static_cast<double>(lanes));
  return context.ParallelForWithScratch<double>(
      groups, grain, doubles, [&](double* memory, int64_t begin, int64_t end) HWY_ATTR {
        HWY_ALIGN double done[kVectors * hn::MaxLanes(RealTag())] = {};
        for (int64_t first = begin * lanes; first < std::min(end * lanes, count); first += lanes) {
          const int64_t here = std::min(lanes, count - first);
          group(first, here, memory, done);
          auto all_done = AllLanes();
          for (int v = 0; v < kVectors; ++v) {
            all_done = hn::And(all_done, hn::Ne(LoadReals(done + v * RealLanes()), hn::Zero(RealTag())));
          }
          if (hn::AllTrue(RealTag(), all_done)) continue;
          for (int64_t m = 0; m < here; ++m) {
            if (done[m] == 0) single(first + m, memory);
          }
        }
      });
}

/// Decomposes each matrix n by matrices.Decompose(n, memory). Returns false if there is no memory.
template <class Matrices>
bool DecomposeEach(const Context& context, const Matrices& matrices) {
  const int64_t size = matrices.WorkSize(), grain = GrainFor(matrices.Operations() + 50);
  return context.ParallelForWithScratch<double>(matrices.count, grain, size,
                                                [&](double* work, int64_t begin, int64_t end) {
                                                  for (int64_t n = begin; n < end; ++n) matrices.Decompose(n, work);
                                                });
}

/// DecomposeEach, or by groups of lanes first if `in_groups`: see ForLaneGroups about `group` and its `doubles`.
template <int kVectors, class Matrices, class Group>
bool DecomposeAll(const Context& context, const Matrices& matrices, bool in_groups, int64_t doubles,
                  const Group& group) {
  if (!in_groups) return DecomposeEach(context, matrices);
  const auto single = [&](int64_t n, double* memory) { matrices.Decompose(n, memory); };
  return ForLaneGroups<kVectors>(context, matrices.count, (matrices.Operations() + 50) / 2,
                                 std::max(doubles, matrices.WorkSize()), group, single);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
