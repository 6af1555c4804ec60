// SPDX-License-Identifier: Apache-2.0
// Decomposes small matrices in parallel, one in each lane of a vector. Compiled once per instruction set; include it
// from a kernel file.
#if defined(POLYOP_OPS_LINALG_SVD_SVD_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_SVD_SVD_LANES_INL_H_
#undef POLYOP_OPS_LINALG_SVD_SVD_LANES_INL_H_
#else
#define POLYOP_OPS_LINALG_SVD_SVD_LANES_INL_H_
#endif

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "ops/linalg/lanes-inl.h"
#include "ops/linalg/svd/jacobi_lanes-inl.h"
#include "ops/linalg/svd/svd_of_matrix.h"
#include "ops/linalg/symmetric_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE Reals DotOfRows(const LaneMatrices& a, int64_t p, int64_t q) {
  auto sum = hn::Zero(RealTag());
  for (int64_t k = 0; k < a.columns; ++k) sum = hn::MulAdd(a.Get(p, k), a.Get(q, k), sum);
  return sum;
}

/// Orthogonalize in some of the lanes. `rotations` may be null, and is rotated. Returns those that converged; row k of
/// `squares` receives the squared lengths of their vectors.
inline RealMask OrthogonalizeInLanes(RealMask active, const LaneMatrices& vectors, const LaneMatrices* rotations,
                                     double tolerance, double* squares) {
  constexpr int kMaxSweeps = 20;  // usually 5 to 9 suffice
  const RealTag d;
  const int64_t count = vectors.rows, lanes = RealLanes();
  const auto limit = RealsOf(tolerance * tolerance);
  for (int sweep = 0;; ++sweep) {
    for (int64_t k = 0; k < count; ++k) {
      double* const square = squares + k * lanes;
      StoreReals(hn::IfThenElse(active, DotOfRows(vectors, k, k), LoadReals(square)), square);
    }
    auto changed = hn::Not(AllLanes());
    for (int64_t p = 0; p < count; ++p) {
      for (int64_t q = p + 1; q < count; ++q) {
        const auto product = DotOfRows(vectors, p, q);
        const auto xx = LoadReals(squares + p * lanes), yy = LoadReals(squares + q * lanes);
        const auto rotated = hn::And(active, hn::Gt(hn::Mul(product, product), hn::Mul(limit, hn::Mul(xx, yy))));
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
    if (hn::AllFalse(d, changed) || sweep == kMaxSweeps) return hn::AndNot(changed, active);
  }
}

/// Returns whether SvdGroup computes these matrices.
template <class T>
bool HasSvdGroups(const MatricesToDecompose<T>& matrices) {
  const bool basis_is_complete = !matrices.with_vectors || !matrices.full || matrices.rows == matrices.columns;
  return matrices.shorter > 0 && matrices.longer <= kMaxSizeInLanes && basis_is_complete;
}

/// The memory of one group of lanes.
struct SvdLanes {
  LaneMatrices given, copy, rotated, rotations, products;
  double* squares;

  static int64_t Doubles(int64_t shorter, int64_t longer) {
    return LaneMatrices::Doubles(shorter, 3 * longer + 2 * shorter + 1);
  }
  template <class T>
  SvdLanes(const MatricesToDecompose<T>& matrices, double* memory) {
    const int64_t shorter = matrices.shorter, longer = matrices.longer;
    const int64_t area = LaneMatrices::Doubles(shorter, longer), square = LaneMatrices::Doubles(shorter, shorter);
    given = {memory, matrices.rows, matrices.columns};
    copy = {memory + area, shorter, longer};
    rotated = {memory + 2 * area, shorter, longer};
    rotations = {memory + 3 * area, shorter, shorter};
    products = {rotations.elements + square, shorter, shorter};
    squares = products.elements + square;
  }
};

/// The number of doubles that SvdGroup's `memory` must have space for.
template <class T>
int64_t SvdGroupDoubles(const MatricesToDecompose<T>& matrices) {
  return SymmetricLanes::kGroups * SvdLanes::Doubles(matrices.shorter, matrices.longer) +
         SymmetricLanes::Doubles(matrices.shorter);
}

/// Stores the decompositions of the lanes of a group whose done[] is not 0. Overwrites the memory of the group.
template <class T>
void StoreDecompositions(const MatricesToDecompose<T>& matrices, int64_t first, int64_t count, const SvdLanes& group,
                         const double* done) {
  const int64_t shorter = matrices.shorter, lanes = RealLanes();
  const LaneMatrices &vectors = group.rotated, &others = group.rotations;
  double *const lengths = group.given.elements, *const order = group.products.elements;  // not used any more
  for (int64_t k = 0; k < shorter; ++k) {
    const auto length = hn::Sqrt(LoadReals(group.squares + k * lanes));
    StoreReals(length, lengths + k * lanes);
    if (!matrices.with_vectors) continue;
    const auto sign = matrices.tall ? SignOfRow(vectors, k) : SignOfRow(others, k);
    ScaleRow(vectors, k, hn::Div(sign, length));
    ScaleRow(others, k, sign);
  }
  SortInLanes(lengths, shorter, order);
  for (int64_t k = 0; k < shorter / 2; ++k) {  // the largest one first
    double *const a = lengths + k * lanes, *const b = lengths + (shorter - 1 - k) * lanes;
    const auto x = LoadReals(a), y = LoadReals(b);
    StoreReals(y, a);
    StoreReals(x, b);
  }
  LaneMatrices{lengths, 1, shorter}.Write(count, matrices.s + first * shorter);
  for (int64_t m = 0; m < count && matrices.with_vectors; ++m) {
    if (done[m] == 0) continue;
    T *const u = matrices.u + (first + m) * matrices.rows * shorter, *const vh = matrices.vh + (first + m) *
                                                                                                   matrices.columns *
                                                                                                   shorter;
    StoreRowsInOrder(vectors, m, order, true, matrices.tall, matrices.tall ? u : vh);
    StoreRowsInOrder(others, m, order, true, !matrices.tall, matrices.tall ? vh : u);
  }
}

/// Computes the squared lengths of the vectors that the eigenvectors of their products rotate, and `with_vectors` the
/// rotated vectors. Sets exact[] to the lanes whose results are exact enough for float: those without a tiny singular
/// value.
inline void RotateByEigenvectors(const std::array<SvdLanes, SymmetricLanes::kGroups>& groups, bool with_vectors,
                                 double* memory, RealMask (&exact)[SymmetricLanes::kGroups]) {
  constexpr double kMinRatio = 0x1p-26;  // the error of a root is at most 2e-7 of it
  const int64_t count = groups[0].copy.rows, lanes = RealLanes();
  SymmetricLanes::Group symmetric[SymmetricLanes::kGroups];
  for (size_t g = 0; g < groups.size(); ++g) {
    const LaneMatrices &vectors = groups[g].copy, &products = groups[g].products;
    for (int64_t p = 0; p < count; ++p) {
      for (int64_t q = p; q < count; ++q) products.Set(p, q, DotOfRows(vectors, p, q));
    }
    symmetric[g] = {products, {with_vectors ? groups[g].rotations.elements : nullptr, count, count}};
  }
  const SymmetricLanes eigen(symmetric, count, std::numeric_limits<double>::epsilon(), memory);
  eigen.Decompose(exact);
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto& [given, vectors, rotated, rotations, products, squares] = groups[g];
    auto least = eigen.Value(0, static_cast<int>(g)), most = least;
    for (int64_t k = 0; k < count; ++k) {
      auto square = eigen.Value(k, static_cast<int>(g));
      least = hn::Min(least, square);
      most = hn::Max(most, square);
      if (with_vectors) {
        square = hn::Zero(RealTag());
        for (int64_t i = 0; i < vectors.columns; ++i) {
          auto sum = hn::Zero(RealTag());
          for (int64_t p = 0; p < count; ++p) sum = hn::MulAdd(rotations.Get(k, p), vectors.Get(p, i), sum);
          rotated.Set(k, i, sum);
          square = hn::MulAdd(sum, sum, square);
        }
      }
      StoreReals(square, squares + k * lanes);
    }
    exact[g] = hn::And(exact[g], hn::Gt(least, hn::Mul(most, RealsOf(kMinRatio))));
  }
}

/// Makes the given vectors those of some lanes again, without rotations.
inline void StartAgain(RealMask lanes, const SvdLanes& group) {
  const int64_t shorter = group.copy.rows, longer = group.copy.columns;
  for (int64_t k = 0; k < shorter; ++k) {
    for (int64_t i = 0; i < longer; ++i) {
      group.rotated.Set(k, i, hn::IfThenElse(lanes, group.copy.Get(k, i), group.rotated.Get(k, i)));
    }
    for (int64_t i = 0; i < shorter; ++i) {
      group.rotations.Set(k, i, hn::IfThenElse(lanes, RealsOf(i == k ? 1 : 0), group.rotations.Get(k, i)));
    }
  }
}

/// Decomposes `count` matrices, except for those with unusual values or of lower rank: their done[] is 0.
template <class T>
void SvdGroup(const MatricesToDecompose<T>& matrices, int64_t first, int64_t count, double* memory, double* done) {
  constexpr int kGroups = SymmetricLanes::kGroups;
  constexpr bool kIsFloat = std::is_same_v<T, float>;
  const RealTag d;
  const int64_t shorter = matrices.shorter, longer = matrices.longer, lanes = RealLanes();
  const int64_t doubles = SvdLanes::Doubles(shorter, longer);
  const std::array<SvdLanes, kGroups> groups = {SvdLanes(matrices, memory), SvdLanes(matrices, memory + doubles)};
  double* const rest = memory + kGroups * doubles;
  RealMask usual[kGroups], exact[kGroups];
  for (size_t g = 0; g < kGroups; ++g) {
    const LaneMatrices &given = groups[g].given, &copy = groups[g].copy;
    const int64_t start =
        std::min(static_cast<int64_t>(g) * lanes, count - 1);  // repeats the last one if there are none
    given.Read(matrices.from + (first + start) * matrices.rows * matrices.columns, std::min(lanes, count - start));
    usual[g] = MakeUsual(given);
    for (int64_t k = 0; k < shorter; ++k) {
      for (int64_t i = 0; i < longer; ++i) copy.Set(k, i, matrices.tall ? given.Get(i, k) : given.Get(k, i));
    }
  }
  const auto rotate = [&](bool with_vectors) HWY_ATTR {
    RotateByEigenvectors(groups, with_vectors, rest, exact);
    bool all = true;
    for (int g = 0; g < kGroups; ++g) all = all && hn::AllTrue(d, hn::Or(exact[g], hn::Not(usual[g])));
    return all;
  };
  const bool needs_vectors = matrices.with_vectors || !kIsFloat;
  const bool rotated = rotate(needs_vectors), is_exact = rotated && kIsFloat;
  const double epsilon = kIsFloat ? 0x1p-42 : std::numeric_limits<double>::epsilon();
  const double tolerance = epsilon * (4 + std::sqrt(static_cast<double>(longer)));
  for (size_t g = 0; g < kGroups; ++g) {
    const SvdLanes& group = groups[g];
    auto converged = exact[g];
    if (!is_exact) {
      // Rotations of all vectors would make a tiny value inexact.
      if (!rotated) StartAgain(hn::Not(exact[g]), group);
      const auto active = kIsFloat ? hn::Not(exact[g]) : AllLanes();
      const auto now = OrthogonalizeInLanes(active, group.rotated, matrices.with_vectors ? &group.rotations : nullptr,
                                            tolerance, group.squares);
      converged = hn::Or(now, hn::AndNot(active, converged));
    }
    auto least = LoadReals(group.squares), most = least;
    for (int64_t k = 1; k < shorter; ++k) {
      least = hn::Min(least, LoadReals(group.squares + k * lanes));
      most = hn::Max(most, LoadReals(group.squares + k * lanes));
    }
    const auto full_rank = hn::And(hn::Gt(least, hn::Mul(most, RealsOf(0x1p-70))), hn::Gt(least, hn::Zero(d)));
    double* const computed = done + static_cast<int64_t>(g) * lanes;
    StoreLanes(hn::And(hn::And(usual[g], converged), full_rank), computed);
    const int64_t start = static_cast<int64_t>(g) * lanes;
    StoreDecompositions(matrices, first + start, std::min(lanes, count - start), group, computed);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
