// SPDX-License-Identifier: Apache-2.0
// Solves small systems of equations in parallel, one in each lane of a vector. Compiled once per instruction set;
// include it from a kernel file.
#if defined(POLYOP_OPS_LINALG_MATRIX_SOLVE_SOLVE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_MATRIX_SOLVE_SOLVE_LANES_INL_H_
#undef POLYOP_OPS_LINALG_MATRIX_SOLVE_SOLVE_LANES_INL_H_
#else
#define POLYOP_OPS_LINALG_MATRIX_SOLVE_SOLVE_LANES_INL_H_
#endif

#include <algorithm>

#include "ops/linalg/lanes-inl.h"
#include "ops/linalg/matrix_solve/solve_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// The solution of a system of equations in each lane, except for those whose matrix is singular. Constant sizes have
/// one right side.
template <class T, class Size>
class SolveLanes {
 public:
  using Method = MatrixSolve::Method;

  /// The number of doubles that Read's `memory` must have space for.
  static int64_t Doubles(const EquationsToSolve<T>& equations) {
    return LaneMatrices::Doubles(equations.size, equations.size + equations.columns + 1);
  }

  HWY_INLINE void Read(const EquationsToSolve<T>& equations, int64_t first, int64_t count, double* memory) {
    const int64_t size = SizeOr<Size>(equations.size), columns = kIsConstant<Size> ? 1 : equations.columns;
    equations_ = &equations;
    method_ = equations.method;
    first_ = first;
    a_ = {memory, size, size};
    b_ = {a_.At(size, 0), size, columns};
    pivots_ = b_.At(size, 0);
    const int64_t area = size * size;
    const T* const from = equations.from + first * area;
    fetch_ = PrefetchInSteps<T>(area, from + count * area, std::min(count, equations.count - first - count));
    if (method_ == Method::kLower || method_ == Method::kCholesky) {
      a_.ReadLowerTriangle(from, count);
    } else if (method_ == Method::kUpper) {
      a_.ReadUpperTriangle(from, count);
    } else {
      a_.Read(from, count);
    }
    b_.Read(equations.right + first * size * columns, count);
    regular_ = AllLanes();
    if (method_ == Method::kLu) {
      fetch_(0, 1);
      ReadPivots(count);
    }
  }

  HWY_INLINE int64_t Steps() const { return kIsConstant<Size> || method_ == Method::kGeneral ? a_.rows : 0; }

  HWY_INLINE void Step(int64_t k) {
    if (method_ != Method::kGeneral) return;
    fetch_(k, a_.rows);
    double* const pivot = pivots_ + k * RealLanes();
    regular_ = hn::And(regular_, FactorLuStepInLanes(a_, k, pivot));
    if (!equations_->transpose) b_.ExchangeRow(k, LoadReals(pivot), k + 1);
  }

  /// Returns the lanes with solutions.
  HWY_INLINE RealMask Write(int64_t count) const {
    const bool upper = method_ == Method::kUpper, transpose = equations_->transpose;
    if (upper || method_ == Method::kLower) {
      TriangularSolveInLanes({upper, equations_->unit, transpose}, a_, b_, fetch_);
    } else if (method_ == Method::kCholesky) {
      TriangularSolveInLanes({false, false, false}, a_, b_, fetch_);
      TriangularSolveInLanes({false, false, true}, a_, b_);
    } else if (transpose) {
      TriangularSolveInLanes({true, false, true}, a_, b_);
      TriangularSolveInLanes({false, true, true}, a_, b_);
      ExchangeRowsInLanes(pivots_, method_ == Method::kLu ? equations_->pivot_count : a_.rows, true, b_);
    } else {
      if (method_ == Method::kLu) ExchangeRowsInLanes(pivots_, equations_->pivot_count, false, b_);
      TriangularSolveInLanes({false, true, false}, a_, b_);
      TriangularSolveInLanes({true, false, false}, a_, b_);
    }
    b_.Write(count, equations_->to + first_ * b_.rows * b_.columns);
    return regular_;
  }

 private:
  HWY_INLINE void ReadPivots(int64_t count) const {
    const int64_t exchanges = equations_->pivot_count, lanes = RealLanes();
    for (int64_t e = 0; e < exchanges * lanes; ++e) {
      const int64_t n = first_ + std::min(e % lanes, count - 1);
      pivots_[e] = static_cast<double>(equations_->pivots[n * exchanges + e / lanes]) - 1;
    }
  }

  const EquationsToSolve<T>* equations_;
  Method method_;
  int64_t first_;
  LaneMatrices a_, b_;
  double* pivots_;
  PrefetchInSteps<T> fetch_;
  RealMask regular_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
