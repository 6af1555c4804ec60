// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of a large square matrix by blocks. Compiled once per instruction set; include it from a
// kernel file.
#if defined(POLYOP_OPS_LINALG_EIG_BLOCKED_EIG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_EIG_BLOCKED_EIG_INL_H_
#undef POLYOP_OPS_LINALG_EIG_BLOCKED_EIG_INL_H_
#else
#define POLYOP_OPS_LINALG_EIG_BLOCKED_EIG_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/simd.h"
#include "ops/linalg/blocked-inl.h"
#include "ops/linalg/eig/blocked_hessenberg-inl.h"
#include "ops/linalg/eig/blocked_schur-inl.h"
#include "ops/linalg/eig/eig_of_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {
namespace blocked {

/// Returns whether linalg::Scale would change the matrix, by the lengths of rows and columns, for which `sums` has
/// space.
inline HWY_NOINLINE bool NeedsScaling(const linalg::SquareMatrix& a, const linalg::Balance& balance, double* sums) {
  const Tag d;
  const int64_t lanes = LanesOf(), first = balance.first, count = balance.last - first + 1;
  std::fill_n(sums, a.size, 0.0);
  for (int64_t i = first; i <= balance.last; ++i) {
    const double* const row = a.Row(i) + first;
    int64_t j = 0;
    for (; j + lanes <= count; j += lanes) {
      const auto x = hn::LoadU(d, row + j);
      hn::StoreU(hn::MulAdd(x, x, hn::LoadU(d, sums + j)), d, sums + j);
    }
    for (; j < count; ++j) sums[j] += row[j] * row[j];
  }
  for (int64_t i = first; i <= balance.last; ++i) {
    const double* const row = a.Row(i) + first;
    const double of_row = VectorOps::Dot(row, row, count), of_column = sums[i - first];
    // Other ratios give the factor 1. Rounding errors of the sums decide nothing: 3 is less than 2^2.
    if (!(of_row <= 3 * of_column && of_column <= 3 * of_row)) return true;
  }
  return false;
}

/// Computes eigenvectors of a Schur form: rows of `x`, a matrix of zeros at first, of which a pair of conjugate
/// eigenvalues has two, for the real and the imaginary parts. `zeros` has space for one row.
inline void VectorsOfSchur(const Products& products, const linalg::SquareMatrix& t, const double* real,
                           const double* imaginary, double least, double* zeros, double* x) {
  constexpr int64_t kRowsOfBlock = 32;
  const int64_t size = t.size;
  std::fill_n(zeros, size, 0.0);
  for (int64_t last = size; last > 0;) {
    int64_t first = std::max<int64_t>(0, last - kRowsOfBlock);
    if (first > 0 && t.At(first, first - 1) != 0) --first;
    for (int64_t k = first; k < size; ++k) {
      const eig::Number value = {real[k], imaginary[k]};
      const bool pair = value.imaginary != 0;
      const eig::Numbers row = {x + k * size, pair ? x + (k + 1) * size : zeros};
      const int64_t end = k + (pair ? 2 : 1);
      if (k < last) {
        eig::StartVector(t, k, value, row);
        eig::SolveRowsOfSchur<VectorOps>(t, value, least, first, k, end, end, row);
      } else {
        eig::SolveRowsOfSchur<VectorOps>(t, value, least, first, last, last, end, row);
      }
      if (pair) ++k;
    }
    double* const from = x + first * size;
    products.Subtract(size - first, first, last - first, {from + first, size, 1}, {t.elements + first, 1, t.stride},
                      from, size);
    last = first;
  }
}

/// Returns how many numbers of memory GeneralEigen needs.
inline int64_t GeneralEigenDoubles(int64_t size) {
  const int64_t parts = std::max({HessenbergDoubles(size), SchurForm::Doubles(size), ReflectionDoubles(size, size)});
  return 3 * size * size + 6 * size + Products::Doubles(size) + parts;
}

/// Decomposes matrix n. Returns false if it is not finite or the algorithm does not converge.
template <class T>
bool GeneralEigen(const GeneralMatrices<T>& matrices, int64_t n, const Context* context, double* work) {
  const int64_t size = matrices.size, area = size * size;
  const linalg::SquareMatrix a = {work, size, size};
  double *const vectors = work + area, *const others = vectors + area, *const factors = others + area,
                *const real = factors + size, *const imaginary = real + size, *const line = imaginary + size,
                *const packed = line + 3 * size, *const memory = packed + Products::Doubles(size);
  const Products products(context, packed);
  ToDoubles(matrices.from + n * area, area, work);
  const double scale = AllFinite(work, area) ? linalg::ScaleOf(work, area) : NAN;
  if (!(scale > 0)) return false;
  for (int64_t e = 0; e < area; ++e) work[e] *= scale;
  linalg::Balance balance = {0, size - 1, factors};
  linalg::Permute(a, balance);
  if (NeedsScaling(a, balance, line)) {
    linalg::Scale(a, balance);
  } else {
    std::fill_n(factors + balance.first, balance.last - balance.first + 1, 1.0);
  }
  std::fill_n(others, area, 0.0);
  ReduceToHessenberg(products, a, balance, others, line, memory);
  if (matrices.with_vectors) {
    std::fill_n(vectors, area, 0.0);
    for (int64_t i = 0; i < size; ++i) vectors[i * (size + 1)] = 1;
    ApplyReflections(products, {others, line, size - 1, size, size, 1}, memory, true, vectors, size);
  }
  const SchurForm schur(products, a, matrices.with_vectors ? vectors : nullptr, memory);
  if (!schur.Decompose(balance, real, imaginary)) return false;
  for (int64_t k = 0; k < size; ++k) {
    matrices.values[2 * (n * size + k)] = static_cast<T>(real[k] / scale + 0.0);  // +0, never -0
    matrices.values[2 * (n * size + k) + 1] = static_cast<T>(imaginary[k] / scale + 0.0);
  }
  if (!matrices.with_vectors) return true;
  double norm = 0;
  for (int64_t e = 0; e < area; ++e) norm = std::max(norm, std::fabs(work[e]));
  const double least = std::max(std::numeric_limits<double>::epsilon() * norm, 0x1p-900);
  std::fill_n(others, area, 0.0);
  VectorsOfSchur(products, a, real, imaginary, least, line, others);
  // The negative vectors of the balanced matrix.
  std::fill_n(work, area, 0.0);
  constexpr int64_t kStrip = 64;  // of rows, which are 0 after the diagonal
  for (int64_t i = 0; i < size; i += kStrip) {
    const int64_t rows = std::min(kStrip, size - i);
    products.Subtract(rows, size, std::min(size, i + rows + 1), {others + i * size, size, 1}, {vectors, size, 1},
                      work + i * size, size);
  }
  double* const zeros = line;
  for (int64_t k = 0; k < size; ++k) {
    const bool pair = imaginary[k] != 0;
    if (!pair) std::fill_n(zeros, size, 0.0);
    const eig::Numbers v = {work + k * size, pair ? work + (k + 1) * size : zeros};
    eig::UndoBalance(balance, size, v);
    matrices.Store(n, k, pair, v);
    if (pair) ++k;
  }
  return true;
}

}  // namespace blocked
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
