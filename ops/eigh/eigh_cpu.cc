#include "ops/eigh/eigh_of_matrix.h"

namespace polyop {
namespace {

template <class T>
Status EighCpu(const Eigh& op, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> values,
               Tensor<T, kAnyRank> basis) {
  const SymmetricMatrices<T> matrices(op, a, values, basis);
  const int64_t grain = GrainFor(matrices.Operations() + 50), size = matrices.WorkSize();
  const Scratch<double> work = context.Allocate<double>(Context::NumTasks(matrices.count, grain) * size);
  if (!work) return Internal("out of memory: matrices of ", matrices.size, " rows");
  context.ParallelFor(matrices.count, grain, [&](int64_t task, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) matrices.Decompose(n, work.data() + task * size);
  });
  return op.CheckConverged(a.shape(), values.data(), values.dim(values.rank() - 1));
}

POLYOP_PLAIN_CPU_KERNELS(Eigh, EighCpu, float, double);

}  // namespace
}  // namespace polyop
