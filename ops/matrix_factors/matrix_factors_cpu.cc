#include "ops/matrix_factors/factor_matrix.h"

namespace polyop {
namespace {

template <class T>
Status MatrixFactorsCpu(const MatrixFactors& op, const Context& context, Tensor<const T, kAnyRank> a,
                        Tensor<T, kAnyRank> factors, Tensor<T, kAnyRank> scales, Tensor<int32_t, kAnyRank> pivots,
                        Tensor<int32_t, kAnyRank> info) {
  const MatricesToFactor<T> matrices(op, a, factors, scales, pivots, info);
  const int64_t grain = GrainFor(matrices.Operations() + 50), size = matrices.WorkSize();
  const Scratch<double> work = context.Allocate<double>(Context::NumTasks(matrices.count, grain) * size);
  if (!work) return Internal("out of memory: matrices of ", size, " elements");
  context.ParallelFor(matrices.count, grain, [&](int64_t task, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) matrices.Factor(n, work.data() + task * size);
  });
  return op.CheckFactors(a.shape(), info.data());
}

POLYOP_PLAIN_CPU_KERNELS(MatrixFactors, MatrixFactorsCpu, float, double);

}  // namespace
}  // namespace polyop
