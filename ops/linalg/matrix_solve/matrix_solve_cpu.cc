// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linalg/matrix_solve/matrix_solve_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/linalg/blocked-inl.h"
#include "ops/linalg/matrix_solve/solve_lanes-inl.h"
#include "ops/linalg/matrix_solve/solve_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Right sides with more columns fill vectors.
constexpr int64_t kMaxColumnsInLanes = 32;

// Of few right sides, SolveByRows solves the equations.
constexpr int64_t kMaxColumnsByRows = 32;

constexpr int64_t kRowsAtOnce = 32;

// SolveTriangle of a triangle of which blocks of rows are converted, so that they are still in the caches when they are
// used. Requires: `work` has space for kRowsAtOnce rows.
template <class T>
void SolveByRows(const blocked::Products& products, const T* from, bool lower, bool unit, int64_t size, double* b,
                 int64_t columns, double* work) {
  for (int64_t done = 0; done < size; done += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, size - done), first = lower ? done : size - done - count;
    const int64_t begin = lower ? 0 : first;  // of the elements that are used
    for (int64_t i = 0; i < count; ++i) {
      blocked::ToDoubles(from + (first + i) * size + begin, done + count, work + i * size);
    }
    double *const block = b + first * columns, *const known = lower ? b : block + count * columns;
    products.Subtract(count, columns, done, {lower ? work : work + count, size, 1}, {known, columns, 1}, block,
                      columns);
    blocked::SolveTriangle(products, {lower ? work + done : work, size, 1}, lower, unit, count, block, columns,
                           columns);
  }
}

// Solves equations by blocks. Returns false for a general matrix that is not finite, for which Solve is exact.
template <class T>
bool SolveByBlocks(const EquationsToSolve<T>& equations, int64_t n, const Context* context, double* work,
                   int32_t* rows) {
  using Method = MatrixSolve::Method;
  const int64_t size = equations.size, columns = equations.columns, area = size * size, right = size * columns;
  const T* const from = equations.from + n * area;
  double *const b = work + area, *const memory = b + right;
  const bool general = equations.method == Method::kGeneral, upper = equations.method == Method::kUpper;
  const bool cholesky = equations.method == Method::kCholesky, triangular = upper || equations.method == Method::kLower;
  const bool by_rows = triangular && !equations.transpose && columns <= kMaxColumnsByRows;
  const blocked::Products products(context, memory);
  if (general && equations.transpose) {
    blocked::Transpose(from, size, size, work);
  } else if (cholesky || (triangular && !by_rows)) {
    for (int64_t i = 0; i < size; ++i) {  // the other triangle is not read
      const int64_t first = i * size + (upper ? i : 0);
      blocked::ToDoubles(from + first, upper ? size - i : i + 1, work + first);
    }
  } else if (!by_rows) {
    blocked::ToDoubles(from, area, work);
  }
  if (general && !AllFinite(work, area)) return false;
  blocked::ToDoubles(equations.right + n * right, right, b);
  equations.info[n] = 0;
  const int32_t* exchanged = equations.pivots + n * equations.pivot_count;
  int64_t exchanges = equations.pivot_count;
  if (general) {
    equations.info[n] = blocked::FactorLu(products, work, size, size, size, rows);
    exchanged = rows;
    exchanges = size;
  }
  const blocked::View plain{work, size, 1}, transposed{work, 1, size};
  const auto solve = [&](const blocked::View& t, bool lower, bool unit) {
    products.ForColumns(columns, 0.05 * static_cast<double>(area),
                        [&](const blocked::Products& own, int64_t first, int64_t count) {
                          blocked::SolveTriangle(own, t, lower, unit, size, b + first, count, columns);
                        });
  };
  if (by_rows) {
    SolveByRows(products, from, !upper, equations.unit, size, b, columns, work);
  } else if (triangular) {
    solve(equations.transpose ? transposed : plain, upper == equations.transpose, equations.unit);
  } else if (cholesky) {
    solve(plain, true, false);
    solve(transposed, false, false);
  } else if (equations.info[n] != 0) {
    std::fill_n(b, right, NAN);
  } else if (equations.transpose && !general) {
    solve(transposed, true, false);
    solve(transposed, false, true);
    linalg::ExchangeRows(exchanged, exchanges, true, b, size, columns);
  } else {
    linalg::ExchangeRows(exchanged, exchanges, false, b, size, columns);
    solve(plain, true, true);
    solve(plain, false, false);
  }
  blocked::FromDoubles(b, right, equations.to + n * right);
  return true;
}

template <class T>
bool SolveAll(const Context& context, const EquationsToSolve<T>& equations) {
  const double nanoseconds = equations.Operations() + 50;
  const int64_t size = equations.WorkSize(), rows = equations.RowsSize();
  const bool in_lanes = equations.method != MatrixSolve::Method::kLdl;  // its pivots differ too much
  if (in_lanes && equations.size > 0 && equations.size <= kMaxSizeInLanes && equations.columns <= kMaxColumnsInLanes) {
    std::fill_n(equations.info, equations.count, 0);
    return WithConstantSize(equations.columns == 1 ? equations.size : 0, [&]<class Size>(Size) {
      using Group = SolveLanes<T, Size>;
      return ForLaneGroups<kInterleavedGroups<Size>>(
          context, equations.count, nanoseconds / 2, std::max(Group::Doubles(equations), size),
          [&](int64_t first, int64_t count, double* memory, double* done)
              HWY_ATTR { ComputeInterleaved<Group, Size>(equations, first, count, memory, done); },
          [&](int64_t n, double* memory) {
            std::array<int32_t, kMaxSizeInLanes> exchanged{};
            equations.Solve(n, memory, exchanged.data());
          });
    });
  }
  if (in_lanes && equations.size >= blocked::kMinSize) {
    const int64_t memory = blocked::Products::Doubles(std::max(equations.size, equations.columns));
    return blocked::ForLargeMatrices(context, equations.count, size + memory + rows,
                                     [&](int64_t n, double* work, const Context* threads) {
                                       auto* const own = reinterpret_cast<int32_t*>(work + size + memory);
                                       if (!SolveByBlocks(equations, n, threads, work, own)) {
                                         equations.Solve(n, work, own);
                                       }
                                     });
  }
  return context.ParallelForWithScratch<double>(equations.count, GrainFor(nanoseconds), size + rows,
                                                [&](double* work, int64_t begin, int64_t end) {
                                                  for (int64_t n = begin; n < end; ++n)
                                                    equations.Solve(n, work, reinterpret_cast<int32_t*>(work + size));
                                                });
}

template <class T>
Status MatrixSolveCpu(const MatrixSolve& op, const Context& context, Tensor<const T, kAnyRank> a,
                      Tensor<const T, kAnyRank> b, std::optional<Tensor<const int32_t, kAnyRank>> pivots,
                      Tensor<T, kAnyRank> x, Tensor<int32_t, kAnyRank> info) {
  const EquationsToSolve<T> equations(op, a, b, pivots, x, info);
  if (!SolveAll(context, equations)) {
    return Internal("out of memory: equations of ", equations.WorkSize(), " elements");
  }
  return op.CheckSingular(a.shape(), info.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(MatrixSolve, MatrixSolveCpu, float, double);
}  // namespace polyop
#endif
