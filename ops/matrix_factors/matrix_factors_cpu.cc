#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matrix_factors/matrix_factors_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/matrix_factors/factor_lanes-inl.h"
#include "ops/matrix_factors/factor_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
bool FactorAll(const Context& context, const MatricesToFactor<T>& matrices) {
  const double nanoseconds = matrices.Operations() + 50;
  const bool in_lanes = matrices.method != MatrixFactors::Method::kLdl;  // its pivots differ too much
  if (in_lanes && matrices.count > 1 && std::max(matrices.rows, matrices.columns) <= kMaxSizeInLanes &&
      matrices.smaller() > 0) {
    return ForLaneGroups(
        context, matrices.count, nanoseconds / 2, std::max(FactorGroupDoubles(matrices), matrices.WorkSize()),
        [&](int64_t first, int64_t count, double* memory, double* done)
            HWY_ATTR { FactorGroup(matrices, first, count, memory, done); },
        [&](int64_t n, double* memory) { matrices.Factor(n, memory); });
  }
  const int64_t grain = GrainFor(nanoseconds), size = matrices.WorkSize();
  const Scratch<double> work = context.Allocate<double>(Context::NumTasks(matrices.count, grain) * size);
  if (!work) return false;
  context.ParallelFor(matrices.count, grain, [&](int64_t task, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) matrices.Factor(n, work.data() + task * size);
  });
  return true;
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
