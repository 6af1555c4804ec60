// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linalg/qr/qr_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/linalg/blocked-inl.h"
#include "ops/linalg/householder_lanes-inl.h"
#include "ops/linalg/qr/qr_of_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
int64_t GroupDoubles(const OrthogonalFactors<T>& matrices) {
  return LaneMatrices::Doubles(matrices.rows, matrices.columns + matrices.basis) + matrices.smaller() * RealLanes();
}

// Factors `count` matrices, except for those with unusual values: their done[] is 0.
template <class T>
void FactorGroup(const OrthogonalFactors<T>& matrices, int64_t first, int64_t count, double* memory, double* done) {
  const int64_t rows = matrices.rows, columns = matrices.columns, basis = matrices.basis;
  const LaneMatrices a{memory, rows, columns}, q{memory + LaneMatrices::Doubles(rows, columns), rows, basis};
  double* const taus = q.elements + LaneMatrices::Doubles(rows, basis);
  a.Read(matrices.from + first * rows * columns, count);
  const auto moderate = a.Moderate();
  StoreLanes(hn::And(moderate, FactorQrInLanes(a, taus)), done);
  ColumnsOfQInLanes(a, taus, q);
  for (int64_t i = 1; i < basis; ++i) {
    for (int64_t j = 0; j < std::min(i, columns); ++j) a.Set(i, j, hn::Zero(RealTag()));
  }
  q.Write(count, matrices.q + first * rows * basis);
  LaneMatrices{a.elements, basis, columns}.Write(count, matrices.r + first * basis * columns);
}

// Factors a matrix by blocks. Returns false if it is not finite, for which Decompose is exact.
template <class T>
bool FactorByBlocks(const OrthogonalFactors<T>& matrices, int64_t n, const Context* context, double* work) {
  const int64_t rows = matrices.rows, columns = matrices.columns, basis = matrices.basis;
  double *const taus = work + rows * columns, *const q = taus + matrices.smaller(), *const memory = q + rows * basis;
  blocked::Transpose(matrices.from + n * rows * columns, rows, columns, work);
  if (!AllFinite(work, rows * columns)) return false;
  blocked::QrFactors(context, work, columns, rows, taus, memory).Factor();
  std::fill_n(q, rows * basis, 0.0);
  for (int64_t k = 0; k < basis; ++k) q[k * (rows + 1)] = 1;
  const blocked::Products products(context, memory);
  const blocked::Reflections reflections{work, taus, matrices.smaller(), rows, rows, 0};
  blocked::ApplyReflections(products, reflections, memory + blocked::Products::Doubles(rows), true, q, basis);
  blocked::Transpose(q, basis, rows, matrices.q + n * rows * basis);
  matrices.StoreTriangle(n, work);
  return true;
}

template <class T>
bool FactorAll(const Context& context, const OrthogonalFactors<T>& matrices) {
  if (matrices.smaller() < blocked::kMinSize) {
    const bool in_groups = matrices.smaller() > 0 && std::max(matrices.rows, matrices.columns) <= kMaxSizeInLanes;
    return DecomposeAll<1>(context, matrices, in_groups, GroupDoubles(matrices),
                           [&](int64_t first, int64_t count, double* memory, double* done)
                               HWY_ATTR { FactorGroup(matrices, first, count, memory, done); });
  }
  const int64_t rows = matrices.rows, columns = matrices.columns;
  const int64_t memory = std::max(blocked::QrFactors::Doubles(columns, rows),
                                  blocked::Products::Doubles(rows) + blocked::ReflectionDoubles(rows, matrices.basis));
  return blocked::ForLargeMatrices(context, matrices.count, matrices.WorkSize() + rows * matrices.basis + memory,
                                   [&](int64_t n, double* work, const Context* threads) {
                                     if (!FactorByBlocks(matrices, n, threads, work)) matrices.Decompose(n, work);
                                   });
}

template <class T>
Status QrCpu(const Qr&, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> q,
             Tensor<T, kAnyRank> r) {
  const OrthogonalFactors<T> matrices(a, q, r);
  if (!FactorAll(context, matrices)) return Internal("out of memory: matrices of ", matrices.WorkSize(), " elements");
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Qr, QrCpu, float, double);
}  // namespace polyop
#endif
