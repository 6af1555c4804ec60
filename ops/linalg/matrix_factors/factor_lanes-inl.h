// SPDX-License-Identifier: Apache-2.0
// Factors small matrices in parallel, one in each lane of a vector. Compiled once per instruction set; include it from
// a kernel file.
#if defined(POLYOP_OPS_LINALG_MATRIX_FACTORS_FACTOR_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_MATRIX_FACTORS_FACTOR_LANES_INL_H_
#undef POLYOP_OPS_LINALG_MATRIX_FACTORS_FACTOR_LANES_INL_H_
#else
#define POLYOP_OPS_LINALG_MATRIX_FACTORS_FACTOR_LANES_INL_H_
#endif

#include <algorithm>

#include "ops/linalg/householder_lanes-inl.h"
#include "ops/linalg/lanes-inl.h"
#include "ops/linalg/matrix_factors/factor_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Computes column j of the factor. Returns the lanes whose pivot is positive, finite and not tiny. The results of the
// others are undefined.
HWY_INLINE RealMask FactorCholeskyStepInLanes(const LaneMatrices& a, int64_t j) {
  const int64_t n = a.rows;
  SumOfProducts{a.At(j, 0), a.At(j, 0), n, 1, 1, j}.SubtractFrom(a.At(j, j), n, n - j);
  const auto rest = a.Get(j, j);  // not positive if an element of the row is not finite
  // Neither the root nor the quotient waits for the other.
  const auto root = hn::Sqrt(rest), inverse = hn::Mul(root, hn::Div(RealsOf(1), rest));
  a.Set(j, j, root);
  for (int64_t i = j + 1; i < n; ++i) {
    a.Set(i, j, hn::Mul(a.Get(i, j), inverse));
    a.Set(j, i, hn::Zero(RealTag()));
  }
  return hn::And(hn::Gt(rest, RealsOf(0x1p-1000)), hn::Lt(rest, RealsOf(0x1p600)));
}

/// The factors of a matrix in each lane, except for those that MatricesToFactor::Factor treats in a special way. Info
/// is not written, nor are scales and pivots that do not depend on the matrices.
template <class T, class Size>
class FactorLanes {
 public:
  using Method = MatrixFactors::Method;

  /// The number of doubles that Read's `memory` must have space for.
  static int64_t Doubles(const MatricesToFactor<T>& matrices) {
    return LaneMatrices::Doubles(matrices.rows, matrices.columns) + 2 * matrices.smaller() * RealLanes();
  }

  /// Requires: without a constant, `memory` is that of all groups. QR has no constant.
  HWY_INLINE void Read(const MatricesToFactor<T>& matrices, int64_t first, int64_t count, double* memory) {
    matrices_ = &matrices;
    method_ = matrices.method;
    first_ = first;
    a_ = {memory, SizeOr<Size>(matrices.rows), SizeOr<Size>(matrices.columns)};
    least_ = std::min(a_.rows, a_.columns);
    scales_ = {a_.At(a_.rows, 0), 1, least_};
    pivots_ = {scales_.At(1, 0), 1, least_};
    const int64_t area = a_.rows * a_.columns;
    const T* const from = matrices.from + first * area;
    fetch_ = PrefetchInSteps<T>(area, from + count * area, std::min(count, matrices.count - first - count),
                                matrices.factors + first * area, count);
    if (method_ == Method::kCholesky) {
      a_.ReadLowerTriangle(from, count);
      regular_ = AllLanes();
    } else {
      a_.Read(from, count);
      regular_ = a_.Moderate();
    }
  }

  HWY_INLINE int64_t Steps() const { return !kIsConstant<Size> && method_ == Method::kQr ? 1 : least_; }

  HWY_INLINE void Step(int64_t k) {
    fetch_(k, Steps());
    if (method_ == Method::kCholesky) {
      regular_ = hn::And(regular_, FactorCholeskyStepInLanes(a_, k));
    } else if (kIsConstant<Size> || method_ == Method::kLu) {
      regular_ = hn::And(regular_, FactorLuStepInLanes(a_, k, pivots_.At(0, k)));
    } else {
      regular_ = hn::And(regular_, FactorQrInLanes(a_, scales_.elements));
    }
  }

  /// Returns the lanes that have factors.
  HWY_INLINE RealMask Write(int64_t count) const {
    a_.Write(count, matrices_->factors + first_ * a_.rows * a_.columns);
    if (method_ == Method::kLu) {
      for (int64_t k = 0; k < least_; ++k) {
        const auto row = pivots_.Get(0, k), u = a_.Get(k, k);
        scales_.Set(0, k, hn::IfThenElse(hn::Eq(row, RealsOf(static_cast<double>(k))), u, hn::Neg(u)));
        pivots_.Set(0, k, hn::Add(row, RealsOf(1)));
      }
      pivots_.Write(count, matrices_->pivots + first_ * least_);
    }
    if (method_ != Method::kCholesky) scales_.Write(count, matrices_->scales + first_ * least_);
    return regular_;
  }

 private:
  const MatricesToFactor<T>* matrices_;
  Method method_;
  int64_t first_, least_;
  LaneMatrices a_, scales_, pivots_;
  PrefetchInSteps<T> fetch_;
  RealMask regular_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
