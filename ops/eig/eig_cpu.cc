#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/eig/eig_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/linalg/lanes-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/eig/eig_of_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status EigCpu(const Eig& op, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> values,
              Tensor<T, kAnyRank> basis) {
  POLYOP_RETURN_IF_ERROR(op.CheckFinite(a.data(), a.size()));
  const GeneralMatrices<T> matrices(op, a, values, basis);
  if (!DecomposeEach(context, matrices)) return Internal("out of memory: matrices of ", matrices.size, " rows");
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
