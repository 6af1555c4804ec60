#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/svd/svd_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/svd/svd_lanes-inl.h"
#include "ops/svd/svd_of_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
bool DecomposeAll(const Context& context, const MatricesToDecompose<T>& matrices) {
  const double nanoseconds = matrices.Operations() + 50;
  const int64_t size = matrices.WorkSize();
  if (HasSvdGroups(matrices)) {
    return ForLaneGroups(
        context, matrices.count, nanoseconds / 2, std::max(SvdGroupDoubles(matrices), size),
        [&](int64_t first, int64_t count, double* memory, double* done)
            HWY_ATTR { SvdGroup(matrices, first, count, memory, done); },
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
Status SvdCpu(const Svd& op, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> u,
              Tensor<T, kAnyRank> s, Tensor<T, kAnyRank> vh) {
  const MatricesToDecompose<T> matrices(op, a, u, s, vh);
  if (!DecomposeAll(context, matrices))
    return Internal("out of memory: matrices of ", matrices.WorkSize(), " elements");
  return op.CheckConverged(a.shape(), s.data(), s.dim(s.rank() - 1));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Svd, SvdCpu, float, double);
}  // namespace polyop
#endif
