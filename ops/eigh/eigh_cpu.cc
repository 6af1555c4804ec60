#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/eigh/eigh_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/eigh/eigh_lanes-inl.h"
#include "ops/eigh/eigh_of_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The algorithm for one matrix takes fewer operations for larger ones.
constexpr int64_t kMaxRowsByJacobi = 10;

template <class T>
bool DecomposeAll(const Context& context, const SymmetricMatrices<T>& matrices) {
  const double nanoseconds = matrices.Operations() + 50;
  const int64_t size = matrices.WorkSize();
  if (matrices.count > 1 && matrices.size > 0 && matrices.size <= kMaxRowsByJacobi) {
    return ForLaneGroups(
        context, matrices.count, nanoseconds / 2, std::max(EighGroupDoubles(matrices), size),
        [&](int64_t first, int64_t count, double* memory, double* done)
            HWY_ATTR { EighGroup(matrices, first, count, memory, done); },
        [&](int64_t n, double* memory) { matrices.Decompose(n, memory); });
  }
  const int64_t grain = GrainFor(nanoseconds);
  const Scratch<double> work = context.Allocate<double>(Context::NumTasks(matrices.count, grain) * size);
  if (!work) return false;
  context.ParallelFor(matrices.count, grain, [&](int64_t task, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) matrices.Decompose(n, work.data() + task * size);
  });
  return true;
}

template <class T>
Status EighCpu(const Eigh& op, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> values,
               Tensor<T, kAnyRank> basis) {
  const SymmetricMatrices<T> matrices(op, a, values, basis);
  if (!DecomposeAll(context, matrices)) return Internal("out of memory: matrices of ", matrices.size, " rows");
  return op.CheckConverged(a.shape(), values.data(), values.dim(values.rank() - 1));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Eigh, EighCpu, float, double);
}  // namespace polyop
#endif
