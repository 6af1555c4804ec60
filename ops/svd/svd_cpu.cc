#include "ops/svd/svd_of_matrix.h"

namespace polyop {
namespace {

template <class T>
Status SvdCpu(const Svd& op, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> u,
              Tensor<T, kAnyRank> s, Tensor<T, kAnyRank> vh) {
  const MatricesToDecompose<T> matrices(op, a, u, s, vh);
  const int64_t grain = GrainFor(matrices.Operations() + 50), size = matrices.WorkSize();
  const Scratch<double> work = context.Allocate<double>(Context::NumTasks(matrices.count, grain) * size);
  if (!work) return Internal("out of memory: matrices of ", size, " elements");
  context.ParallelFor(matrices.count, grain, [&](int64_t task, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) matrices.Decompose(n, work.data() + task * size);
  });
  return op.CheckConverged(a.shape(), s.data(), s.dim(s.rank() - 1));
}

POLYOP_PLAIN_CPU_KERNELS(Svd, SvdCpu, float, double);

}  // namespace
}  // namespace polyop
