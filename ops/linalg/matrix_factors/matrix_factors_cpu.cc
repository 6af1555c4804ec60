// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linalg/matrix_factors/matrix_factors_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/linalg/blocked-inl.h"
#include "ops/linalg/matrix_factors/factor_lanes-inl.h"
#include "ops/linalg/matrix_factors/factor_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Factors a matrix by blocks. Returns false if it has no factors or is not finite, for which Factor is exact.
template <class T>
bool FactorByBlocks(const MatricesToFactor<T>& matrices, int64_t n, const Context* context, double* work) {
  using Method = MatrixFactors::Method;
  const int64_t rows = matrices.rows, columns = matrices.columns, area = rows * columns, least = matrices.smaller();
  const T* const from = matrices.from + n * area;
  T *const to = matrices.factors + n * area, *const scales = matrices.scales + n * least;
  int32_t* const pivots = matrices.pivots + n * least;
  double *const taus = work + area, *const memory = taus + least;
  const blocked::Products products(context, memory);
  if (matrices.method == Method::kQr) {
    blocked::Transpose(from, rows, columns, work);
  } else {
    blocked::ToDoubles(from, area, work);
  }
  if (!AllFinite(work, area)) return false;
  for (int64_t k = 0; k < least; ++k) pivots[k] = static_cast<int32_t>(k + 1);
  matrices.info[n] = 0;
  if (matrices.method == Method::kQr) {
    blocked::QrFactors(context, work, columns, rows, taus, memory).Factor();
    blocked::Transpose(work, columns, rows, to);
    blocked::FromDoubles(taus, least, scales);
    return true;
  }
  if (matrices.method == Method::kCholesky) {
    if (!blocked::FactorCholesky(products, work, rows, rows)) return false;
    linalg::ClearUpperTriangle(work, rows);
  } else {
    matrices.info[n] = blocked::FactorLu(products, work, rows, columns, columns, pivots);
  }
  for (int64_t k = 0; k < least; ++k) {
    taus[k] = matrices.method == Method::kLu ? matrices.SignedPivot(work[k * (columns + 1)], pivots, k) : 0;
  }
  blocked::FromDoubles(taus, least, scales);
  blocked::FromDoubles(work, area, to);
  return true;
}

// Writes 1, 2, …, `length` `count` times.
void RepeatRange(int64_t length, int64_t count, int32_t* to) {
  std::iota(to, to + length, 1);
  for (int64_t done = length; done < length * count; done *= 2) {
    std::copy_n(to, std::min(done, length * count - done), to + done);
  }
}

template <class T>
bool FactorInLanes(const Context& context, const MatricesToFactor<T>& matrices, double nanoseconds) {
  using Method = MatrixFactors::Method;
  const int64_t least = matrices.smaller();
  if (matrices.method == Method::kCholesky) std::fill_n(matrices.scales, matrices.count * least, T{});
  if (matrices.method != Method::kLu) RepeatRange(least, matrices.count, matrices.pivots);
  std::fill_n(matrices.info, matrices.count, 0);
  const bool any = matrices.rows != matrices.columns || matrices.method == Method::kQr;
  return WithConstantSize(any ? 0 : matrices.rows, [&]<class Size>(Size) {
    using Group = FactorLanes<T, Size>;
    return ForLaneGroups<kInterleavedGroups<Size>>(
        context, matrices.count, nanoseconds, std::max(Group::Doubles(matrices), matrices.WorkSize()),
        [&](int64_t first, int64_t count, double* memory, double* done)
            HWY_ATTR { ComputeInterleaved<Group, Size>(matrices, first, count, memory, done); },
        [&](int64_t n, double* memory) { matrices.Factor(n, memory); });
  });
}

template <class T>
bool FactorAll(const Context& context, const MatricesToFactor<T>& matrices) {
  const double nanoseconds = matrices.Operations() + 50;
  const bool in_lanes = matrices.method != MatrixFactors::Method::kLdl;  // its pivots differ too much
  if (in_lanes && std::max(matrices.rows, matrices.columns) <= kMaxSizeInLanes && matrices.smaller() > 0) {
    return FactorInLanes(context, matrices, nanoseconds / 2);
  }
  if (in_lanes && matrices.smaller() >= blocked::kMinSize) {
    const int64_t memory =
        matrices.method == MatrixFactors::Method::kQr
            ? blocked::QrFactors::Doubles(matrices.columns, matrices.rows)
            : std::max(blocked::Products::Doubles(matrices.columns), blocked::CholeskyDoubles(matrices.smaller()));
    return blocked::ForLargeMatrices(context, matrices.count, matrices.WorkSize() + memory,
                                     [&](int64_t n, double* work, const Context* threads) {
                                       if (!FactorByBlocks(matrices, n, threads, work)) matrices.Factor(n, work);
                                     });
  }
  return context.ParallelForWithScratch<double>(matrices.count, GrainFor(nanoseconds), matrices.WorkSize(),
                                                [&](double* work, int64_t begin, int64_t end) {
                                                  for (int64_t n = begin; n < end; ++n) matrices.Factor(n, work);
                                                });
}

template <class T>
Status MatrixFactorsCpu(const MatrixFactors& op, const Context& context, Tensor<const T, kAnyRank> a,
                        Tensor<T, kAnyRank> factors, Tensor<T, kAnyRank> scales, Tensor<int32_t, kAnyRank> pivots,
                        Tensor<int32_t, kAnyRank> info) {
  const MatricesToFactor<T> matrices(op, a, factors, scales, pivots, info);
  if (!FactorAll(context, matrices)) return Internal("out of memory: matrices of ", matrices.WorkSize(), " elements");
  return op.CheckFactors(a.shape(), info.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(MatrixFactors, MatrixFactorsCpu, float, double);
}  // namespace polyop
#endif
