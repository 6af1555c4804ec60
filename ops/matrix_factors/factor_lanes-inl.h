// Factors small matrices in parallel, one in each lane of a vector. Compiled once per instruction set; include it from
// a kernel file.
#if defined(POLYOP_OPS_MATRIX_FACTORS_FACTOR_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_MATRIX_FACTORS_FACTOR_LANES_INL_H_
#undef POLYOP_OPS_MATRIX_FACTORS_FACTOR_LANES_INL_H_
#else
#define POLYOP_OPS_MATRIX_FACTORS_FACTOR_LANES_INL_H_
#endif

#include <algorithm>

#include "families/linalg/lanes-inl.h"
#include "ops/matrix_factors/factor_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Returns the lanes whose leading minors are all positive. The results of the others are undefined.
inline RealMask FactorCholeskyInLanes(const LaneMatrices& a, double* inverses) {
  auto regular = AllLanes();
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = i + 1; j < a.rows; ++j) a.Set(i, j, hn::Zero(RealTag()));
  }
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      auto sum = a.Get(i, j);
      for (int64_t k = 0; k < j; ++k) sum = hn::NegMulAdd(a.Get(i, k), a.Get(j, k), sum);
      if (j < i) {
        a.Set(i, j, hn::Mul(sum, LoadReals(inverses + j * RealLanes())));
        continue;
      }
      regular = hn::And(regular, hn::Gt(sum, hn::Zero(RealTag())));
      const auto root = hn::Sqrt(sum);
      a.Set(i, i, root);
      StoreReals(hn::Div(RealsOf(1), root), inverses + i * RealLanes());
    }
  }
  return regular;
}

// Returns the lanes whose columns have lengths that neither overflow nor underflow. The results of the others are
// undefined.
inline RealMask FactorQrInLanes(const LaneMatrices& a, double* taus) {
  const RealTag d;
  auto regular = AllLanes();
  for (int64_t k = 0; k < std::min(a.rows, a.columns); ++k) {
    auto sum = hn::Zero(d), largest = hn::Zero(d);
    for (int64_t i = k + 1; i < a.rows; ++i) {
      const auto x = a.Get(i, k);
      sum = hn::MulAdd(x, x, sum);
      largest = hn::Max(largest, hn::Abs(x));
    }
    const auto zero = hn::Eq(largest, hn::Zero(d));
    regular = hn::And(regular, hn::Or(zero, hn::And(hn::Gt(sum, RealsOf(0x1p-700)), hn::Lt(sum, RealsOf(0x1p700)))));
    const auto first = a.Get(k, k);
    const auto beta = hn::Neg(hn::CopySign(hn::Sqrt(hn::MulAdd(first, first, sum)), first));
    const auto factor = hn::IfThenZeroElse(zero, hn::Div(RealsOf(1), hn::Sub(first, beta)));
    const auto tau = hn::IfThenZeroElse(zero, hn::Div(hn::Sub(beta, first), beta));
    StoreReals(tau, taus + k * RealLanes());
    a.Set(k, k, hn::IfThenElse(zero, first, beta));
    for (int64_t i = k + 1; i < a.rows; ++i) a.Set(i, k, hn::Mul(a.Get(i, k), factor));
    for (int64_t j = k + 1; j < a.columns; ++j) {
      auto dot = a.Get(k, j);
      for (int64_t i = k + 1; i < a.rows; ++i) dot = hn::MulAdd(a.Get(i, k), a.Get(i, j), dot);
      dot = hn::Mul(dot, tau);
      a.Set(k, j, hn::Sub(a.Get(k, j), dot));
      for (int64_t i = k + 1; i < a.rows; ++i) a.Set(i, j, hn::NegMulAdd(dot, a.Get(i, k), a.Get(i, j)));
    }
  }
  return regular;
}

/// The number of doubles that FactorGroup's `memory` must have space for.
template <class T>
int64_t FactorGroupDoubles(const MatricesToFactor<T>& matrices) {
  return LaneMatrices::Doubles(matrices.rows, matrices.columns) + matrices.smaller() * RealLanes();
}

/// Factors `count` matrices, except for those that FactorMatrix treats in a special way: their done[] is 0.
template <class T>
void FactorGroup(const MatricesToFactor<T>& matrices, int64_t first, int64_t count, double* memory, double* done) {
  const int64_t area = matrices.rows * matrices.columns, least = matrices.smaller();
  const LaneMatrices a{memory, matrices.rows, matrices.columns};
  double* const line = memory + LaneMatrices::Doubles(a.rows, a.columns);
  a.Read(matrices.from + first * area, count);
  auto regular = a.Moderate();
  const bool is_lu = matrices.method == MatrixFactors::Method::kLu;
  const bool is_qr = matrices.method == MatrixFactors::Method::kQr;
  if (is_lu) {
    regular = hn::And(regular, FactorLuInLanes(a, line));
  } else if (is_qr) {
    regular = hn::And(regular, FactorQrInLanes(a, line));
  } else {
    regular = hn::And(regular, FactorCholeskyInLanes(a, line));
  }
  StoreLanes(regular, done);
  a.Write(done, count, matrices.factors + first * area);
  for (int64_t m = 0; m < count; ++m) {
    if (done[m] == 0) continue;
    const int64_t n = first + m;
    matrices.info[n] = 0;
    for (int64_t k = 0; k < least; ++k) {
      const double value = line[k * RealLanes() + m];
      matrices.scales[n * least + k] = static_cast<T>(is_qr ? value : 0);
      matrices.pivots[n * least + k] = static_cast<int32_t>(is_lu ? value : static_cast<double>(k)) + 1;
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
