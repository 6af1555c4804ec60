// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linalg/eig/eig_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/linalg/blocked-inl.h"
#include "ops/linalg/eig/blocked_eig-inl.h"
#include "ops/linalg/eig/eig_lanes-inl.h"
#include "ops/linalg/eig/eig_of_matrix.h"
#include "ops/linalg/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
bool DecomposeMatrices(const Context& context, const GeneralMatrices<T>& matrices) {
  if (matrices.size < blocked::kMinSize) {
    const bool in_groups = matrices.size > 1 && matrices.size <= kMaxSizeInLanes;
    return DecomposeAll<1>(context, matrices, in_groups, EigGroupDoubles(matrices),
                           [&](int64_t first, int64_t count, double* memory, double* computed)
                               HWY_ATTR { EigGroup(matrices, first, count, memory, computed); });
  }
  const int64_t size = std::max(matrices.WorkSize(), blocked::GeneralEigenDoubles(matrices.size));
  return blocked::ForLargeMatrices(context, matrices.count, size, [&](int64_t n, double* work, const Context* threads) {
    if (!blocked::GeneralEigen(matrices, n, threads, work)) matrices.Decompose(n, work);
  });
}

template <class T>
Status EigCpu(const Eig& op, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> values,
              Tensor<T, kAnyRank> basis) {
  POLYOP_RETURN_IF_ERROR(op.CheckFinite(a.data(), a.size()));
  const GeneralMatrices<T> matrices(op, a, values, basis);
  if (!DecomposeMatrices(context, matrices)) return Internal("out of memory: matrices of ", matrices.size, " rows");
  return op.CheckConverged(a.shape(), values.data(), 2 * matrices.size);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Eig, EigCpu, float, double);
}  // namespace polyop
#endif
