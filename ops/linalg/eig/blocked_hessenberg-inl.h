// SPDX-License-Identifier: Apache-2.0
// The Hessenberg form of large square matrices by blocks of reflections. Compiled once per instruction set; include it
// from a kernel file.
//
// G. Quintana-Orti and R. van de Geijn, "Improving the performance of reduction to Hessenberg form", 2006.
#if defined(POLYOP_OPS_LINALG_EIG_BLOCKED_HESSENBERG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_EIG_BLOCKED_HESSENBERG_INL_H_
#undef POLYOP_OPS_LINALG_EIG_BLOCKED_HESSENBERG_INL_H_
#else
#define POLYOP_OPS_LINALG_EIG_BLOCKED_HESSENBERG_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/simd.h"
#include "ops/linalg/blocked-inl.h"
#include "ops/linalg/eig/schur.h"
#include "ops/linalg/householder.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {
namespace blocked {

/// Returns how many numbers of memory ReduceToHessenberg needs, next to those of the products.
inline int64_t HessenbergDoubles(int64_t size) { return kPanel * (5 * size + 2 * kPanel) + size; }

/// linalg::ReduceToHessenberg. Row k of `reflections`, a matrix of zeros, receives the vector of reflection k after
/// column k, and taus[k] its scale: 0 for rows without a reflection.
inline void ReduceToHessenberg(const Products& products, const linalg::SquareMatrix& a, const linalg::Balance& balance,
                               double* reflections, double* taus, double* memory) {
  const int64_t size = a.size, first = balance.first, last = balance.last;
  double *const vs = memory, *const ys = vs + kPanel * size, *const triangle = ys + kPanel * size,
                *const column = triangle + kPanel * kPanel, *const sums = column + size,
                *const scaled = sums + kPanel * size, *const above = scaled + kPanel * size;
  std::fill_n(taus, size, 0.0);
  for (int64_t panel = first; panel < last - 1; panel += kPanel) {
    const int64_t count = std::min(kPanel, last - 1 - panel), begin = panel + 1, height = last - panel;
    // Columns of the panel, whose reflections change A to (I - V T^T V^T) (A - Y V^T), Y = A V T. Rows of `vs` and `ys`
    // are the columns of V and Y in the rows from `begin` on.
    for (int64_t j = 0; j < count; ++j) {
      const int64_t k = panel + j, rest = height - j;
      double *const v = vs + j * height, *const y = ys + j * height;
      double products_of_column[kPanel], factors[kPanel];
      for (int64_t r = 0; r < height; ++r) column[r] = a.At(begin + r, k);
      for (int64_t i = 0; i < j; ++i) VectorOps::SubtractRow(ys + i * height, vs[i * height + j - 1], height, column);
      for (int64_t i = 0; i < j; ++i) products_of_column[i] = VectorOps::Dot(vs + i * height, column, height);
      for (int64_t i = 0; i < j; ++i) {
        double sum = 0;
        for (int64_t m = 0; m <= i; ++m) sum += triangle[m * kPanel + i] * products_of_column[m];
        factors[i] = sum;
      }
      for (int64_t i = 0; i < j; ++i) VectorOps::SubtractRow(vs + i * height, factors[i], height, column);
      const double tau = taus[k] = linalg::FindReflection(column + j, rest);
      for (int64_t r = 0; r < height; ++r) a.At(begin + r, k) = r <= j ? column[r] : 0;
      std::fill_n(v, j, 0.0);
      std::copy_n(column + j, rest, v + j);
      v[j] = 1;
      std::copy_n(v + j, rest, reflections + k * size + k + 1);
      for (int64_t r = 0; r < height; ++r) y[r] = VectorOps::Dot(a.Row(begin + r) + k + 1, v + j, rest);
      for (int64_t i = 0; i < j; ++i) {
        products_of_column[i] = VectorOps::Dot(vs + i * height + j, v + j, rest);
        VectorOps::SubtractRow(ys + i * height, products_of_column[i], height, y);
      }
      for (int64_t r = 0; r < height; ++r) y[r] *= tau;
      for (int64_t i = 0; i < j; ++i) {
        double sum = 0;
        for (int64_t m = i; m < j; ++m) sum += triangle[i * kPanel + m] * products_of_column[m];
        triangle[i * kPanel + j] = -tau * sum;
      }
      triangle[j * kPanel + j] = tau;
      for (int64_t i = j + 1; i < kPanel; ++i) triangle[i * kPanel + j] = 0;
    }
    const View v{vs, height, 1}, v_columns{vs, 1, height};
    // The rows above.
    std::fill_n(sums, begin * count, 0.0);
    std::fill_n(above, begin * count, 0.0);
    products.Subtract(begin, count, height, {a.elements + begin, a.stride, 1}, v_columns, sums, count);
    products.Subtract(begin, count, count, {sums, count, 1}, {triangle, kPanel, 1}, above, count);
    products.Subtract(begin, height, count, {above, count, 1}, v, a.elements + begin, a.stride);
    // The columns after the panel.
    const int64_t next = panel + count, rest = size - next;
    products.Subtract(height, last + 1 - next, count, {ys, 1, height}, v.At(0, count - 1), a.Row(begin) + next,
                      a.stride);
    std::fill_n(sums, count * rest, 0.0);
    std::fill_n(scaled, count * rest, 0.0);
    products.Subtract(count, rest, height, v, {a.Row(begin) + next, a.stride, 1}, sums, rest);
    products.Subtract(count, rest, count, {triangle, 1, kPanel}, {sums, rest, 1}, scaled, rest);
    products.Subtract(height, rest, count, v_columns, {scaled, rest, 1}, a.Row(begin) + next, a.stride);
  }
}

}  // namespace blocked
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
