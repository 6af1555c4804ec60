#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matrix_solve/matrix_solve_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/matrix_solve/solve_lanes-inl.h"
#include "ops/matrix_solve/solve_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Right sides with more columns fill vectors.
constexpr int64_t kMaxColumnsInLanes = 32;

template <class T>
bool SolveAll(const Context& context, const EquationsToSolve<T>& equations) {
  const double nanoseconds = equations.Operations() + 50;
  const int64_t size = equations.WorkSize(), rows = equations.RowsSize();
  const bool in_lanes = equations.method != MatrixSolve::Method::kLdl;  // its pivots differ too much
  if (in_lanes && equations.count > 1 && equations.size > 0 && equations.size <= kMaxSizeInLanes &&
      equations.columns <= kMaxColumnsInLanes) {
    return ForLaneGroups(
        context, equations.count, nanoseconds / 2, std::max(SolveGroupDoubles(equations), size),
        [&](int64_t first, int64_t count, double* memory, double* done)
            HWY_ATTR { SolveGroup(equations, first, count, memory, done); },
        [&](int64_t n, double* memory) {
          std::array<int32_t, kMaxSizeInLanes> exchanged{};
          equations.Solve(n, memory, exchanged.data());
        });
  }
  const int64_t grain = GrainFor(nanoseconds), tasks = Context::NumTasks(equations.count, grain);
  const Scratch<double> work = context.Allocate<double>(tasks * size);
  const Scratch<int32_t> exchanged = context.Allocate<int32_t>(tasks * rows);
  if (!work || !exchanged) return false;
  context.ParallelFor(equations.count, grain, [&](int64_t task, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      equations.Solve(n, work.data() + task * size, exchanged.data() + task * rows);
    }
  });
  return true;
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
