#include "ops/matrix_solve/solve_matrix.h"

namespace polyop {
namespace {

template <class T>
Status MatrixSolveCpu(const MatrixSolve& op, const Context& context, Tensor<const T, kAnyRank> a,
                      Tensor<const T, kAnyRank> b, std::optional<Tensor<const int32_t, kAnyRank>> pivots,
                      Tensor<T, kAnyRank> x, Tensor<int32_t, kAnyRank> info) {
  const EquationsToSolve<T> equations(op, a, b, pivots, x, info);
  const int64_t grain = GrainFor(equations.Operations() + 50), size = equations.WorkSize(), rows = equations.RowsSize(),
                tasks = Context::NumTasks(equations.count, grain);
  const Scratch<double> work = context.Allocate<double>(tasks * size);
  const Scratch<int32_t> exchanged = context.Allocate<int32_t>(tasks * rows);
  if (!work || !exchanged) return Internal("out of memory: equations of ", size, " elements");
  context.ParallelFor(equations.count, grain, [&](int64_t task, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      equations.Solve(n, work.data() + task * size, exchanged.data() + task * rows);
    }
  });
  return op.CheckSingular(a.shape(), info.data());
}

POLYOP_PLAIN_CPU_KERNELS(MatrixSolve, MatrixSolveCpu, float, double);

}  // namespace
}  // namespace polyop
