// Factors small matrices in parallel, one in each lane of a vector. Compiled once per instruction set; include it from
// a kernel file.
#if defined(POLYOP_OPS_MATRIX_FACTORS_FACTOR_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_MATRIX_FACTORS_FACTOR_LANES_INL_H_
#undef POLYOP_OPS_MATRIX_FACTORS_FACTOR_LANES_INL_H_
#else
#define POLYOP_OPS_MATRIX_FACTORS_FACTOR_LANES_INL_H_
#endif

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "families/linalg/householder_lanes-inl.h"
#include "families/linalg/lanes-inl.h"
#include "ops/matrix_factors/factor_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Returns the lanes whose pivots are all positive, finite and not tiny. The results of the others are undefined. `size`
// is the number of rows, maybe a constant.
template <class Size, class Fetch>
HWY_INLINE RealMask FactorCholeskyInLanes(const LaneMatrices& matrices, Size size, const Fetch& fetch) {
  auto regular = AllLanes();
  const int64_t n = size;
  const LaneMatrices a{matrices.elements, n, n};
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) a.Set(i, j, hn::Zero(RealTag()));
  }
  for (int64_t j = 0; j < n; ++j) {
    fetch(j, n);
    SumOfProducts{a.At(j, 0), a.At(j, 0), n, 1, 1, j}.SubtractFrom(a.At(j, j), n, n - j);
    const auto rest = a.Get(j, j);  // not positive if an element of the row is not finite
    regular = hn::And(regular, hn::And(hn::Gt(rest, RealsOf(0x1p-1000)), hn::Lt(rest, RealsOf(0x1p600))));
    // Neither the root nor the quotient waits for the other.
    const auto root = hn::Sqrt(rest), inverse = hn::Mul(root, hn::Div(RealsOf(1), rest));
    a.Set(j, j, root);
    for (int64_t i = j + 1; i < n; ++i) a.Set(i, j, hn::Mul(a.Get(i, j), inverse));
  }
  return regular;
}

template <class Fetch>
HWY_NOINLINE RealMask FactorCholeskyInLanes(const LaneMatrices& a, const Fetch& fetch) {
  if (a.rows == 2) return FactorCholeskyInLanes(a, std::integral_constant<int64_t, 2>(), fetch);
  if (a.rows == 3) return FactorCholeskyInLanes(a, std::integral_constant<int64_t, 3>(), fetch);
  if (a.rows == 4) return FactorCholeskyInLanes(a, std::integral_constant<int64_t, 4>(), fetch);
  return FactorCholeskyInLanes(a, a.rows, fetch);
}

/// The number of doubles that FactorGroup's `memory` must have space for.
template <class T>
int64_t FactorGroupDoubles(const MatricesToFactor<T>& matrices) {
  return LaneMatrices::Doubles(matrices.rows, matrices.columns) + 2 * matrices.smaller() * RealLanes();
}

/// Factors `count` matrices, except for those that FactorMatrix treats in a special way: their done[] is 0.
template <class T>
void FactorGroup(const MatricesToFactor<T>& matrices, int64_t first, int64_t count, double* memory, double* done) {
  const int64_t area = matrices.rows * matrices.columns, least = matrices.smaller(), lanes = RealLanes();
  const LaneMatrices a{memory, matrices.rows, matrices.columns};
  const LaneMatrices scales{memory + LaneMatrices::Doubles(a.rows, a.columns), 1, least},
      pivots{scales.elements + least * lanes, 1, least};
  T* const to_scales = matrices.scales + first * least;
  int32_t* const to_pivots = matrices.pivots + first * least;
  const T* const from = matrices.from + first * area;
  T* const to = matrices.factors + first * area;
  const PrefetchInSteps<T> fetch(area, from + count * area, std::min(count, matrices.count - first - count), to, count);
  auto regular = AllLanes();
  if (matrices.method == MatrixFactors::Method::kCholesky) {
    a.ReadLowerTriangle(from, count);
    regular = FactorCholeskyInLanes(a, fetch);
  } else {
    a.Read(from, count);
    regular = a.Moderate();
  }
  if (matrices.method == MatrixFactors::Method::kLu) {
    regular = hn::And(regular, FactorLuInLanes(a, pivots.elements, fetch));
    for (int64_t k = 0; k < least; ++k) {
      const auto row = pivots.Get(0, k), u = a.Get(k, k);
      scales.Set(0, k, hn::IfThenElse(hn::Eq(row, RealsOf(static_cast<double>(k))), u, hn::Neg(u)));
      pivots.Set(0, k, hn::Add(row, RealsOf(1)));
    }
  } else if (matrices.method == MatrixFactors::Method::kQr) {
    fetch(0, 1);
    regular = hn::And(regular, FactorQrInLanes(a, scales.elements));
  }
  StoreLanes(regular, done);
  a.Write(done, count, to);
  if (matrices.method == MatrixFactors::Method::kCholesky) {
    std::fill_n(to_scales, count * least, T{});
  } else {
    scales.Write(done, count, to_scales);
  }
  if (matrices.method == MatrixFactors::Method::kLu) {
    pivots.Write(done, count, to_pivots);
  } else {
    for (int64_t m = 0; m < count; ++m) std::iota(to_pivots + m * least, to_pivots + (m + 1) * least, 1);
  }
  std::fill_n(matrices.info + first, count, 0);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
