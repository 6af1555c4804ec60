// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of large symmetric matrices in double precision: most operations are those of products
// of matrices, and of a matrix that is read once for each column. Compiled once per instruction set; include it from a
// kernel file.
#if defined(POLYOP_OPS_LINALG_BLOCKED_EIGEN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_BLOCKED_EIGEN_INL_H_
#undef POLYOP_OPS_LINALG_BLOCKED_EIGEN_INL_H_
#else
#define POLYOP_OPS_LINALG_BLOCKED_EIGEN_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/simd.h"
#include "ops/linalg/blocked-inl.h"
#include "ops/linalg/divide_tridiagonal-inl.h"
#include "ops/linalg/symmetric_eigen.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {
namespace blocked {

/// Computes y = A v for the symmetric matrix whose upper triangle `a` has.
template <class T>
HWY_NOINLINE void SymmetricTimes(const T* a, int64_t size, int64_t stride, const double* v, double* y) {
  constexpr int kCount = 4;  // rows that are read together
  const Tag d;
  const int64_t lanes = LanesOf();
  std::fill_n(y, size, 0.0);
  int64_t i = 0;
  for (; i + kCount <= size; i += kCount) {
    const T* row[kCount];
    double sums[kCount];
    Numbers factors[kCount], products[kCount];
    for (int r = 0; r < kCount; ++r) {
      row[r] = a + (i + r) * stride;
      sums[r] = 0;
      factors[r] = hn::Set(d, v[i + r]);
      products[r] = hn::Zero(d);
      for (int c = 0; c < kCount; ++c) sums[r] += (c < r ? row[c][i + r] : row[r][i + c]) * v[i + c];
    }
    int64_t j = i + kCount;
    for (; j + lanes <= size; j += lanes) {
      const auto x = hn::LoadU(d, v + j);
      auto sum = hn::LoadU(d, y + j);
      for (int r = 0; r < kCount; ++r) {
        const auto element = Promote<T>(hn::LoadU(Stored<T>(), row[r] + j));
        products[r] = hn::MulAdd(element, x, products[r]);
        sum = hn::MulAdd(element, factors[r], sum);
      }
      hn::StoreU(sum, d, y + j);
    }
    for (int r = 0; r < kCount; ++r) {
      double sum = sums[r] + hn::ReduceSum(d, products[r]);
      for (int64_t c = j; c < size; ++c) {
        sum += row[r][c] * v[c];
        y[c] += row[r][c] * v[i + r];
      }
      y[i + r] += sum;
    }
  }
  for (; i < size; ++i) {
    const T* const row = a + i * stride;
    y[i] += row[i] * v[i];
    for (int64_t c = i + 1; c < size; ++c) {
      y[i] += row[c] * v[c];
      y[c] += row[c] * v[i];
    }
  }
}

/// Reflections of the reduction that are applied together to the rest of the matrix.
constexpr int64_t kReflections = 16;

/// linalg::Tridiagonalize without the orthogonal factor. Reads the upper triangle of `a`, which is overwritten. Row k
/// of `vectors`, which may be `a`, receives the vector of reflection k after the diagonal. `memory` has space for
/// 3 * kReflections rows.
template <class T>
void Tridiagonalize(const Products& products, T* a, int64_t size, double* diagonal, double* off, double* taus,
                    double* vectors, double* memory) {
  // The second copy of the vectors follows ws, so that one product subtracts V W^T + W V^T.
  double *const vs = memory, *const ws = vs + kReflections * size, *const copies = ws + kReflections * size;
  for (int64_t first = 0; first < size; first += kReflections) {
    const int64_t last = std::min(first + kReflections, size);
    for (int64_t k = first; k < last; ++k) {
      double* const row = vectors + k * size;
      for (int64_t i = k; i < size; ++i) row[i] = static_cast<double>(a[k * size + i]);
      for (int64_t j = 0; j < k - first; ++j) {
        const double *const v = vs + j * size, *const w = ws + j * size;
        VectorOps::SubtractTwoRows(w + k, v[k], v + k, w[k], size - k, row + k);
      }
      diagonal[k] = row[k];
      const int64_t rest = size - k - 1, n = k - first;
      double *const v = vs + n * size, *const w = ws + n * size;
      std::fill_n(v, k + 1, 0.0);
      std::fill_n(w, k + 1, 0.0);
      if (rest == 0) continue;
      taus[k] = linalg::FindReflection(row + k + 1, rest);
      off[k] = row[k + 1];
      row[k + 1] = 1;
      std::copy_n(row + k + 1, rest, v + k + 1);
      if (taus[k] == 0) {
        std::fill_n(w + k + 1, rest, 0.0);
        continue;
      }
      SymmetricTimes(a + (k + 1) * (size + 1), rest, size, v + k + 1, w + k + 1);
      for (int64_t j = 0; j < n; ++j) {
        const double *const other_v = vs + j * size + k + 1, *const other_w = ws + j * size + k + 1;
        VectorOps::SubtractTwoRows(other_v, VectorOps::Dot(other_w, v + k + 1, rest), other_w,
                                   VectorOps::Dot(other_v, v + k + 1, rest), rest, w + k + 1);
      }
      for (int64_t i = k + 1; i < size; ++i) w[i] *= taus[k];
      VectorOps::SubtractRow(v + k + 1, taus[k] / 2 * VectorOps::Dot(w + k + 1, v + k + 1, rest), rest, w + k + 1);
    }
    if (last == size) break;
    std::copy_n(vs, kReflections * size, copies);
    products.SubtractTriangle(false, size - last, 2 * kReflections, {vs + last, 1, size}, {ws + last, size, 1},
                              a + last * (size + 1), size);
  }
}

/// Returns how many numbers of memory SymmetricEigen needs.
inline int64_t EigenDoubles(int64_t size, bool with_vectors) {
  const int64_t panels = std::max(3 * kReflections * size, ReflectionDoubles(size, size));
  return 2 * size + Products::Doubles(size) +
         (with_vectors ? std::max(panels, TridiagonalEigen::Doubles(size)) : panels);
}

/// linalg::SymmetricEigen by blocks. Reads the upper triangle of `a`. The reduction works in `reduced`, a matrix which
/// may be `a`, or use the memory of `vectors`. As floats it is read in half the time, and the results have the
/// precision of float.
template <class T>
bool SymmetricEigen(const Context* context, double* a, T* reduced, int64_t size, double* values, double* vectors,
                    double* memory) {
  double *const off = memory, *const taus = off + size, *const rest = taus + size;
  const double scale = linalg::ScaleOf(a, size * size);
  for (int64_t i = 0; i < size * size; ++i) reduced[i] = static_cast<T>(a[i] * scale);
  const Products products(context, rest);
  double* const panels = rest + Products::Doubles(size);
  off[size - 1] = taus[size - 1] = 0;
  Tridiagonalize(products, reduced, size, values, off, taus, a, panels);
  if (vectors == nullptr) {
    if (!linalg::EigenvaluesOfTridiagonal(values, off, size)) return false;
  } else {
    std::fill_n(vectors, size * size, 0.0);
    if (!TridiagonalEigen(products, size, vectors, panels).Decompose(values, off)) return false;
    ApplyReflections(products, {a, taus, size - 1, size, size, 1}, panels, false, vectors, size);
  }
  linalg::SortEigenvalues(values, size, vectors);
  for (int64_t i = 0; i < size; ++i) values[i] /= scale;
  return true;
}

}  // namespace blocked
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
