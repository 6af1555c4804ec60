// Decomposes small matrices in parallel, one in each lane of a vector. Compiled once per instruction set; include it
// from a kernel file.
#if defined(POLYOP_OPS_SVD_SVD_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_SVD_SVD_LANES_INL_H_
#undef POLYOP_OPS_SVD_SVD_LANES_INL_H_
#else
#define POLYOP_OPS_SVD_SVD_LANES_INL_H_
#endif

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>

#include "families/linalg/jacobi_lanes-inl.h"
#include "families/linalg/lanes-inl.h"
#include "ops/svd/svd_of_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE Reals DotOfRows(const LaneMatrices& a, int64_t p, int64_t q) {
  auto sum = hn::Zero(RealTag());
  for (int64_t k = 0; k < a.columns; ++k) sum = hn::MulAdd(a.Get(p, k), a.Get(q, k), sum);
  return sum;
}

/// Orthogonalize in lanes. `rotations` may be null. Returns the lanes that converged; row k of `squares` receives the
/// squared lengths of the vectors.
inline RealMask OrthogonalizeInLanes(const LaneMatrices& vectors, const LaneMatrices* rotations, double tolerance,
                                     double* squares) {
  constexpr int kMaxSweeps = 20;  // usually 5 to 9 suffice
  const RealTag d;
  const int64_t count = vectors.rows, lanes = RealLanes();
  const auto limit = RealsOf(tolerance * tolerance);
  for (int64_t i = 0; rotations != nullptr && i < count; ++i) {
    for (int64_t j = 0; j < count; ++j) rotations->Set(i, j, RealsOf(i == j ? 1 : 0));
  }
  for (int sweep = 0;; ++sweep) {
    for (int64_t k = 0; k < count; ++k) StoreReals(DotOfRows(vectors, k, k), squares + k * lanes);
    auto changed = hn::Not(AllLanes());
    for (int64_t p = 0; p < count; ++p) {
      for (int64_t q = p + 1; q < count; ++q) {
        const auto product = DotOfRows(vectors, p, q);
        const auto xx = LoadReals(squares + p * lanes), yy = LoadReals(squares + q * lanes);
        const auto rotated = hn::Gt(hn::Mul(product, product), hn::Mul(limit, hn::Mul(xx, yy)));
        if (hn::AllFalse(d, rotated)) continue;
        changed = hn::Or(changed, rotated);
        const LaneRotation rotation = FindRotation(xx, yy, product, rotated);
        const auto change = hn::IfThenElseZero(rotated, hn::Mul(rotation.tangent, product));
        RotateRows(vectors, p, q, rotation);
        if (rotations != nullptr) RotateRows(*rotations, p, q, rotation);
        StoreReals(hn::Max(hn::Sub(xx, change), hn::Zero(d)), squares + p * lanes);
        StoreReals(hn::Max(hn::Add(yy, change), hn::Zero(d)), squares + q * lanes);
      }
    }
    if (hn::AllFalse(d, changed) || sweep == kMaxSweeps) return hn::Not(changed);
  }
}

/// Returns whether SvdGroup computes these matrices.
template <class T>
bool HasSvdGroups(const MatricesToDecompose<T>& matrices) {
  const bool basis_is_complete = !matrices.with_vectors || !matrices.full || matrices.rows == matrices.columns;
  return matrices.count > 1 && matrices.shorter > 0 && matrices.longer <= kMaxSizeInLanes && basis_is_complete;
}

/// The number of doubles that SvdGroup's `memory` must have space for.
template <class T>
int64_t SvdGroupDoubles(const MatricesToDecompose<T>& matrices) {
  return LaneMatrices::Doubles(matrices.shorter, 2 * matrices.longer + matrices.shorter + 1);
}

template <class T>
void StoreDecomposition(const MatricesToDecompose<T>& matrices, int64_t n, int64_t lane, const LaneMatrices& vectors,
                        const LaneMatrices& rotations, const double* squares) {
  const int64_t shorter = matrices.shorter, longer = matrices.longer, lanes = RealLanes();
  std::array<std::pair<double, int64_t>, kMaxSizeInLanes> order;
  for (int64_t k = 0; k < shorter; ++k) order[static_cast<size_t>(k)] = {squares[k * lanes + lane], k};
  std::sort(order.begin(), order.begin() + shorter, std::greater<>());
  for (int64_t k = 0; k < shorter; ++k) {
    const auto [square, row] = order[static_cast<size_t>(k)];
    const double length = std::sqrt(square);
    matrices.s[n * shorter + k] = static_cast<T>(length);
    if (!matrices.with_vectors) continue;
    std::array<double, kMaxSizeInLanes> vector{}, other{};
    for (int64_t i = 0; i < longer; ++i) {
      vector[static_cast<size_t>(i)] = vectors.elements[(row * longer + i) * lanes + lane] / length;
    }
    for (int64_t i = 0; i < shorter; ++i) {
      other[static_cast<size_t>(i)] = rotations.elements[(row * shorter + i) * lanes + lane];
    }
    const double sign = matrices.tall ? linalg::SignOf(vector.data(), longer) : linalg::SignOf(other.data(), shorter);
    matrices.StorePair(n, k, sign, vector.data(), sign, other.data());
  }
}

/// Decomposes `count` matrices, except for those with unusual values or of lower rank: their done[] is 0.
template <class T>
void SvdGroup(const MatricesToDecompose<T>& matrices, int64_t first, int64_t count, double* memory, double* done) {
  const RealTag d;
  const int64_t shorter = matrices.shorter, longer = matrices.longer, lanes = RealLanes();
  const LaneMatrices given{memory, matrices.rows, matrices.columns},
      copy{memory + LaneMatrices::Doubles(shorter, longer), shorter, longer},
      rotations{copy.elements + LaneMatrices::Doubles(shorter, longer), shorter, shorter};
  double* const squares = rotations.elements + LaneMatrices::Doubles(shorter, shorter);
  given.Read(matrices.from + first * matrices.rows * matrices.columns, count);
  const auto usual = MakeUsual(given);
  for (int64_t k = 0; matrices.tall && k < shorter; ++k) {
    for (int64_t i = 0; i < longer; ++i) copy.Set(k, i, given.Get(i, k));
  }
  const LaneMatrices& vectors = matrices.tall ? copy : given;
  const double epsilon = std::is_same_v<T, float> ? 0x1p-42 : std::numeric_limits<double>::epsilon();
  const auto converged = OrthogonalizeInLanes(vectors, matrices.with_vectors ? &rotations : nullptr,
                                              epsilon * (4 + std::sqrt(static_cast<double>(longer))), squares);
  auto least = LoadReals(squares), most = least;
  for (int64_t k = 1; k < shorter; ++k) {
    least = hn::Min(least, LoadReals(squares + k * lanes));
    most = hn::Max(most, LoadReals(squares + k * lanes));
  }
  const auto full_rank = hn::And(hn::Gt(least, hn::Mul(most, RealsOf(0x1p-70))), hn::Gt(least, hn::Zero(d)));
  StoreLanes(hn::And(hn::And(usual, converged), full_rank), done);
  for (int64_t m = 0; m < count; ++m) {
    if (done[m] != 0) StoreDecomposition(matrices, first + m, m, vectors, rotations, squares);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
